"""The pairs of one training step, and which of them must not serve as negatives."""

from dataclasses import dataclass

import torch

from relvec.pairs import Pair


@dataclass(frozen=True)
class Batch:
    """Distinct pairs, each encoded once, and the items that refer to them.

    An item is a pair in a role: a positive of a relation, or a hard negative of it (badly rated for that very
    relation). One pair may be several items. `row`, `relation`, `category` and `is_positive` have one entry for
    each item; `triples` [n, 3] holds item numbers (anchor, positive, negative) for the losses that are built on
    triples, and is empty for the others.
    """

    pairs: tuple[Pair, ...]
    row: torch.Tensor
    relation: torch.Tensor
    category: torch.Tensor
    is_positive: torch.Tensor
    triples: torch.Tensor

    def to(self, device: torch.device) -> "Batch":
        moved = (self.row, self.relation, self.category, self.is_positive, self.triples)
        return Batch(self.pairs, *(tensor.to(device) for tensor in moved))


def known_positives(batch: Batch, group: torch.Tensor, anchors: torch.Tensor) -> torch.Tensor:
    """Whether the pair of item k is, in any role of this batch, a positive of the group of anchor i: [anchors, items].

    `group` is `batch.relation` or `batch.category`, `anchors` holds item numbers. An anchor that is a positive
    item is always one of its own group's known positives.

    >>> pairs = (("oak", "tree"), ("rose", "flower"), ("tree", "oak"))
    >>> is_positive = torch.tensor([True, True, False, False])
    >>> relation = torch.tensor([0, 0, 0, 1])  # the last item, a hard negative of relation 1, is a positive of 0
    >>> batch = Batch(pairs, torch.tensor([0, 1, 2, 0]), relation, relation, is_positive, torch.empty(0, 3))
    >>> known_positives(batch, batch.relation, torch.tensor([1])).tolist()
    [[True, True, False, True]]
    """
    groups, number = group.unique(return_inverse=True)
    is_known = batch.is_positive.new_zeros(len(groups), int(batch.row.max()) + 1)
    is_known[number[batch.is_positive], batch.row[batch.is_positive]] = True
    return is_known[number[anchors]][:, batch.row]
