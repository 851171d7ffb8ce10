"""InfoNCE and InfoLOOB."""

import torch
from torch import Tensor

from relvec.training.batch import Batch, known_positives
from relvec.training.losses.base import CosineLoss, anchors_of, log_sum, positives, same_relation


class InfoNCE(CosineLoss):
    """Two positives are found among the negatives of their relation (not in the paper; its authors' later loss).

        mean over relations of the mean over their positives i != j of
        -log( e^(s_ij / t) / (e^(s_ij / t) + sum over negatives n of e^(s_in / t)) ),  with s the cosine

    The negatives are the relation's hard negatives and the positives of the other relations, except pairs that are
    known positives of the relation. A relation without two positives or negatives does not count.

    >>> pairs = (("oak", "tree"), ("rose", "flower"), ("tree", "oak"))
    >>> is_positive, one = torch.tensor([True, True, False]), torch.zeros(3)
    >>> batch = Batch(pairs, torch.arange(3), one, one, is_positive, triples=torch.empty(0, 3))
    >>> InfoNCE(dim=2)(torch.ones(3, 2), batch)  # undecided between a positive and a negative: log 2
    tensor(0.6931)
    """

    def forward(self, vectors: Tensor, batch: Batch) -> Tensor:
        anchors = anchors_of(batch)
        scores = self.scores(vectors, anchors)
        same = same_relation(batch, anchors)
        # Of its own relation the items that are not positive, of the others those that are.
        negative = (same != batch.is_positive) & ~known_positives(batch, batch.relation, anchors)
        positive = positives(batch, anchors) & negative.any(dim=1, keepdim=True)
        terms = self.log_denominator(scores, log_sum(scores, negative)) - scores

        pairs_of_relation = same[:, anchors].to(scores.dtype) @ positive.sum(dim=1, dtype=scores.dtype)
        weight = positive / pairs_of_relation.clamp(min=1).unsqueeze(1)  # sums to 1 for each relation
        return (terms * weight).sum() / weight.sum().clamp(min=1)

    def log_denominator(self, positive: Tensor, negatives: Tensor) -> Tensor:
        """From the scores of the positives [anchors, items] and the log of the sum over the negatives [anchors, 1]."""
        return torch.logaddexp(positive, negatives)


class InfoLOOB(InfoNCE):
    """InfoNCE that leaves the positive out of the denominator (not in the paper; its authors' later loss).

        mean over relations of the mean over their positives i != j of
        -log( e^(s_ij / t) / sum over negatives n of e^(s_in / t) ),  with s the cosine

    The negatives are those of InfoNCE. It has no lower bound of 0.

    >>> pairs = (("oak", "tree"), ("rose", "flower"), ("tree", "oak"))
    >>> is_positive, one = torch.tensor([True, True, False]), torch.zeros(3)
    >>> batch = Batch(pairs, torch.arange(3), one, one, is_positive, triples=torch.empty(0, 3))
    >>> vectors = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    >>> InfoLOOB(dim=2, temperature=0.5)(vectors, batch)  # (-1 - 1) / 0.5
    tensor(-4.)
    """

    def log_denominator(self, positive: Tensor, negatives: Tensor) -> Tensor:
        return negatives
