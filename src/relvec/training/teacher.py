"""A teacher: a relation model that is learned from beside the relations themselves.

The relations say which pairs belong together, the teacher how near all others are, and it knows pairs that have no
relation in the data, too. The student learns its similarities between pairs, or its vectors, which say more.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import kl_div, normalize

from relvec.data.rated import RatedRelation
from relvec.model.cached_vectors import Known, PairVectors
from relvec.model.relation_model import RelBERT
from relvec.pairs import Pair
from relvec.similarity import Vectors, normalized
from relvec.training.samplers import seeded_generator
from relvec.training.targets import Targets, similarity_loss, vector_loss

TEMPERATURE = 0.1
"""Above that of the contrastive loss, so that pairs of middling similarity count too."""

SIMILARITY_WEIGHT = 5.0
"""What the similarities count beside the vectors, whose loss is some thirty times larger."""


class SideBySide:
    """Relation models as one teacher: of each pair, their vectors of length 1 one after the other.

    With `wccn` above 0, `prepare` lets each model's vectors vary less within the `relations`.
    """

    has_direction = True

    def __init__(
        self, models: Sequence[PairVectors], relations: Sequence[RatedRelation] = (), wccn: float = 0.0
    ) -> None:
        self.name = " + ".join(model.name for model in models)
        self.fingerprint = repr([wccn, *(model.fingerprint for model in models)])
        self._models, self._relations, self._wccn = models, relations, wccn
        self._maps: list[Vectors] = []

    def prepare(self) -> None:
        rows = [(number, pair) for number, relation in enumerate(self._relations) for pair in relation.positives]
        numbers, pairs = np.array([number for number, _ in rows]), [pair for _, pair in rows]
        if self._wccn:
            self._maps = [wccn_map(vectors, numbers, self._wccn) for vectors in self._unmapped(pairs)]

    def vectors(self, pairs: Sequence[Pair]) -> tuple[Vectors, Known]:
        found = self._unmapped(pairs)
        if self._maps:
            found = [normalized(vectors @ made) for vectors, made in zip(found, self._maps, strict=True)]
        return np.hstack(found), np.ones(len(pairs), dtype=bool)

    def _unmapped(self, pairs: Sequence[Pair]) -> list[Vectors]:
        return [normalized(model.vectors(pairs)[0]) for model in self._models]


class Teacher:
    """What a student learns of `vectors`, on the pairs of a step and some `unlabelled` ones.

    It learns the similarities or, if there are pairs `to_fit` its dimension on, the vectors. `pairs_per_batch`
    unlabelled pairs are added to each step, half of them reversed. They are a function of seed and step alone.
    """

    def __init__(
        self,
        vectors: SideBySide,
        weight: float = 1.0,
        unlabelled: Sequence[Pair] = (),
        pairs_per_batch: int = 32,
        seed: int = 0,
        to_fit: Sequence[Pair] = (),
    ) -> None:
        self.vectors, self.weight, self.unlabelled = vectors, weight, unlabelled
        self._count, self._seed, self._to_fit = pairs_per_batch, seed, to_fit
        self._targets: Targets | None = None

    def prepare(self, student: RelBERT) -> None:
        """Fit the teacher's vectors to the student as it is before the first step."""
        self.vectors.prepare()
        if self._to_fit:
            self._targets = Targets.fit(self.vectors, student, self._to_fit, self._seed)

    def added_pairs(self, step: int) -> list[Pair]:
        if not self.unlabelled:
            return []
        generator = seeded_generator(self._seed, step, 3)
        rows = torch.randint(len(self.unlabelled), (self._count,), generator=generator).tolist()
        pairs = [self.unlabelled[row] for row in rows]
        return [*pairs[::2], *((tail, head) for head, tail in pairs[1::2])]

    def loss(self, student: Tensor, pairs: Sequence[Pair]) -> Tensor:
        """The weighted loss of the student's vectors [pairs, dim]; the teacher encodes each pair once, ever."""
        if self._targets is None:
            return self.weight * neighbour_loss(student, torch.from_numpy(self.vectors.vectors(pairs)[0]).to(student))
        teacher, target = (torch.from_numpy(found).to(student) for found in self._targets(pairs))
        return self.weight * (vector_loss(student, target) + SIMILARITY_WEIGHT * similarity_loss(student, teacher))


def wccn_map(vectors: Vectors, classes: NDArray[np.int64], power: float) -> Vectors:
    """Within-class covariance normalization: the map T [dim, dim] that shrinks what varies within a class.

    With the covariance Q diag(w) Q' of the rows less the means of their classes it is T = Q diag((w + mean w)^-p) Q'.

    >>> vectors = np.array([[1, 3], [1, -3], [-1, 3], [-1, -3]], dtype=np.float32)
    >>> (vectors @ wccn_map(vectors, np.array([0, 0, 1, 1]), power=0.5)).round(2).tolist()
    [[0.47, 0.82], [0.47, -0.82], [-0.47, 0.82], [-0.47, -0.82]]
    """
    sums = np.zeros((classes.max() + 1, vectors.shape[1]))
    np.add.at(sums, classes, vectors)
    within = vectors - (sums / np.bincount(classes)[:, None])[classes]
    variances, directions = np.linalg.eigh(within.T @ within / len(within))
    scale = (variances.clip(0) + variances.mean()) ** -power
    return ((directions * scale) @ directions.T).astype(np.float32)


def neighbour_loss(student: Tensor, teacher: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """How far the student's neighbours of each pair of a batch are from the teacher's.

        mean over i of KL(p_i || q_i), p_i(k) = e^(cos(t_i, t_k) / T) / sum over j != i of e^(cos(t_i, t_j) / T)

    with q_i the same of the student's vectors, k != i, and T the temperature. Student [pairs, dim] and teacher [pairs,
    teacher dim] need not have the same dimension. A number added to all cosines of a pair changes nothing.

    >>> vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> neighbour_loss(2 * vectors, vectors).item(), neighbour_loss(vectors.flip(0), vectors).item() > 0.1
    (0.0, True)
    """
    student_log, teacher_log = (
        (unit @ unit.T / temperature).fill_diagonal_(torch.finfo(unit.dtype).min).log_softmax(dim=1)
        for unit in (normalize(vectors, dim=1) for vectors in (student, teacher))
    )
    return kl_div(student_log, teacher_log, reduction="batchmean", log_target=True)
