"""A teacher: a relation model whose similarities between pairs are learned beside the relations themselves.

The relations say which pairs belong together, the teacher how near all others are, and it knows pairs that have no
relation in the data, too. Unlike in `relvec.distillation`, only similarities are compared, not vectors.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import kl_div, normalize

from relvec.model.cached_vectors import ModelVectors
from relvec.pairs import Pair
from relvec.training.samplers import seeded_generator

TEMPERATURE = 0.1
"""Above that of the contrastive loss, so that pairs of middling similarity count too."""


class Teacher:
    """Compares the student's similarities with those of `vectors`, on the pairs of a step and some `unlabelled` ones.

    `pairs_per_batch` unlabelled pairs are added to each step, half of them reversed. They are a function of seed and
    step alone.
    """

    def __init__(
        self,
        vectors: ModelVectors,
        weight: float = 1.0,
        unlabelled: Sequence[Pair] = (),
        pairs_per_batch: int = 32,
        seed: int = 0,
    ) -> None:
        self.vectors, self.weight, self.unlabelled = vectors, weight, unlabelled
        self._count, self._seed = pairs_per_batch, seed

    def added_pairs(self, step: int) -> list[Pair]:
        if not self.unlabelled:
            return []
        generator = seeded_generator(self._seed, step, 3)
        rows = torch.randint(len(self.unlabelled), (self._count,), generator=generator).tolist()
        pairs = [self.unlabelled[row] for row in rows]
        return [*pairs[::2], *((tail, head) for head, tail in pairs[1::2])]

    def loss(self, student: Tensor, pairs: Sequence[Pair]) -> Tensor:
        """The weighted loss of the student's vectors [pairs, dim]; the teacher encodes each pair once, ever."""
        teacher = torch.from_numpy(self.vectors.vectors(pairs)[0]).to(student)
        return self.weight * neighbour_loss(student, teacher)


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
