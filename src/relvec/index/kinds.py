"""How the vectors of an index are held: FAISS index types by name, each with what it costs and what it keeps."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

from relvec.errors import RelvecError, did_you_mean

SMALL = 20_000
"""Up to so many pairs, `auto` keeps the vectors whole: they take 60 MB and a scan takes milliseconds."""

CODE_BITS = 768
"""What RaBitQ spends on a pair, spread over the dimensions: 768 have one bit each, 384 two."""


def faiss() -> Any:
    """The FAISS module; it is not part of the base install."""
    try:
        import faiss as module
    except ImportError as error:
        raise RelvecError("The pair index needs FAISS; run pip install 'relvec[index]'.") from error
    return module


@dataclass(frozen=True)
class Kind:
    """A way of holding unit vectors.

    `rotated_dims` says to how many dimensions vectors of some length are first reduced (PCA, then a random rotation
    that spreads what is left evenly); `make` gives the empty FAISS index for so many dimensions and pairs.
    `is_exact` kinds keep float32, so that their scores are cosines.
    """

    name: str
    description: str
    is_exact: bool
    make: Callable[[int, int], Any]
    rotated_dims: Callable[[int], int] | None = None

    def check_size(self, pairs: int, dim: int) -> None:
        """A compression is learned from the pairs: there must be enough of them."""
        least = 1 if self.is_exact else max(256, dim)
        if pairs < least:
            needed = f"needs at least {least:,} pairs, not {pairs:,}"
            raise RelvecError(f"A {self.name} index of {dim} dimensions {needed}; choose flat.")


def _five_sixths(dim: int) -> int:
    return dim if dim <= 640 else max(640, dim * 5 // 6 // 8 * 8)


def _half(dim: int) -> int:
    return max(1, dim // 2)


def _four_for_each_of_96(dim: int) -> int:
    return 4 * min(96, dim // 4)


def _flat(dim: int, pairs: int) -> Any:
    return faiss().IndexFlatIP(dim)


def _rabitq(dim: int, pairs: int) -> Any:
    library = faiss()
    index = library.IndexRaBitQ(dim, library.METRIC_L2, max(1, min(8, CODE_BITS // dim)))
    index.qb = 8  # bits of the query: as good as float32, and 100 times as fast
    return index


def _int8(dim: int, pairs: int) -> Any:
    library = faiss()
    return library.IndexScalarQuantizer(dim, library.ScalarQuantizer.QT_8bit, library.METRIC_L2)


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
        Kind("flat", "float32, every pair compared", True, _flat),
        Kind("rabitq", "one bit a dimension (RaBitQ), every pair compared", False, _rabitq, _five_sixths),
        Kind("int8", "half the dimensions, a byte each, every pair compared", False, _int8, _half),
        Kind("ivfpq", "product quantization in inverted lists", False, _ivfpq, _four_for_each_of_96),
        Kind("hnsw", "float32 in a graph of neighbours", True, _hnsw),
    )
}


def check_kind(name: str, pairs: int) -> Kind:
    """The kind of a name; `auto` is `flat` for few pairs and `rabitq` for many.

    >>> check_kind("auto", 5_000).name, check_kind("auto", 200_000).name
    ('flat', 'rabitq')
    """
    if name == "auto":
        name = "flat" if pairs <= SMALL else "rabitq"
    if name not in KINDS:
        advice = did_you_mean(name, KINDS, otherwise=f"choose auto or one of {', '.join(KINDS)}")
        raise RelvecError(f"There is no index kind {name!r}; {advice}.")
    return KINDS[name]
