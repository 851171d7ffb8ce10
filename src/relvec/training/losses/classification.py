"""The classification loss, and its sum with the triplet loss, with which the paper fine-tunes."""

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from relvec.training.batch import Batch
from relvec.training.losses.base import Loss, columns
from relvec.training.losses.triplet import Triplet


class Classification(Loss):
    """A classifier, trained jointly, tells whether two pairs share the relation (section 3.2 of the paper).

        mean over triples (a, p, n) of -log g(a, p) - log(1 - g(a, n)),  g(u, v) = sigmoid(W [u; v; |v - u|])

    W is [1, 3 dim], |.| elementwise.

    >>> pairs = (("oak", "tree"), ("rose", "flower"), ("tree", "oak"))
    >>> is_positive, one = torch.tensor([True, True, False]), torch.zeros(3)
    >>> batch = Batch(pairs, torch.arange(3), one, one, is_positive, triples=torch.tensor([[0, 1, 2]]))
    >>> loss = Classification(dim=2)
    >>> _ = nn.init.zeros_(loss.classifier.weight)
    >>> loss(torch.eye(3, 2), batch)  # undecided: -2 log(1/2)
    tensor(1.3863, grad_fn=<MeanBackward0>)
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.classifier = nn.Linear(3 * dim, 1, bias=False)

    def forward(self, vectors: Tensor, batch: Batch) -> Tensor:
        anchor, positive, negative = columns(batch.triples)
        same, different = self._scores(vectors, anchor, positive), self._scores(vectors, anchor, negative)
        return (-logsigmoid(same) - logsigmoid(-different)).mean()

    def _scores(self, vectors: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """W [u; v; |v - u|] for the items `first` [n] and `second` [n]; each distinct combination is computed once."""
        weight_u, weight_v, weight_difference = self.classifier.weight[0].split(self.dim)
        codes, where = torch.unique(first * len(vectors) + second, return_inverse=True)
        u, v = codes // len(vectors), codes % len(vectors)
        # index_select has a faster backward pass than square brackets.
        difference = (vectors.index_select(0, v) - vectors.index_select(0, u)).abs() @ weight_difference
        return ((vectors @ weight_u)[u] + (vectors @ weight_v)[v] + difference)[where]


class TripletClassification(Loss):
    """The sum of the triplet and the classification loss (section 4.1 of the paper).

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
