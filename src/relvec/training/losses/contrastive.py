"""The supervised-contrastive loss."""

from torch import Tensor

from relvec.training.batch import Batch, known_positives
from relvec.training.losses.base import CosineLoss, anchors_of, log_sum, positives, same_relation


class Contrastive(CosineLoss):
    """Every positive is anchor, positive and negative at once (not in the paper; supervised-contrastive).

        mean over positives i of -1/|P(i)| sum over p in P(i) of log( e^(s_ip / t) / sum over k of e^(s_ik / t) )

    with s the cosine and P(i) the other positives of the relation of i. k runs over P(i) and the negatives: all other
    items of the batch, hard negatives of any relation included, except pairs that are known positives of the relation
    of i. Without `same_category_negatives`, positives of other relations of the category of i are no
    negatives either, unless they are hard negatives of its own relation. An i with empty P(i) does not count.

    >>> import torch
    >>> pairs = (("oak", "tree"), ("rose", "flower"), ("tree", "oak"))
    >>> is_positive, one = torch.tensor([True, True, False]), torch.zeros(3)
    >>> batch = Batch(pairs, torch.arange(3), one, one, is_positive, triples=torch.empty(0, 3))
    >>> Contrastive(dim=2)(torch.ones(3, 2), batch)  # undecided between a positive and a negative: log 2
    tensor(0.6931)
    """

    def __init__(self, dim: int, temperature: float = 0.05, same_category_negatives: bool = True) -> None:
        super().__init__(dim, temperature)
        self.same_category_negatives = same_category_negatives

    def forward(self, vectors: Tensor, batch: Batch) -> Tensor:
        anchors = anchors_of(batch)
        scores = self.scores(vectors, anchors)
        positive = positives(batch, anchors)
        log_probability = scores - log_sum(scores, positive | self._negatives(batch, anchors))
        count = positive.sum(dim=1)
        of_anchor = (log_probability * positive).sum(dim=1) / count.clamp(min=1)
        return -of_anchor.sum() / (count > 0).sum().clamp(min=1)

    def _negatives(self, batch: Batch, anchors: Tensor) -> Tensor:
        negative = ~known_positives(batch, batch.relation, anchors)
        if self.same_category_negatives:
            return negative
        own_hard_negative = same_relation(batch, anchors) & ~batch.is_positive
        return negative & (own_hard_negative | ~known_positives(batch, batch.category, anchors))
