"""Files of pair vectors, such as those of RELATIVE and pair2vec (section 4.3 of the paper)."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from relvec.baselines.baseline import FACTS, Baseline, Context
from relvec.errors import RelvecError
from relvec.evaluation.systems import System, vector_system
from relvec.io.vectors import BETWEEN_WORDS
from relvec.io.word2vec import read_vectors
from relvec.model.cached_vectors import Known
from relvec.pairs import Pair
from relvec.settings import Settings, setting
from relvec.similarity import Vectors


def keys_of(pair: Pair) -> list[str]:
    """The keys that a pair may have in a file, in the order in which they are tried.

    >>> keys_of(("Paris", "ice cream"))
    ['Paris__ice_cream', 'paris__ice_cream']
    """
    key = BETWEEN_WORDS.join(word.replace(" ", "_") for word in pair)
    return list(dict.fromkeys([key, key.lower()]))


def title_of(path: Path) -> str:
    """
    >>> title_of(Path("vectors/glove.6B.txt.gz"))
    'glove.6B'
    """
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name


class PairTable:
    r"""Vectors of pairs (h, t) from a file with keys `h__t`; (t, h) is another key.

    With `pairs`, only their vectors are read, in both directions, and only they can be asked for.

    >>> _ = Path("relative.txt").write_text("2 3\ntea__cup 1 2 3\nice_cream__cone 4 5 6\n")
    >>> vectors, known = PairTable("relative.txt").vectors([("ice cream", "cone"), ("cone", "ice cream")])
    >>> vectors.tolist(), known.tolist()
    ([[4.0, 5.0, 6.0], [0.0, 0.0, 0.0]], [True, False])
    """

    has_direction = True

    def __init__(self, path: str | Path, *, pairs: Iterable[Pair] | None = None, name: str = "") -> None:
        self._path = Path(path)
        self._pairs = (
            None if pairs is None else frozenset(way for head, tail in pairs for way in ((head, tail), (tail, head)))
        )
        keys = None if self._pairs is None else {key for pair in self._pairs for key in keys_of(pair)}
        self._table = read_vectors(path, keys)
        if BETWEEN_WORDS not in self._table.first_key:
            problem = f"its first key is {self._table.first_key!r}, not a pair such as paris__france"
            raise RelvecError(f"{path} holds no pair vectors: {problem}; give it as word vectors.")
        self.name = name or title_of(self._path)
        self.fingerprint = hashlib.sha256(f"{self._table.checksum} pairs".encode()).hexdigest()

    def vectors(self, pairs: Sequence[Pair]) -> tuple[Vectors, Known]:
        vectors = np.zeros((len(pairs), self._table.dim), dtype=np.float32)
        known = np.zeros(len(pairs), dtype=bool)
        for number, pair in enumerate(pairs):
            assert self._pairs is None or pair in self._pairs, f"{self._path} was not read for {pair}"
            found = self._table.find(keys_of(pair))
            if found is not None:
                vectors[number], known[number] = found, True
        return vectors, known


class PairVectorSettings(Settings):
    """Which file."""

    pairs: str = setting(..., "a text or .bin file")


def _build(settings: PairVectorSettings, context: Context) -> System:
    return vector_system(PairTable(settings.pairs, pairs=context.pairs, name=context.name), FACTS)


BASELINE = Baseline(
    "pair-vectors",
    "vectors of word pairs (RELATIVE, pair2vec), with keys a__b",
    _build,
    PairVectorSettings,
    tasks=("analogy", "classification", "mapping"),
)
