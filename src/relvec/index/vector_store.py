"""Unit vectors in a FAISS index: filled, searched, read back and written."""

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from relvec.errors import RelvecError
from relvec.index.kinds import Kind, faiss
from relvec.index.shard_vectors import ShardVectors
from relvec.io.vectors import as_float32
from relvec.model.cached_vectors import CachedRows
from relvec.progress import progress_bar
from relvec.similarity import Vectors, normalized, principal_axes

ROWS_PER_STEP = 16_384
TRAINING_ROWS = 32_768
NARROW = 0.1  # below this share of allowed rows, a graph or list search would miss too many of them

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]
VectorRows = Vectors | CachedRows | ShardVectors


class VectorStore:
    """Vectors in rows 0, 1, ...; every row and every query has length 1, so that an inner product is a cosine.

    Compressed kinds compare by distance, because their PCA moves the mean to zero: cos = 1 - |x - y|^2 / 2.

    >>> from relvec.index.kinds import KINDS
    >>> store = VectorStore.of(np.eye(3, dtype=np.float32), KINDS["flat"])
    >>> scores, rows = store.search(np.array([0.0, 2.0, 1.0], dtype=np.float32), 2)
    >>> rows.tolist(), scores.round(2).tolist()
    ([1, 2], [0.8899999856948853, 0.44999998807907104])
    """

    def __init__(self, kind: Kind, index: Any) -> None:
        self.kind = kind
        self._index = index

    @classmethod
    def of(cls, vectors: VectorRows, kind: Kind, shorter: int | None = None) -> Self:
        """Learn the compression from a sample of the vectors, and put all of them in.

        `shorter` first reduces the vectors to this many dimensions, for any kind.
        """
        count, dim = vectors.shape
        kind.check_size(count, dim)
        if shorter is None and kind.rotated_dims is None:
            index = kind.make(dim, count)
        else:
            sample = training_sample(vectors)
            if kind.rotated_dims is None:
                rotation = _linear(principal_axes(sample, check_shorter(shorter or dim, kind, dim)))
            else:
                wanted = check_shorter(shorter, kind, dim) if shorter else kind.rotated_dims(dim)
                rotation = _rotation(sample, wanted)
            core = kind.make(rotation.d_out, count)
            core.train(rotation.apply(sample))
            index = faiss().IndexPreTransform(rotation, core)
        store = cls(kind, index)
        store.add(vectors)
        return store

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def dim(self) -> int:
        return int(self._index.d)

    @property
    def is_exact(self) -> bool:
        """Whether the vectors are kept whole, so that scores are cosines."""
        return self.kind.is_exact and not isinstance(self._index, faiss().IndexPreTransform)

    def add(self, vectors: VectorRows) -> None:
        """Append rows."""
        with progress_bar(len(vectors), "Indexing") as bar:
            for start in range(0, len(vectors), ROWS_PER_STEP):
                step = _unit(vectors[start : start + ROWS_PER_STEP])
                self._index.add(step)
                bar.update(len(step))

    def search(self, query: NDArray[np.float32], count: int, allowed: Mask | None = None) -> tuple[Vectors, Rows]:
        """Cosines (estimates, if the kind is not exact) and rows of the best, of those that are allowed."""
        rows = len(self) if allowed is None else int(allowed.sum())
        count = min(count, rows)
        if count < 1:
            return np.empty(0, dtype=np.float32), np.empty(0, dtype=np.int64)
        is_narrow = rows < NARROW * len(self)
        scores, places = self._nearest(query, count, allowed, everywhere=is_narrow)
        if len(places) < count and not is_narrow:  # a graph or its lists may end before enough are found
            return self._nearest(query, count, allowed, everywhere=True)
        return scores, places

    def _nearest(
        self, query: NDArray[np.float32], count: int, allowed: Mask | None, *, everywhere: bool
    ) -> tuple[Vectors, Rows]:
        library = faiss()
        index, core = self._index, self._core
        selector = None if allowed is None else library.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
        if isinstance(core, library.IndexIVF):
            params = library.SearchParametersIVF(sel=selector, nprobe=core.nlist if everywhere else core.nprobe)
        elif isinstance(core, library.IndexHNSW) and not everywhere:
            params = library.SearchParametersHNSW(sel=selector, efSearch=max(core.hnsw.efSearch, 2 * count))
        else:
            params = library.SearchParameters(sel=selector)
            index = core.storage if isinstance(core, library.IndexHNSW) else index
        if isinstance(index, library.IndexPreTransform):
            params = library.SearchParametersPreTransform(index_params=params)
        found, places = index.search(_unit(query[None]), count, params=params)
        is_found = places[0] >= 0
        scores = found[0][is_found] if self.kind.is_exact else 1 - found[0][is_found] / 2
        return np.clip(scores, -1, 1), places[0][is_found]

    def get(self, start: int, stop: int) -> Vectors:
        """The rows from `start` to `stop` of an exact kind."""
        return np.asarray(self._index.reconstruct_n(start, stop - start))

    def drop(self, rows: Rows) -> None:
        """Delete rows; those that stay move up."""
        library, core = faiss(), self._core
        if isinstance(core, library.IndexHNSW):  # a graph cannot lose a node
            kept = np.delete(core.storage.reconstruct_n(0, len(self)), rows, axis=0)
            self._index = VectorStore.of(kept, self.kind)._index
            return
        before = len(self)
        self._index.remove_ids(library.IDSelectorBatch(rows))
        if isinstance(core, library.IndexIVF):
            _renumber(core, np.delete(np.arange(before), rows))
        self._index.ntotal = core.ntotal

    def write(self, path: Path) -> None:
        try:
            faiss().write_index(self._index, str(path))
        except RuntimeError as error:
            raise RelvecError(f"Cannot write {path.parent}: {_reason(error)}; free space there.") from error

    @classmethod
    def read(cls, path: Path, kind: Kind, *, mapped: bool) -> Self:
        """Open a file; a mapped one is read from disk as it is needed, and cannot be changed."""
        library = faiss()
        try:
            return cls(kind, library.read_index(str(path), library.IO_FLAG_MMAP_IFC if mapped else 0))
        except RuntimeError as error:
            problem = f"{path} is not a complete FAISS file ({_reason(error)})"
            raise RelvecError(f"{problem}; build the index again.") from error

    @property
    def _core(self) -> Any:
        library = faiss()
        is_rotated = isinstance(self._index, library.IndexPreTransform)
        return library.downcast_index(self._index.index) if is_rotated else self._index


def _unit(vectors: Any) -> Vectors:
    return np.ascontiguousarray(normalized(as_float32(vectors)))


def training_sample(vectors: VectorRows) -> Vectors:
    """Some of the vectors, of length 1, for all that is learned from them."""
    rows = np.random.default_rng(0).permutation(len(vectors))[:TRAINING_ROWS]
    return _unit(vectors[np.sort(rows)])


def check_shorter(shorter: int, kind: Kind, dim: int) -> int:
    """The number of dimensions that vectors are reduced to."""
    if kind.name == "hnsw" or not 8 <= shorter <= dim or shorter % 8:
        fix = f"use a multiple of 8 up to {dim}, and another kind than hnsw"
        raise RelvecError(f"Vectors of {dim} dimensions cannot be reduced to {shorter} in a {kind.name} index; {fix}.")
    return shorter


def _linear(matrix: Vectors, shift: Any = None) -> Any:
    """x -> A x + b, as FAISS has it."""
    library = faiss()
    transform = library.LinearTransform(matrix.shape[1], matrix.shape[0], shift is not None)
    library.copy_array_to_vector(matrix.ravel(), transform.A)
    if shift is not None:
        library.copy_array_to_vector(shift, transform.b)
    transform.is_trained = transform.is_orthonormal = True
    return transform


def _rotation(sample: Vectors, dims: int) -> Any:
    """PCA and a random rotation as one matrix, without all else that FAISS would save of the PCA."""
    library = faiss()
    learned = library.PCAMatrix(sample.shape[1], dims, 0.0, True)
    learned.train(sample)
    matrix = library.vector_to_array(learned.A).reshape(-1, sample.shape[1])[:dims]
    return _linear(matrix, library.vector_to_array(learned.b)[:dims])


def _renumber(core: Any, old_rows: Rows) -> None:
    """Inverted lists keep the old row numbers when rows go; make them 0, 1, ... again."""
    lists = core.invlists
    for number in range(core.nlist):
        size = lists.list_size(number)
        if size:
            ids = faiss().rev_swig_ptr(lists.get_ids(number), size)
            ids[:] = np.searchsorted(old_rows, ids)


def _reason(error: RuntimeError) -> str:
    """The last clause of what FAISS says, which begins with a function's name and place."""
    return str(error).strip().splitlines()[-1].rpartition(": ")[2].rstrip(".") or "unreadable"
