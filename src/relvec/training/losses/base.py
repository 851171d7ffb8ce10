"""What every loss is, and what those on cosines share."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from relvec.errors import RelvecError
from relvec.training.batch import Batch


class Loss(nn.Module):
    """A scalar mean over a batch: `loss(vectors, batch)`.

    `vectors` [items, dim] holds the vector of each item, `encoded[batch.row]`, in full precision. `dim` is the
    length of a vector. A loss that needs triples reads `batch.triples`.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, vectors: Tensor, batch: Batch) -> Tensor:
        raise NotImplementedError


def columns(triples: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The anchors, positives and negatives of triples [n, 3]."""
    if not len(triples):
        raise RelvecError("The data has no triples; rate more pairs of the relations low, or choose another loss.")
    anchor, positive, negative = triples.unbind(dim=1)
    return anchor, positive, negative


class CosineLoss(Loss):
    """A loss on the cosines s, divided by a temperature t: every positive is an anchor, compared with every item."""

    def __init__(self, dim: int, temperature: float = 0.05) -> None:
        super().__init__(dim)
        self.temperature = temperature

    def scores(self, vectors: Tensor, anchors: Tensor) -> Tensor:
        """s / t of the anchors and all items: [anchors, items]."""
        unit = normalize(vectors, dim=1)
        return unit[anchors] @ unit.T / self.temperature


def anchors_of(batch: Batch) -> Tensor:
    """The numbers of the positive items."""
    return batch.is_positive.nonzero().squeeze(1)


def same_relation(batch: Batch, anchors: Tensor) -> Tensor:
    """Whether anchor and item belong, as a positive or as a hard negative, to one relation: [anchors, items]."""
    return batch.relation[anchors].unsqueeze(1) == batch.relation


def positives(batch: Batch, anchors: Tensor) -> Tensor:
    """Whether the item is a positive of the anchor's relation and another pair than the anchor: [anchors, items]."""
    other_pair = batch.row[anchors].unsqueeze(1) != batch.row
    return same_relation(batch, anchors) & batch.is_positive & other_pair


def log_sum(scores: Tensor, counts: Tensor) -> Tensor:
    """log of the sum of e^score over the items that count: [anchors, 1]."""
    # The lowest finite number, as minus infinity makes the gradient NaN where no item counts.
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~counts, lowest).logsumexp(dim=1, keepdim=True)
