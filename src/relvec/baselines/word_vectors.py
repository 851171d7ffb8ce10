"""Word vectors as vectors of pairs: what the two words' vectors make of a pair (section 4.3 of the paper)."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import AfterValidator

from relvec.baselines.baseline import FACTS, Baseline, Context
from relvec.baselines.pair_vectors import PairTable, title_of
from relvec.errors import one_of
from relvec.evaluation.systems import System, vector_system
from relvec.io.word2vec import Vector, read_vectors, spellings
from relvec.model.cached_vectors import Known, PairVectors
from relvec.pairs import Pair, parts_of
from relvec.settings import Settings, setting
from relvec.similarity import Vectors

Feature = Callable[[Vectors, Vectors], Vectors]

FEATURES: dict[str, Feature] = {
    "diff": lambda heads, tails: tails - heads,
    "cat": lambda heads, tails: np.concatenate([heads, tails], axis=1),
    "dot": lambda heads, tails: heads * tails,
}


def check_features(features: str) -> str:
    """Names of features, joined by +.

    >>> check_features("cat+dot")
    'cat+dot'
    """
    for name in features.split("+"):
        one_of("feature of word vectors", name, FEATURES)
    return features


class WordVectors:
    r"""Vectors of pairs (h, t) from a file of word vectors w.

    `diff` is w(t) - w(h), `cat` is [w(h); w(t)], `dot` is the element-wise product w(h) * w(t), and a + concatenates.
    A word is looked up as it is, then lower-cased, then with `_` or `-` between its parts. Else it is the mean of its
    parts, if all are known. A pair is known if both words are. With `words`, only their vectors are read, which is
    quick, and only they can be asked for.

    >>> _ = Path("glove.txt").write_text("tea 0.5 1\nice 1 0\ncream 0 2\n")
    >>> vectors, known = WordVectors("glove.txt").vectors([("tea", "ice cream"), ("tea", "wine")])
    >>> vectors.tolist(), known.tolist()
    ([[0.0, 0.0], [0.0, 0.0]], [True, False])
    """

    has_direction = False

    def __init__(
        self, path: str | Path, features: str = "diff", *, words: Iterable[str] | None = None, name: str = ""
    ) -> None:
        self._features = [FEATURES[name] for name in check_features(features).split("+")]
        self._words = None if words is None else frozenset(words)
        self._path = Path(path)
        self._table = read_vectors(path, None if self._words is None else _keys(self._words))
        self.name = name or f"{title_of(self._path)}: {features}"
        self.fingerprint = hashlib.sha256(f"{self._table.checksum} {features}".encode()).hexdigest()

    def vectors(self, pairs: Sequence[Pair]) -> tuple[Vectors, Known]:
        row = {word: number for number, word in enumerate(dict.fromkeys(word for pair in pairs for word in pair))}
        words = np.zeros((len(row), self._table.dim), dtype=np.float32)
        is_known = np.zeros(len(row), dtype=bool)
        for word, number in row.items():
            found = self._look_up(word)
            if found is not None:
                words[number], is_known[number] = found, True
        heads = np.array([row[head] for head, _ in pairs], dtype=int)
        tails = np.array([row[tail] for _, tail in pairs], dtype=int)
        known = is_known[heads] & is_known[tails]
        vectors = np.concatenate([feature(words[heads], words[tails]) for feature in self._features], axis=1)
        vectors[~known] = 0
        return vectors, known

    def _look_up(self, word: str) -> Vector | None:
        assert self._words is None or word in self._words, f"{self._path} was not read for {word!r}"
        found = self._table.find(spellings(word))
        if found is not None:
            return found
        parts = parts_of(word)
        of_parts = [self._look_up_part(part) for part in parts]
        present = [vector for vector in of_parts if vector is not None]
        return np.mean(present, axis=0) if present and len(present) == len(parts) else None

    def _look_up_part(self, part: str) -> Vector | None:
        found = self._table.find(spellings(part))
        return self._table.subwords(part) if found is None and self._table.subwords is not None else found


def _keys(words: Iterable[str]) -> set[str]:
    return {key for word in words for part in (word, *parts_of(word)) for key in spellings(part)}


class Joined:
    r"""The concatenation of word vectors and pair vectors, such as `diff+dot+rel`.

    For analogy questions the paper joins the vectors of (h, t). For classification it adds the pair vectors of (t, h)
    (`both_directions`). So a classifier need not ask for both directions itself: `has_direction` is false.

    A pair is known if its words are. A pair that the pair vectors lack gets zeros from them.

    >>> _ = Path("glove.txt").write_text("tea 1 2\ncup 3 4\n")
    >>> _ = Path("rel.txt").write_text("tea__cup 7\n")
    >>> joined = Joined([WordVectors("glove.txt"), PairTable("rel.txt")], both_directions=True)
    >>> joined.name, joined.vectors([("tea", "cup")])[0].tolist()
    ('glove: diff+rel', [[2.0, 2.0, 7.0, 0.0]])
    """

    has_direction = False

    def __init__(self, members: Sequence[PairVectors], *, both_directions: bool, name: str = "") -> None:
        self._members = tuple(members)
        self._both_directions = both_directions
        self.name = name or "+".join(member.name for member in members)
        parts = [*(member.fingerprint for member in members), str(both_directions)]
        self.fingerprint = hashlib.sha256(" ".join(parts).encode()).hexdigest()

    def vectors(self, pairs: Sequence[Pair]) -> tuple[Vectors, Known]:
        turned = [(tail, head) for head, tail in pairs]
        known = np.ones(len(pairs), dtype=bool)
        columns = []
        for member in self._members:
            vectors, is_known = member.vectors(pairs)
            columns.append(vectors)
            if not member.has_direction:
                known &= is_known
            elif self._both_directions:
                columns.append(member.vectors(turned)[0])
        joined = np.concatenate(columns, axis=1)
        joined[~known] = 0
        return joined, known


class WordVectorSettings(Settings):
    """Which files, and what is made of the two words' vectors."""

    vectors: str = setting(..., "a text, .bin or .npz file")
    features: Annotated[str, AfterValidator(check_features)] = setting("diff", "diff, cat, dot, or several joined by +")
    pairs: str = setting("", "a file of pair vectors to join to them")


def _build(settings: WordVectorSettings, context: Context) -> System:
    words = {word for pair in context.pairs for word in pair}
    vectors: PairVectors = WordVectors(settings.vectors, settings.features, words=words, name=context.name)
    if settings.pairs:
        table = PairTable(settings.pairs, pairs=context.pairs)
        vectors = Joined([vectors, table], both_directions=context.task == "classification", name=context.name)
    return vector_system(vectors, FACTS)


BASELINE = Baseline(
    "word-vectors",
    "word vectors (GloVe, fastText, word2vec) of the two words, combined",
    _build,
    WordVectorSettings,
    tasks=("analogy", "classification", "mapping"),
)
