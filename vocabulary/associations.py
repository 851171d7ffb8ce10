"""Words that are met together, by the vectors of GloVe."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from words import Words

from relvec.pairs import Pair

MOST_FREQUENT = 30_000
LEAST_FREQUENT_RANK = 100  # before it come new, year, time: met with every word
NEIGHBOURS = 10
NAMES = 6  # so many names among its neighbours make a word a name too: john, frank
NEAREST = {"n": 12, "v": 5, "a": 5}  # of each part of speech
AT_LEAST = 0.3
# Animals, artifacts, body parts, food, natural objects, persons, plants, substances: what has parts, uses and places.
CONCRETE = frozenset((5, 6, 8, 13, 17, 18, 20, 27))
OTHERS_TURN = 5  # other words come in when those have had so many tails of each part of speech
CHUNK = 1024

Matrix = NDArray[np.float32]


class Associations:
    """`vectors` has a row for each word of `by_frequency`."""

    def __init__(self, words: Words, by_frequency: list[str], vectors: Matrix) -> None:
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        self._vectors = vectors / np.maximum(norms, 1e-9)
        self._by_frequency = by_frequency
        self._words = words

    def similarity(self, one: str, other: str) -> float:
        """The cosine; of words of two parts, of the mean of these; 0 if one has no vector."""
        return float(self._vector(one) @ self._vector(other))

    def pairs(self) -> Iterator[Pair]:
        """Heads with their nearest tails first, then with the next; other heads after the concrete ones."""
        places = self._content_words()
        words = [self._by_frequency[place] for place in places]
        vectors = self._vectors[places]
        tails_of = {
            pos: np.array([row for row, word in enumerate(words) if pos in self._words.parts_of_speech(word)], int)
            for pos in NEAREST
        }
        turns: list[tuple[int, Pair]] = []
        for start in range(0, len(words), CHUNK):
            cosines = vectors[start : start + CHUNK] @ vectors.T
            for pos, size in NEAREST.items():
                columns = tails_of[pos]
                near = cosines[:, columns]
                order = np.argsort(-near, axis=1, kind="stable")[:, : 2 * size]
                for row, head in enumerate(words[start : start + CHUNK]):
                    near_first = [words[columns[place]] for place in order[row] if near[row, place] >= AT_LEAST]
                    chosen = [tail for tail in near_first if tail != head]
                    first = 0 if self._words.topic(head) in CONCRETE else OTHERS_TURN
                    for place, tail in enumerate(chosen[:size]):
                        pair = self._words.natural(head) or head, self._words.natural(tail) or tail
                        turns.append((first + place, pair))
        yield from (pair for _, pair in sorted(turns, key=lambda turn: turn[0]))

    def _vector(self, term: str) -> Matrix:
        rows = [self._words.rank[part] for part in term.lower().split(" ") if part in self._words.rank]
        if not rows:
            return np.zeros(self._vectors.shape[1], np.float32)
        mean: Matrix = self._vectors[rows].mean(axis=0)
        return mean / max(float(np.linalg.norm(mean)), 1e-9)

    def _content_words(self) -> list[int]:
        """The rows of frequent nouns, verbs and adjectives in their base form that are no names, nor met with names."""
        names = np.array([self._words.is_name(self._words.lemma(word)) for word in self._by_frequency[:MOST_FREQUENT]])
        frequent = self._vectors[:MOST_FREQUENT]
        found = []
        for start in range(LEAST_FREQUENT_RANK, len(frequent), CHUNK):
            cosines = frequent[start : start + CHUNK] @ frequent.T
            near = np.argpartition(-cosines, min(NEIGHBOURS, len(frequent) - 1), axis=1)[:, : NEIGHBOURS + 1]
            for row, count in enumerate(names[near].sum(axis=1), start=start):
                word = self._by_frequency[row]
                content = any(pos in NEAREST for pos in self._words.parts_of_speech(word))
                if (
                    content
                    and self._words.lemma(word) == word
                    and not names[row]
                    and count < NAMES
                    and self._words.in_use(word)
                ):
                    found.append(row)
        return found
