"""The kinds of index: how vectors are held, as FAISS index types by name. A new kind is one entry of `KINDS`."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

from relvec.errors import RelvecError, one_of

SMALL = 20_000
"""Up to this many pairs, `auto` stores float32 vectors: they take 60 MB, and a full scan takes milliseconds."""

CODE_BITS = 768
"""What RaBitQ spends on a pair, spread over the dimensions: 768 have one bit each, 384 two."""


def faiss() -> Any:
    """FAISS, imported when an index is opened or made."""
    import faiss as module

    return module


@dataclass(frozen=True)
class Kind:
    """A way of holding unit vectors; `help` and `use` are its row in the documentation.

    `rotated_dims` says to how many dimensions vectors of some length are first reduced (PCA, then a random rotation
    that spreads what is left evenly); `make` gives the empty FAISS index for so many dimensions and pairs.
    `is_exact` kinds keep float32, so that their scores are cosines.
    """

    name: str
    is_exact: bool
    make: Callable[[int, int], Any]
    rotated_dims: Callable[[int], int] | None
    help: str
    use: str

    def check_size(self, pairs: int, dim: int) -> None:
        """A compression is learned from the pairs: there must be enough of them."""
        least = 1 if self.is_exact else max(256, dim)
        if pairs < least:
            needed = f"needs at least {least:,} pairs, not {pairs:,}"
            article = "An" if self.name[0] in "aeiou" else "A"
            raise RelvecError(f"{article} {self.name} index of {dim} dimensions {needed}; choose flat.")


def _rabitq(dim: int, pairs: int) -> Any:
    library = faiss()
    index = library.IndexRaBitQ(dim, library.METRIC_L2, max(1, min(8, CODE_BITS // dim)))
    index.qb = 8  # bits of the query: as good as float32, and 100 times as fast
    return index


def _ivfpq(dim: int, pairs: int) -> Any:
    library = faiss()
    lists = max(1, isqrt(pairs))
    index = library.IndexIVFPQ(library.IndexFlatL2(dim), dim, lists, dim // 4, 8, library.METRIC_L2)
    index.nprobe = max(8, lists // 4)
    index.pq.cp.niter = 12
    index.pq.cp.max_points_per_centroid = 64  # more points and rounds take minutes and add a hundredth of recall
    index.pq.cp.min_points_per_centroid = index.cp.min_points_per_centroid = 1  # else FAISS warns on stderr
    return index


def _hnsw(dim: int, pairs: int) -> Any:
    library = faiss()
    index = library.IndexHNSWFlat(dim, 32, library.METRIC_INNER_PRODUCT)
    index.hnsw.efSearch = 128
    return index


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "flat",
            True,
            lambda dim, pairs: faiss().IndexFlatIP(dim),
            None,
            "float32; compares every pair",
            f"the default up to {SMALL:,} pairs",
        ),
        Kind(
            "rabitq",
            False,
            _rabitq,
            lambda dim: dim if dim <= 640 else max(640, dim * 5 // 6 // 8 * 8),
            "one bit per dimension; compares every pair",
            "the default for more pairs: a thirtieth of the size of `flat`",
        ),
        Kind(
            "int8",
            False,
            lambda dim, pairs: faiss().IndexScalarQuantizer(dim, faiss().ScalarQuantizer.QT_8bit, faiss().METRIC_L2),
            lambda dim: max(1, dim // 2),
            "half the dimensions, one byte each; compares every pair",
            "four times the size of `rabitq`, faster to build",
        ),
        Kind(
            "ivfpq",
            False,
            _ivfpq,
            lambda dim: 4 * min(96, dim // 4),
            "product quantization; compares the nearest lists only",
            "faster to search, slow to build",
        ),
        Kind("hnsw", True, _hnsw, None, "float32, with a graph", "larger than `flat`"),
    )
}


def check_kind(name: str, pairs: int) -> Kind:
    """The kind by its name; `auto` is `flat` for few pairs and `rabitq` for many.

    >>> check_kind("auto", 5_000).name, check_kind("auto", 200_000).name
    ('flat', 'rabitq')
    """
    if pairs < 1:
        raise RelvecError("There is no pair to index; give at least one.")
    if name == "auto":
        name = "flat" if pairs <= SMALL else "rabitq"
    return KINDS[one_of("index kind", name, KINDS)]
