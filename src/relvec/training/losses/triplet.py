"""The triplet loss."""

import torch
from torch import Tensor

from relvec.training.batch import Batch
from relvec.training.losses.base import Loss, columns


class Triplet(Loss):
    """The anchor is closer to the positive than to the negative, by a margin (section 3.2 of the paper).

        mean over triples (a, p, n) of max(0, |a - p| - |a - n| + margin),  with |.| the L2 norm

    >>> pairs = (("oak", "tree"), ("rose", "flower"), ("tree", "oak"))
    >>> is_positive, one = torch.tensor([True, True, False]), torch.zeros(3)
    >>> batch = Batch(pairs, torch.arange(3), one, one, is_positive, triples=torch.tensor([[0, 1, 2]]))
    >>> vectors = torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 5.5]])
    >>> Triplet(dim=2)(vectors, batch)  # 5 - 5.5 + 1
    tensor(0.5000)
    """

    def __init__(self, dim: int, margin: float = 1.0) -> None:
        super().__init__(dim)
        self.margin = margin

    def forward(self, vectors: Tensor, batch: Batch) -> Tensor:
        return self.terms(vectors, batch).mean()

    def terms(self, vectors: Tensor, batch: Batch) -> Tensor:
        """What each triple adds to the mean: [n]."""
        anchor, positive, negative = columns(batch.triples)
        distance = distances(vectors)
        return (distance[anchor, positive] - distance[anchor, negative] + self.margin).clamp(min=0)


def distances(vectors: Tensor) -> Tensor:
    """L2 distances of all vectors [items, dim]: [items, items], with gradient 0 where two are equal.

    By one matrix product, whose backward pass takes a small part of the time of `torch.cdist`'s.

    >>> distances(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([[0., 5.],
            [5., 0.]])
    """
    centred = vectors - vectors.mean(dim=0)  # distances stay, rounding errors shrink
    squared_norm = centred.square().sum(dim=1)
    scale = squared_norm.unsqueeze(1) + squared_norm
    squared = scale - 2 * centred @ centred.T
    is_equal = squared <= 8 * torch.finfo(vectors.dtype).eps * scale  # that is a rounding error; a nan stays a nan
    return squared.where(~is_equal, 1).sqrt().where(~is_equal, 0)
