"""Making a catalogue from relations with examples, and a model that encodes them.

Prototypes, space and relatedness are made of the training part of each relation, and of negatives made from it. The
first held-out pair of each relation calibrates the probabilities; the others are for whoever measures them.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relvec.data.rated import RatedRelation, split
from relvec.naming.calibration import best_temperature
from relvec.naming.catalogue import Catalogue, NamedRelation, Prototypes
from relvec.naming.entries import Entries, entries_of
from relvec.naming.relatedness import Relatedness
from relvec.naming.relation_space import RelationSpace, means_of
from relvec.naming.sentences import with_slots_swapped
from relvec.pairs import Pair
from relvec.similarity import Vectors, normalized

PAIRS_PER_RELATION = 16
SCRAMBLED_PER_RELATION = 8
RANDOM_PER_RELATION = 4
EXAMPLES = 5
TRIES = 20

Encode = Callable[[Sequence[Pair]], Vectors]


@dataclass(frozen=True)
class EvaluationPairs:
    """Pairs by which a catalogue is calibrated or measured: some in a relation, and as many in none.

    `labels` are the numbers of the relations of `related`. A scrambled pair has the head of one pair of a relation and
    the tail of another; a random one has any two words.
    """

    related: list[Pair]
    labels: NDArray[np.int64]
    scrambled: list[Pair]
    random: list[Pair]


class Negatives:
    """Pairs that are in none of the relations, in either direction; half of them are turned round."""

    def __init__(self, relations: Sequence[RatedRelation], seed: int) -> None:
        self._random = random.Random(seed)
        known = {pair for relation in relations for pair in relation.positives}
        self._known = known | {(tail, head) for head, tail in known}
        self._words = sorted({word for pair in known for word in pair})

    def scrambled(self, pairs: Sequence[Pair], tails: Sequence[Pair], count: int) -> list[Pair]:
        """Heads of `pairs` with tails of others of the same relation."""
        return self._drawn(lambda: (self._random.choice(pairs)[0], self._random.choice(tails)[1]), count)

    def random(self, count: int) -> list[Pair]:
        """Any two words of the relations."""
        return self._drawn(lambda: (self._random.choice(self._words), self._random.choice(self._words)), count)

    def _drawn(self, draw: Callable[[], Pair], count: int) -> list[Pair]:
        found: dict[Pair, None] = {}
        for _ in range(TRIES * count):
            pair = draw()
            if pair[0] != pair[1] and pair not in self._known and len(found) < count:
                found[pair] = None
        return [pair if self._random.random() < 0.5 else pair[::-1] for pair in found]


def held_out(relations: Sequence[RatedRelation], place: int, *, seed: int = 1) -> EvaluationPairs:
    """Held-out pairs, the one at `place` of each relation; none of them made the catalogue."""
    negatives = Negatives(relations, seed + place)
    related: list[Pair] = []
    labels: list[int] = []
    scrambled: list[Pair] = []
    for number, (whole, relation) in enumerate(zip(relations, split(relations, "valid"), strict=True)):
        if place < len(relation.positives):
            related.append(relation.positives[place])
            labels.append(number)
            scrambled += negatives.scrambled(related[-1:], whole.positives, 1)
    return EvaluationPairs(related, np.array(labels), scrambled, negatives.random(len(related)))


def build_catalogue(
    relations: Sequence[RatedRelation], encode: Encode, *, groups: Sequence[Mapping[str, Any]] = (), seed: int = 0
) -> Catalogue:
    """The catalogue of a model whose vectors `encode` gives; relations of a group are one entry with several rows."""
    entries = entries_of(relations, groups)
    trained = split(relations, "train")
    pairs = [pair for relation in trained for pair in relation.positives[:PAIRS_PER_RELATION]]
    labels = np.concatenate([np.full(min(len(r.positives), PAIRS_PER_RELATION), n) for n, r in enumerate(trained)])
    vectors = encode([*pairs, *(pair[::-1] for pair in pairs)])
    rows = rows_both_ways(relations, labels)
    space = RelationSpace.fit(vectors, rows)
    points = space(vectors)
    symmetric = np.array([relation.is_symmetric for relation in relations])
    of_rows = np.concatenate([np.arange(len(relations)), np.flatnonzero(~symmetric)])
    is_turned = np.arange(len(of_rows)) >= len(relations)
    has_direction = ~np.array([entry.is_symmetric for entry in entries.listed])[entries.numbers[of_rows]]
    prototypes = Prototypes(
        means_of(points, rows),
        np.bincount(rows).astype(np.float32),
        entries.numbers[of_rows],
        (is_turned != entries.is_reversed[of_rows]) & has_direction,
        np.where(has_direction, _places(entries.numbers)[of_rows], -1),
    )
    negatives = Negatives(trained, seed)
    unrelated = [
        pair for r in trained for pair in negatives.scrambled(r.positives, r.positives, SCRAMBLED_PER_RELATION)
    ] + negatives.random(RANDOM_PER_RELATION * len(relations))
    relatedness = Relatedness.fit(normalized(vectors), normalized(encode(unrelated)))
    forward = slice(len(pairs))
    distances = np.linalg.norm(points[forward] - prototypes.means[rows[forward]], axis=1)
    named = _named(relations, entries, pairs, labels, distances)
    catalogue = Catalogue(tuple(named), space, prototypes, relatedness)
    return calibrated(catalogue, relations, encode, groups)


def rows_both_ways(relations: Sequence[RatedRelation], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of the prototypes for pairs of the relations with these numbers, then for the same pairs turned round.

    A relation that is turned round is another one, unless it is symmetric.
    """
    turned = np.arange(len(relations))
    has_direction = ~np.array([relation.is_symmetric for relation in relations])
    turned[has_direction] = len(relations) + np.arange(np.count_nonzero(has_direction))
    return np.concatenate([labels, turned[labels]])


def _places(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each relation among those of its entry."""
    return np.array([np.count_nonzero(numbers[:at] == number) for at, number in enumerate(numbers)])


def _named(
    relations: Sequence[RatedRelation],
    entries: Entries,
    pairs: Sequence[Pair],
    labels: NDArray[np.int64],
    distances: NDArray[np.float32],
) -> Iterator[NamedRelation]:
    """The entries in words, with those examples that are nearest to a prototype and share no word."""
    for number, entry in enumerate(entries.listed):
        places = np.flatnonzero(entries.numbers[labels] == number)
        chosen: list[Pair] = []
        for place in places[np.argsort(distances[places], kind="stable")]:
            pair = pairs[place][::-1] if entries.is_reversed[labels[place]] else pairs[place]
            if not {word for each in chosen for word in each} & set(pair) and len(chosen) < EXAMPLES:
                chosen.append(pair)
        members = np.flatnonzero(entries.numbers == number).tolist()
        wordings = tuple(_wording(relations[member], bool(entries.is_reversed[member])) for member in members)
        yield NamedRelation(entry.name, entry.sentence, entry.definition, entry.category, tuple(chosen), wordings)


def _wording(relation: RatedRelation, is_reversed: bool) -> tuple[str, str, str]:
    """Definition, sentence and name, with X and Y as the entry has them."""
    said = with_slots_swapped if is_reversed else str
    return said(relation.definition), said(relation.sentence), relation.name.replace("-", " ")


def calibrated(
    catalogue: Catalogue,
    relations: Sequence[RatedRelation],
    encode: Encode,
    groups: Sequence[Mapping[str, Any]] = (),
) -> Catalogue:
    """The catalogue with probabilities that fit the first held-out pair of each relation."""
    entries, asked = entries_of(relations, groups), held_out(relations, 0)
    vectors = normalized(encode([*asked.related, *asked.scrambled, *asked.random]))
    related, others = vectors[: len(asked.related)], vectors[len(asked.related) :]
    prototypes = catalogue.prototypes
    scores = prototypes.log_likelihoods(catalogue.space(related), catalogue.space.between)
    is_right = is_named((prototypes.relations, prototypes.is_reversed), entries, asked.labels)
    relatedness = catalogue.relatedness.calibrated(related, others)
    return replace(catalogue, relatedness=relatedness, temperature=best_temperature(scores, is_right))


def is_named(
    answers: tuple[NDArray[np.int64], NDArray[np.bool_]], entries: Entries, labels: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which of the answers are right for pairs of the relations with these numbers: [labels, answers]."""
    numbers, is_reversed = answers
    return (numbers == entries.numbers[labels, None]) & (is_reversed == entries.is_reversed[labels, None])


def text_vectors(relations: Sequence[NamedRelation], encode: Callable[[Sequence[str]], Vectors]) -> Vectors:
    """Each wording of each relation as one vector: that of definition, sentence and name."""
    texts = [text for relation in relations for wording in relation.wordings for text in wording]
    vectors = normalized(encode(texts))
    return normalized(vectors.reshape(len(texts) // 3, 3, -1).mean(axis=1))
