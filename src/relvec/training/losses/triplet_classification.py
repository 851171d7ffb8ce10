"""The loss with which the paper fine-tunes."""

from torch import Tensor

from relvec.training.batch import Batch
from relvec.training.losses.base import Loss
from relvec.training.losses.classification import Classification
from relvec.training.losses.triplet import Triplet


class TripletClassification(Loss):
    """The sum of the triplet and the classification loss (section 4.1 of the paper).

        triplet + classification

    `vectors` is [items, dim], `batch.triples` [n, 3].

    >>> import torch
    >>> pairs = (("oak", "tree"), ("rose", "flower"), ("tree", "oak"))
    >>> is_positive, one = torch.tensor([True, True, False]), torch.zeros(3)
    >>> batch = Batch(pairs, torch.arange(3), one, one, is_positive, triples=torch.tensor([[0, 1, 2]]))
    >>> loss, vectors = TripletClassification(dim=2), torch.eye(3, 2)
    >>> bool(loss(vectors, batch) == loss.triplet(vectors, batch) + loss.classification(vectors, batch))
    True
    """

    def __init__(self, dim: int, margin: float = 1.0) -> None:
        super().__init__(dim)
        self.triplet = Triplet(dim, margin)
        self.classification = Classification(dim)

    def forward(self, vectors: Tensor, batch: Batch) -> Tensor:
        return self.triplet(vectors, batch) + self.classification(vectors, batch)
