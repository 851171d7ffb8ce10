"""The pairs of one training step, and the paper's three ways to make triples of them (section 4.1)."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from relvec.data.rated import RatedRelation
from relvec.pairs import Pair

RELATION_TRIPLES = 450  # of a relation in an epoch, as in the paper
CATEGORY_TRIPLES = 5040  # of a category


@dataclass(frozen=True)
class Batch:
    """Distinct pairs, each encoded once, and the items that refer to them.

    An item is a pair in a role: a positive of a relation, or a hard negative of it (badly rated for that very
    relation). One pair may be several items. `row`, `relation`, `category` and `is_positive` have one entry for
    each item; `triples` [n, 3] holds item numbers (anchor, positive, negative) for the losses that are built on
    triples, and is empty for the others. `known` [n, 2] holds (item, row): that pair is a positive of the relation of
    that item, though perhaps in no role of this batch.
    """

    pairs: tuple[Pair, ...]
    row: Tensor
    relation: Tensor
    category: Tensor
    is_positive: Tensor
    triples: Tensor
    known: Tensor = field(default_factory=lambda: torch.empty((0, 2), dtype=torch.long))

    def to(self, device: torch.device) -> "Batch":
        moved = (self.row, self.relation, self.category, self.is_positive, self.triples, self.known)
        return Batch(self.pairs, *(tensor.to(device) for tensor in moved))


def known_positives(batch: Batch, group: Tensor, anchors: Tensor) -> Tensor:
    """Whether the pair of item k is, here or in the data, a positive of the group of anchor i: [anchors, items].

    `group` is `batch.relation` or `batch.category`, `anchors` holds item numbers.

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
    item, row = batch.known.unbind(dim=1)
    is_known[number[item], row] = True
    return is_known[number[anchors]][:, batch.row]


def relation_triples(
    positives: int, negatives: int, count: int = RELATION_TRIPLES, generator: torch.Generator | None = None
) -> Tensor:
    """Two positives of a relation and one of its hard negatives: [count, 3].

    Every two positives meet every negative, in random order; which of the two is the anchor is drawn. If that gives
    fewer than `count`, they are repeated, with anchor and positive swapped on every second pass.

    >>> len(relation_triples(positives=10, negatives=10))
    450
    """
    two = torch.combinations(torch.arange(positives))
    negative = torch.arange(negatives).repeat(len(two)).unsqueeze(1)
    triples = torch.cat([two.repeat_interleave(negatives, dim=0), negative], dim=1)
    if not len(triples):
        return triples
    swapped = triples[:, [1, 0, 2]]
    is_turned = torch.rand(len(triples), 1, generator=generator) < 0.5
    passes = (torch.where(is_turned, swapped, triples), torch.where(is_turned, triples, swapped))
    orders = [torch.randperm(len(triples), generator=generator) for _ in range(0, count, len(triples))]
    return torch.cat([passes[number % 2][order] for number, order in enumerate(orders)])[:count]


def in_batch_triples(batch: Batch, triples: Tensor) -> Tensor:
    """The anchors and positives of the other triples as negatives: up to 2m(m-1) triples from `triples` [m, 3].

    For triples i and j, these are (a_i, p_i, a_j) and (a_i, p_i, p_j), all item numbers of the batch, without the
    negatives whose pair is a known positive of the relation of a_i and p_i.

    >>> pairs = (("oak", "tree"), ("rose", "flower"), ("hot", "cold"), ("big", "small"))
    >>> relation, triples = torch.tensor([0, 0, 1, 1]), torch.tensor([[0, 1, 2], [3, 2, 0]])
    >>> batch = Batch(pairs, torch.arange(4), relation, relation, torch.ones(4, dtype=torch.bool), triples)
    >>> in_batch_triples(batch, triples).tolist()
    [[0, 1, 3], [0, 1, 2], [3, 2, 0], [3, 2, 1]]
    """
    anchor, positive, _ = triples.unbind(dim=1)
    candidates = triples[:, :2].flatten()
    is_negative = ~known_positives(batch, batch.relation, anchor)[:, candidates]
    number, candidate = is_negative.nonzero(as_tuple=True)
    return torch.stack([anchor[number], positive[number], candidates[candidate]], dim=1)


def category_triples(
    relations: Sequence[RatedRelation], count: int = CATEGORY_TRIPLES, generator: torch.Generator | None = None
) -> Tensor:
    """Positives of two relations of one category and a positive from outside the category: [n, 3].

    The triples hold numbers of the positives of all relations, in their order. Each category has `count` distinct
    triples, or all if fewer exist. Anchor and positive are different pairs, and the negative is no positive of their
    category under any relation.

    >>> kinds = [RatedRelation(pair[0], "kinds", (pair,), ()) for pair in [("oak", "tree"), ("rose", "flower")]]
    >>> category_triples([*kinds, RatedRelation("opposites", "", (("hot", "cold"),), ())]).sort(dim=0).values.tolist()
    [[0, 0, 2], [1, 1, 2]]
    """
    pairs = [pair for relation in relations for pair in relation.positives]
    relation = [number for number, each in enumerate(relations) for _ in each.positives]
    # The standard library draws from a range without writing it out.
    draw = random.Random(int(torch.randint(2**62, (), generator=generator)))
    triples: list[tuple[int, int, int]] = []
    for name in dict.fromkeys(each.category for each in relations if each.category):
        inside = [item for item, number in enumerate(relation) if relations[number].category == name]
        known = {pairs[item] for item in inside}
        outside = [item for item, pair in enumerate(pairs) if pair not in known]
        two = [(a, p) for a in inside for p in inside if relation[a] != relation[p] and pairs[a] != pairs[p]]
        total = len(two) * len(outside)
        for code in draw.sample(range(total), min(count, total)):
            anchor_and_positive, negative = divmod(code, len(outside))
            triples.append((*two[anchor_and_positive], outside[negative]))
    return torch.tensor(triples, dtype=torch.long).reshape(-1, 3)
