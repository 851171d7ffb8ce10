"""What the losses on cosines share: every positive item of the batch is an anchor that is compared with every item."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from relvec.training.batch import Batch
from relvec.training.losses.base import Loss


class CosineLoss(Loss):
    """A loss on the cosines s, divided by a temperature t."""

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
