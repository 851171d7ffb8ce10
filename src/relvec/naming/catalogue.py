"""A catalogue: relations with a sentence, examples and a prototype each, and how sure a name is."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from relvec.naming.calibration import softmax
from relvec.naming.relatedness import Relatedness
from relvec.naming.relation_space import RelationSpace, means_of
from relvec.naming.sentences import filled
from relvec.pairs import Pair
from relvec.similarity import Vectors, normalized

if TYPE_CHECKING:
    from torch import Tensor

PAIRS_PER_STEP = 4096

SMALLEST = 1e-9  # probability of a relation in a geometric mean

NARROW = 0.6
"""If a pair is in an entry, how probable one of its relations must be to be said in its own sentence."""


class Explanation(NamedTuple):
    """A relation in which a pair may stand.

    `probability` is that of this relation among all of the catalogue and no relation at all. Where `is_reversed`, the
    relation leads from the tail to the head, and so does the sentence.
    """

    relation: str
    sentence: str
    probability: float
    examples: tuple[Pair, ...]
    is_reversed: bool


@dataclass(frozen=True)
class NamedRelation:
    """What a catalogue says of a relation in words; X and Y in the sentence stand for head and tail.

    `wordings` are definition, sentence and name of each of the relations that it was made of, for a search by text and
    for what is said where one of them is sure.
    """

    name: str
    sentence: str = ""
    definition: str = ""
    category: str = ""
    examples: tuple[Pair, ...] = ()
    wordings: tuple[tuple[str, str, str], ...] = ()

    def said_of(self, pair: Pair, is_reversed: bool = False, wording: int = -1) -> str:
        """What is said of a pair, in the sentence of the relation with this number among the wordings, if not -1.

        >>> NamedRelation("worker-to-tool", "a X uses the Y").said_of(("oar", "rower"), is_reversed=True)
        'a rower uses the oar'
        """
        sentence = self.sentence if wording < 0 else self.wordings[wording][1]
        return filled(sentence or f"X : Y ({self.name})", pair[::-1] if is_reversed else pair)


@dataclass(frozen=True)
class Prototypes:
    """Where relations are in the space: one or more rows for each, and for each that is turned round.

    `counts` says of how many pairs a row is the mean: the fewer, the less sure is its place. `wordings` are the numbers
    of the rows among the wordings of their relations, -1 for a row that has no sentence of its own.
    """

    means: Vectors
    counts: NDArray[np.float32]
    relations: NDArray[np.int64]
    is_reversed: NDArray[np.bool_]
    wordings: NDArray[np.int64]

    def log_likelihoods(self, points: Vectors, between: Vectors) -> NDArray[np.float32]:
        """How likely each relation gives each point: [points, rows], up to a number that is the same for all rows.

        Pairs are normally distributed about their relation with variance 1, relations about 0 with variance `between`.
        A mean m of n pairs tells that the relation is at m b / (b + 1/n), give or take a variance of b / (n b + 1).
        """
        return scores_of(points, self.means, *self.certainty(between))

    def certainty(self, between: Vectors) -> tuple[Vectors, Vectors, Vectors]:
        """b / (b + 1/n) and 1 / variance, both [rows, directions], and the sum of the logarithms of the variances."""
        known = self.counts[:, None] * between
        variances = 1 + between / (known + 1)
        return known / (known + 1), np.reciprocal(variances), np.log(variances).sum(axis=1)


Numbers = TypeVar("Numbers", Vectors, "Tensor")


def scores_of(points: Numbers, means: Numbers, shares: Numbers, weights: Numbers, norms: Numbers) -> Numbers:
    """The log-likelihoods of `Prototypes`, from its means and `certainty`; of arrays, or of tensors that learn."""
    places = means * shares
    return -0.5 * (points**2 @ weights.T - 2 * points @ (places * weights).T + (places**2 * weights).sum(1) + norms)


@dataclass(frozen=True)
class Catalogue:
    """Names the relation of a vector.

    `texts` are vectors of the relations' wordings by the sentence encoder `text_encoder`, and `probes` vectors of a few
    pairs by the model that the catalogue belongs to.
    """

    relations: tuple[NamedRelation, ...]
    space: RelationSpace
    prototypes: Prototypes
    relatedness: Relatedness
    temperature: float = 1.0
    text_encoder: str = ""
    texts: Vectors = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))
    probes: Vectors = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))

    def related(self, vectors: Vectors) -> NDArray[np.float32]:
        """The probability of each vector's pair to stand in any relation at all."""
        return self.relatedness(normalized(vectors))

    @cached_property
    def answers(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """What may be said of a pair: the numbers of relations, and which are turned round (these come last)."""
        codes = np.unique(self._codes)
        return codes % len(self.relations), codes >= len(self.relations)

    @property
    def _codes(self) -> NDArray[np.int64]:
        """A number for what each row of the prototypes says."""
        return self.prototypes.relations + len(self.relations) * self.prototypes.is_reversed

    @cached_property
    def _rows(self) -> list[NDArray[np.int64]]:
        """The rows of the prototypes that give each of the answers."""
        return [np.flatnonzero(self._codes == code) for code in np.unique(self._codes)]

    def names(self, vectors: Vectors) -> NDArray[np.float32]:
        """The probability of each of the answers, given that there is some relation: [vectors, answers]."""
        return self._summed(self.by_row(vectors))

    def by_row(self, vectors: Vectors) -> NDArray[np.float32]:
        """The probability of each row of the prototypes, given that there is some relation: [vectors, rows]."""
        likelihoods = self.prototypes.log_likelihoods(self.space(vectors), self.space.between)
        return softmax(likelihoods / self.temperature)

    def _summed(self, of_rows: NDArray[np.float32]) -> NDArray[np.float32]:
        starts = np.cumsum([0, *(len(rows) for rows in self._rows[:-1])])
        return np.add.reduceat(of_rows[:, np.concatenate(self._rows)], starts, axis=1)

    def explain(self, pairs: Sequence[Pair | None], vectors: Vectors, top: int = 5) -> Iterator[list[Explanation]]:
        """The best relations of each vector; the sentence of a vector without a pair keeps its X and Y."""
        for start in range(0, len(vectors), PAIRS_PER_STEP):
            step = vectors[start : start + PAIRS_PER_STEP]
            of_rows, related = self.by_row(step), self.related(step)
            names = self._summed(of_rows)
            best = np.argsort(-names, axis=1, kind="stable")[:, :top]
            for at, pair in enumerate(pairs[start : start + PAIRS_PER_STEP]):
                yield [
                    self._explanation(pair, answer, float(names[at, answer] * related[at]), of_rows[at])
                    for answer in best[at].tolist()
                ]

    def in_common(self, vectors: Vectors, top: int = 5) -> list[Explanation]:
        """The relations in which all pairs may stand; a probability is the geometric mean of those of the pairs."""
        of_rows = self.by_row(vectors)
        of_pairs = self._summed(of_rows) * self.related(vectors)[:, None]
        shared = np.exp(np.log(np.maximum(of_pairs, SMALLEST)).mean(axis=0))
        best = np.argsort(-shared, kind="stable")[:top].tolist()
        return [self._explanation(None, answer, float(shared[answer]), of_rows.mean(axis=0)) for answer in best]

    def _explanation(
        self, pair: Pair | None, answer: int, probability: float, of_rows: NDArray[np.float32]
    ) -> Explanation:
        relation, is_reversed = self.relations[self.answers[0][answer]], bool(self.answers[1][answer])
        rows = self._rows[answer]
        likeliest = rows[of_rows[rows].argmax()]
        is_sure = of_rows[likeliest] >= NARROW * of_rows[rows].sum()
        wording = int(self.prototypes.wordings[likeliest]) if is_sure else -1
        sentence = relation.said_of(pair or ("X", "Y"), is_reversed, wording)
        examples = tuple(example for example in relation.examples if pair not in (example, example[::-1]))
        return Explanation(relation.name, sentence, probability, examples, is_reversed)

    def by_text(self, vectors: Vectors) -> Vectors:
        """The cosine of text vectors with the best wording of each relation."""
        return np.maximum.reduceat(self.by_wording(vectors), self._first_wordings, axis=1)

    def by_wording(self, vectors: Vectors) -> Vectors:
        """The cosine of text vectors with each wording of all relations, both without what all wordings share."""
        center = self.texts.mean(axis=0)
        similar: Vectors = normalized(vectors - center) @ normalized(self.texts - center).T
        return similar

    def means_of_wordings(self) -> Vectors:
        """Where each wording of all relations stands in the space; of a row without one, its relation's mean."""
        rows = self.prototypes
        forward = ~rows.is_reversed
        sizes = [len(relation.wordings) for relation in self.relations]
        means = np.repeat(means_of(rows.means[forward], rows.relations[forward]), sizes, axis=0)
        own = forward & (rows.wordings >= 0)
        means[self._first_wordings[rows.relations[own]] + rows.wordings[own]] = rows.means[own]
        return means

    @property
    def _first_wordings(self) -> NDArray[np.int64]:
        return np.cumsum([0, *(len(relation.wordings) for relation in self.relations[:-1])])

    def to_bytes(self) -> bytes:
        """A compressed numpy archive; the large matrices are rounded to a byte a number."""
        said = json.dumps([asdict(relation) for relation in self.relations], ensure_ascii=False)
        arrays: dict[str, Any] = {
            "relations": np.frombuffer(said.encode(), dtype=np.uint8),
            "center": self.space.center,
            "between": self.space.between,
            "counts": self.prototypes.counts.astype(np.uint16),
            "prototype_relations": self.prototypes.relations.astype(np.uint16),
            "is_reversed": self.prototypes.is_reversed,
            "wordings": self.prototypes.wordings.astype(np.int16),
            "probes": self.probes.astype(np.float16),
            "calibration": json.dumps({"temperature": self.temperature, "text_encoder": self.text_encoder}),
            **_rounded("projection", self.space.projection),
            **_rounded("means", self.prototypes.means),
            **_rounded("texts", self.texts),
            **{f"relatedness_{name}": value for name, value in self.relatedness.arrays().items()},
        }
        stream = BytesIO()
        np.savez_compressed(stream, **arrays)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        with np.load(BytesIO(content)) as arrays:
            said = json.loads(arrays["relations"].tobytes())
            calibration = json.loads(str(arrays["calibration"]))
            kind = "relatedness_"
            weights = {name.removeprefix(kind): arrays[name] for name in arrays if name.startswith(kind)}
            return cls(
                tuple(NamedRelation(**{name: _as_tuples(value) for name, value in each.items()}) for each in said),
                RelationSpace(arrays["center"], _restored("projection", arrays), arrays["between"]),
                Prototypes(
                    _restored("means", arrays),
                    arrays["counts"].astype(np.float32),
                    arrays["prototype_relations"].astype(np.int64),
                    arrays["is_reversed"],
                    arrays["wordings"].astype(np.int64),
                ),
                Relatedness(**weights),
                calibration["temperature"],
                calibration["text_encoder"],
                _restored("texts", arrays),
                arrays["probes"].astype(np.float32),
            )


def _as_tuples(value: Any) -> Any:
    return tuple(map(tuple, value)) if isinstance(value, list) else value


def _rounded(name: str, matrix: Vectors) -> dict[str, NDArray[Any]]:
    """A byte a number, and the scale of each column."""
    scale = np.maximum(np.abs(matrix).max(axis=0, initial=0.0), 1e-12).astype(np.float32) / 127
    return {name: np.round(matrix / scale).astype(np.int8), f"{name}_scale": scale}


def _restored(name: str, arrays: Mapping[str, NDArray[Any]]) -> Vectors:
    return arrays[name].astype(np.float32) * arrays[f"{name}_scale"]
