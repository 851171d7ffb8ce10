"""Making a catalogue from relations with examples, and a model that encodes them.

Prototypes, space and relatedness are made of the training part of each relation, and of negatives made from it. The
first held-out pair of each relation calibrates the probabilities; the others are for whoever measures them.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from relvec.data.rated import RatedRelation, split
from relvec.naming.calibration import best_temperature
from relvec.naming.catalogue import Catalogue, NamedRelation, Prototypes
from relvec.naming.relatedness import Relatedness
from relvec.naming.relation_space import RelationSpace, means_of
from relvec.pairs import Pair
from relvec.similarity import Vectors, normalized

PAIRS_PER_RELATION = 16
SCRAMBLED_PER_RELATION = 8
RANDOM_PER_RELATION = 4
EXAMPLES = 5
TRIES = 20

Encode = Callable[[Sequence[Pair]], Vectors]


@dataclass(frozen=True)
class Asked:
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


def held_out(relations: Sequence[RatedRelation], place: int, *, seed: int = 1) -> Asked:
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
    return Asked(related, np.array(labels), scrambled, negatives.random(len(related)))


def build_catalogue(relations: Sequence[RatedRelation], encode: Encode, *, seed: int = 0) -> Catalogue:
    """The catalogue of a model whose vectors `encode` gives."""
    trained = split(relations, "train")
    pairs = [pair for relation in trained for pair in relation.positives[:PAIRS_PER_RELATION]]
    labels = np.concatenate([np.full(min(len(r.positives), PAIRS_PER_RELATION), n) for n, r in enumerate(trained)])
    vectors = encode([*pairs, *(pair[::-1] for pair in pairs)])
    # A relation that is turned round is another one, unless it is symmetric.
    symmetric = np.array([relation.is_symmetric for relation in relations])
    turned = np.where(symmetric, np.arange(len(relations)), len(relations) + np.arange(len(relations)))
    _, rows = np.unique(np.concatenate([labels, turned[labels]]), return_inverse=True)
    space = RelationSpace.fit(vectors, rows)
    points = space(vectors)
    prototypes = Prototypes(
        means_of(points, rows),
        np.bincount(rows).astype(np.float32),
        np.concatenate([np.arange(len(relations)), np.flatnonzero(~symmetric)]),
        np.repeat([False, True], [len(relations), int((~symmetric).sum())]),
    )
    negatives = Negatives(trained, seed)
    unrelated = [
        pair for r in trained for pair in negatives.scrambled(r.positives, r.positives, SCRAMBLED_PER_RELATION)
    ] + negatives.random(RANDOM_PER_RELATION * len(relations))
    relatedness = Relatedness.fit(normalized(vectors), normalized(encode(unrelated)))
    catalogue = Catalogue(tuple(_named(relations, points, rows)), space, prototypes, relatedness)
    return _calibrated(catalogue, held_out(relations, 0), encode)


def _named(relations: Sequence[RatedRelation], points: Vectors, rows: NDArray[np.int64]) -> Iterator[NamedRelation]:
    """The relations in words, with those examples that are nearest to the prototype and share no word."""
    for number, relation in enumerate(split(relations, "train")):
        pairs = relation.positives[:PAIRS_PER_RELATION]
        places = np.flatnonzero(rows[: len(points) // 2] == number)
        distances = np.linalg.norm(points[places] - points[places].mean(axis=0), axis=1)
        chosen: list[Pair] = []
        for place in np.argsort(distances, kind="stable"):
            pair = pairs[place]
            if not {word for each in chosen for word in each} & set(pair) and len(chosen) < EXAMPLES:
                chosen.append(pair)
        yield NamedRelation(relation.name, relation.sentence, relation.definition, relation.category, tuple(chosen))


def _calibrated(catalogue: Catalogue, asked: Asked, encode: Encode) -> Catalogue:
    vectors = normalized(encode([*asked.related, *asked.scrambled, *asked.random]))
    related, others = vectors[: len(asked.related)], vectors[len(asked.related) :]
    scores = catalogue.prototypes.log_likelihoods(catalogue.space(related), catalogue.space.between)
    temperature = best_temperature(scores, is_named(catalogue, asked.labels))
    relatedness = catalogue.relatedness.calibrated(related, others)
    return replace(catalogue, relatedness=relatedness, temperature=temperature)


def is_named(catalogue: Catalogue, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows of the prototypes are the relation with this number, the right way round: [labels, rows]."""
    prototypes = catalogue.prototypes
    return (prototypes.relations == labels[:, None]) & ~prototypes.is_reversed


def text_vectors(relations: Sequence[NamedRelation], encode: Callable[[Sequence[str]], Vectors]) -> Vectors:
    """What is said of each relation as one vector: definition, sentence and name."""
    said = [(relation.definition, relation.sentence, relation.name.replace("-", " ")) for relation in relations]
    vectors = normalized(encode([text for texts in said for text in texts]))
    return normalized(vectors.reshape(len(relations), 3, -1).mean(axis=1))
