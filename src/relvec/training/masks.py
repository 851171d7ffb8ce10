"""Which items of a batch must not serve as negatives."""

from torch import Tensor

from relvec.training.batch import Batch


def known_positives(batch: Batch, group: Tensor, anchors: Tensor) -> Tensor:
    """Whether the pair of item k is, in any role of this batch, a positive of the group of anchor i: [anchors, items].

    `group` is `batch.relation` or `batch.category`, `anchors` holds item numbers. An anchor that is a positive
    item is always one of its own group's known positives.

    >>> import torch
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
