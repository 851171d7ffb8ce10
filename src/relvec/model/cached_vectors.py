"""Encoding many pairs through the cache, for `embed`, indexes, evaluation and distillation.

Every vector goes to the one cache file (`relvec.storage.cache`) before it is used, as float32 under the model's
fingerprint and `head<tab>tail`. So a killed run resumes, and no pair is encoded twice by one model.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from relvec.errors import RelvecError, counted
from relvec.io.files import expanded
from relvec.io.vectors import Columns, check_output, read_pair_file, write_pair_file
from relvec.model.model_check import SAME_MODEL_COSINE, median_cosine
from relvec.model.relation_model import BATCH_SIZE, RelBERT
from relvec.pairs import Pair, as_pairs, plain_values
from relvec.progress import progress_bar
from relvec.similarity import Vectors, normalized
from relvec.storage.cache import Cache
from relvec.storage.job import atomic_write_once, check_job
from relvec.storage.lock import output_lock

SAMPLED = 16
PAIRS_PER_STEP = 512  # some seconds of work on two cores: what a kill may lose

Known = NDArray[np.bool_]


class PairVectors(Protocol):
    """Anything that turns pairs into vectors; the name is what tables call it."""

    name: str
    has_direction: bool
    """Whether a classifier should see (tail, head) besides (head, tail), as with relation vectors."""

    @property
    def fingerprint(self) -> str:
        """A checksum of all that decides the vectors."""
        ...

    def vectors(self, pairs: Sequence[Pair]) -> tuple[Vectors, Known]:
        """One row a pair, and whether the pair is known; the row of an unknown pair is zero."""
        ...


class Prepared(NamedTuple):
    """How many distinct pairs were encoded now, and how many were in the cache before."""

    encoded: int
    cached: int


class ModelVectors:
    """The vectors of a model; each distinct pair is encoded once, ever.

    >>> from relvec import RelBERT
    >>> vectors = ModelVectors(RelBERT.from_pretrained(tiny_model))
    >>> vectors.prepare([("Paris", "France"), ("cup", "tea")]), vectors.prepare([("cup", "tea")])
    (Prepared(encoded=2, cached=0), Prepared(encoded=0, cached=1))
    """

    has_direction = True

    def __init__(
        self,
        model: RelBERT,
        cache_folder: str | Path | None = None,
        *,
        name: str = "",
        batch_size: int = BATCH_SIZE,
        show_progress: bool | None = None,
    ) -> None:
        self.model = model
        self.name = name or model.name
        self.fingerprint = model.fingerprint
        self._cache = Cache(f"vectors {self.fingerprint}", about=model.name, folder=cache_folder)
        self._batch_size = batch_size
        self._show_progress = show_progress

    def vectors(self, pairs: Sequence[Pair]) -> tuple[Vectors, Known]:
        """The vectors of pairs, encoded first where the cache lacks them; a pair too long for the model is cut."""
        self.prepare(pairs)
        return self.rows(pairs)[:], np.ones(len(pairs), dtype=bool)

    def missing(self, pairs: Sequence[Pair]) -> list[Pair]:
        """The distinct pairs that the cache lacks; of a model that is not cached, none."""
        if not self.model.is_cached:
            return []
        pair_of = {_key(pair): pair for pair in pairs}
        return [pair_of[key] for key in self._cache.missing(pair_of)]

    def prepare(self, pairs: Sequence[Pair], *, truncate: bool = True) -> Prepared:
        """Encode what the cache lacks, step by step; without `truncate`, a pair that is too long is refused first."""
        distinct = list(dict.fromkeys(pairs))
        if not truncate:
            for start in range(0, len(distinct), PAIRS_PER_STEP):
                self.model.token_ids(distinct[start : start + PAIRS_PER_STEP])
        missing = self.missing(distinct)
        missing = [missing[row] for row in self.model.encoding_order(missing)]
        with progress_bar(len(missing), f"Encoding with {self.name}", show=self._show_progress) as bar:
            for start in range(0, len(missing), PAIRS_PER_STEP):
                step = missing[start : start + PAIRS_PER_STEP]
                self._encoded(step)
                bar.update(len(step))
        cached = len(distinct) - len(missing) if self.model.is_cached else 0
        return Prepared(len(distinct) - cached, cached)

    def rows(self, pairs: Sequence[Pair], *, normalize: bool = False) -> "CachedRows":
        """The vectors of prepared pairs, left in the cache until they are asked for."""
        return CachedRows(self, pairs, normalize)

    def read(self, pairs: Sequence[Pair]) -> Vectors:
        """The vectors of a few prepared pairs; one that is damaged in the cache is encoded again."""
        if not self.model.is_cached:
            return self.model.encode(pairs, truncate=True)
        found = self._cache.get(map(_key, pairs))
        found |= self._encoded([pair for pair in dict.fromkeys(pairs) if _key(pair) not in found])
        numbers = np.frombuffer(b"".join(found[_key(pair)] for pair in pairs), dtype="<f4")
        return numbers.reshape(len(pairs), self.model.dim)

    def _encoded(self, pairs: list[Pair]) -> dict[str, bytes]:
        """Encode pairs, put them into the cache, and return what lies there now."""
        if not pairs:
            return {}
        vectors = self.model.encode(pairs, batch_size=self._batch_size, truncate=True)
        made = {_key(pair): vector.astype("<f4").tobytes() for pair, vector in zip(pairs, vectors, strict=True)}
        self._cache.add(made)
        return made


class CachedRows:
    """Vectors of prepared pairs as a table that stays on disk: `rows[10:20]` or `rows[[3, 1]]` is an array."""

    def __init__(self, source: ModelVectors, pairs: Sequence[Pair], normalize: bool) -> None:
        self.shape = (len(pairs), source.model.dim)
        self._source = source
        self._pairs = pairs
        self._normalize = normalize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Vectors:
        pairs = self._pairs[rows] if isinstance(rows, slice) else [self._pairs[row] for row in rows]
        found = np.empty((len(pairs), self.shape[1]), dtype=np.float32)
        size = PAIRS_PER_STEP if self._source.model.is_cached else max(len(pairs), 1)
        for start in range(0, len(pairs), size):
            step = pairs[start : start + size]
            found[start : start + len(step)] = self._source.read(step)
        return normalized(found) if self._normalize else found


def _key(pair: Pair) -> str:
    return "\t".join(pair)


def embed_to_file(
    model: RelBERT,
    pairs: Any,
    output: str | Path,
    *,
    columns: Columns | None = None,
    batch_size: int = BATCH_SIZE,
    normalize: bool = False,
    truncate: bool = False,
    show_progress: bool | None = None,
) -> Prepared:
    """Write the vectors of `pairs` to a file, in the format of its ending (`relvec.io.vectors` lists them).

    `pairs` are those that `encode` takes, except prototypes; `columns` are what else to write of each, by name. Memory
    holds a few thousand vectors at a time. A file of other vectors is spared.

    >>> from relvec import RelBERT
    >>> model = RelBERT.from_pretrained(tiny_model)
    >>> embed_to_file(model, [("Paris", "France"), ("Tokyo", "Japan")], "vectors.npz")
    Prepared(encoded=2, cached=0)
    >>> with np.load("vectors.npz") as file:
    ...     file["head"].tolist(), file["vectors"].shape
    (['Paris', 'Tokyo'], (2, 16))
    """
    target = expanded(output)
    check_output(target)
    listed = as_pairs(pairs)
    if not listed:
        raise RelvecError("There is no pair to encode; give at least one.")
    more = {name: plain_values(column) for name, column in (columns or {}).items()}
    for name, values in more.items():
        if len(values) != len(listed):
            given = f"{counted(len(values), 'value')} for {counted(len(listed), 'pair')}"
            raise RelvecError(f"The column {name} has {given}; give one for each.")
    vectors = ModelVectors(model, batch_size=batch_size, show_progress=show_progress)
    with output_lock(target), atomic_write_once(target) as partial:
        if target.exists() and vectors.missing(listed):
            check_job(_may_be_of(target, model, listed), target)  # now, not after hours of encoding
        prepared = vectors.prepare(listed, truncate=truncate)
        rows = vectors.rows(listed, normalize=normalize)
        write_pair_file(partial, listed, lambda start, stop: rows[start:stop], more)
    return prepared


def _may_be_of(path: Path, model: RelBERT, pairs: Sequence[Pair]) -> bool:
    """Whether a file can be what this model makes of these pairs, by its pairs and the vectors of the first."""
    if path.suffix.lower() == ".npy":  # which does not say whose vectors it has
        return True
    try:
        found = read_pair_file(path)
    except RelvecError:
        return False
    is_same = list(dict.fromkeys(found.pairs)) == list(dict.fromkeys(pairs))
    return is_same and median_cosine(model, found.pairs[:SAMPLED], found.vectors[:SAMPLED]) >= SAME_MODEL_COSINE
