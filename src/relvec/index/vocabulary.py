"""The pairs of an index: each word once, two numbers a pair, perhaps the name of its relation."""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from relvec.errors import RelvecError, counted, errors_as
from relvec.io.tables import RELATION_COLUMNS
from relvec.io.word2vec import UNREADABLE
from relvec.pairs import Pair, as_pairs, as_word, plain_values, table_columns

Numbers = NDArray[np.int32]
Mask = NDArray[np.bool_]

# numpy parses the head of an array as Python, and in Python 3.11 two threads that parse disturb each other (gh-106905).
_ONE_READER = threading.Lock()


@dataclass(frozen=True)
class PairVocabulary:
    """Distinct pairs in rows 0, 1, ...; row r is (words[heads[r]], words[tails[r]]).

    Its relation is relations[labels[r]]; the first relation, "", is that of a pair without a label.

    >>> pairs = PairVocabulary.of([("Paris", "France"), ("tea", "cup")], ["capital", ""])
    >>> pairs.pair(0), pairs.relation(0), pairs.relation(1)
    (('Paris', 'France'), 'capital', '')
    >>> pairs.with_word(["france"]).tolist()
    [True, False]
    """

    words: list[str]
    heads: Numbers
    tails: Numbers
    relations: list[str]
    labels: Numbers

    @classmethod
    def of(cls, pairs: Sequence[Pair], relations: Sequence[str] | None = None) -> Self:
        """Number the words; the pairs must be distinct."""
        number: dict[str, int] = {}
        heads = np.array([number.setdefault(head, len(number)) for head, _ in pairs], dtype=np.int32)
        tails = np.array([number.setdefault(tail, len(number)) for _, tail in pairs], dtype=np.int32)
        name: dict[str, int] = {"": 0}
        labels = np.zeros(len(pairs), dtype=np.int32)
        if relations is not None:
            labels[:] = [name.setdefault(as_label(relation), len(name)) for relation in relations]
        return cls(list(number), heads, tails, list(name), labels)

    def __len__(self) -> int:
        return len(self.heads)

    def __contains__(self, pair: Pair) -> bool:
        return pair in self._row_of

    def pair(self, row: int) -> Pair:
        return self.words[self.heads[row]], self.words[self.tails[row]]

    def pairs(self) -> list[Pair]:
        return [(self.words[head], self.words[tail]) for head, tail in zip(self.heads, self.tails, strict=True)]

    def relation(self, row: int) -> str:
        return self.relations[self.labels[row]]

    def all_relations(self) -> list[str]:
        """The relation of every row."""
        return [self.relations[label] for label in self.labels]

    def rows_of(self, pairs: Iterable[Pair]) -> NDArray[np.int64]:
        """The row of each pair, all of which are here."""
        return np.array([self._row_of[pair] for pair in pairs], dtype=np.int64)

    def with_word(self, words: Iterable[str]) -> Mask:
        """Which rows have one of the words as head or tail; upper and lower case are alike."""
        is_one = self._is_one_of(words)
        return is_one[self.heads] | is_one[self.tails]

    def with_head(self, words: Iterable[str]) -> Mask:
        return self._is_one_of(words)[self.heads]

    def with_tail(self, words: Iterable[str]) -> Mask:
        return self._is_one_of(words)[self.tails]

    def with_relation(self, relations: Iterable[str]) -> Mask:
        """Which rows have one of the relations, each of which some row must have."""
        return np.isin(self.labels, [self.relations.index(relation) for relation in relations])

    def joined(self, other: Self) -> "PairVocabulary":
        """These rows and then those of the other."""
        return PairVocabulary.of([*self.pairs(), *other.pairs()], [*self.all_relations(), *other.all_relations()])

    def without(self, rows: NDArray[np.int64]) -> "PairVocabulary":
        """The other rows, and only their words."""
        kept: list[int] = np.delete(np.arange(len(self)), rows).tolist()
        return PairVocabulary.of([self.pair(row) for row in kept], [self.relation(row) for row in kept])

    def write(self, path: Path) -> None:
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                words=_as_bytes(self.words),
                heads=self.heads,
                tails=self.tails,
                relations=_as_bytes(self.relations),
                labels=self.labels,
            )

    @classmethod
    def read(cls, path: Path) -> Self:
        problem, fix = f"{path} is not a complete table of pairs", "build the index again"
        with errors_as(problem, fix, *UNREADABLE), _ONE_READER, np.load(path, allow_pickle=False) as file:
            words, relations = (bytes(file[name]).decode().split("\n") for name in ("words", "relations"))
            return cls(words, file["heads"], file["tails"], relations, file["labels"])

    def _is_one_of(self, words: Iterable[str]) -> Mask:
        """Of each word of the vocabulary."""
        is_one = np.zeros(len(self.words), dtype=bool)
        for word in words:
            is_one[self._spelled_alike.get(word.casefold(), [])] = True
        return is_one

    @cached_property
    def _row_of(self) -> dict[Pair, int]:
        return {pair: row for row, pair in enumerate(self.pairs())}

    @cached_property
    def _spelled_alike(self) -> dict[str, list[int]]:
        numbers: dict[str, list[int]] = {}
        for number, word in enumerate(self.words):
            numbers.setdefault(word.casefold(), []).append(number)
        return numbers


def distinct_pairs(pairs: Any, relations: Sequence[str] | None = None) -> tuple[list[Pair], list[str]]:
    """Each pair once, with the first relation that it is given, or that a table of pairs has in a column for it.

    >>> distinct_pairs([("a", "b"), ("c", "d"), ("a", "b")], ["", "r", "s"])
    ([('a', 'b'), ('c', 'd')], ['s', 'r'])
    """
    found: dict[Pair, str] = {}
    listed = as_pairs(pairs)
    columns = (relations is None and table_columns(pairs)) or {}
    given = next((columns[name] for name in RELATION_COLUMNS if name in columns), relations)
    names = [""] * len(listed) if given is None else [str(name) for name in plain_values(given)]
    if len(names) != len(listed):
        counts = f"{counted(len(names), 'relation')} for {counted(len(listed), 'pair')}"
        raise RelvecError(f"Got {counts}; give one for each.")
    for pair, name in zip(listed, names, strict=True):
        found[pair] = found.get(pair) or name
    return list(found), list(found.values())


def as_label(relation: str) -> str:
    """The name of a relation, "" for none; a line break within would make two names of it in the file."""
    return as_word(relation, "The relation: ") if relation and str(relation).strip() else ""


def _as_bytes(lines: list[str]) -> NDArray[np.uint8]:
    return np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)
