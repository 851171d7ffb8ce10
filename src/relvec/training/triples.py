"""The paper's three ways to make training triples: anchor, positive, negative (section 4.1)."""

import random
from collections.abc import Sequence

import torch
from torch import Tensor

from relvec.pairs import Pair
from relvec.training.batch import Batch, known_positives


def relation_triples(
    positives: int, negatives: int, count: int = 450, generator: torch.Generator | None = None
) -> Tensor:
    """Two positives of a relation and one of its hard negatives: [count, 3].

    Anchor and positive are numbers below `positives`, the negative is a number below `negatives`. Every two
    positives meet every negative, in random order; which of the two is the anchor is drawn. If that gives fewer
    than `count`, they are repeated, with anchor and positive swapped on every second pass; if more, `count` of
    them are drawn. Empty if no triple exists.

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
    negatives whose pair is, in any role of the batch, a positive of the relation of a_i and p_i.

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
    pairs: Sequence[Pair],
    relation: Sequence[int],
    category: Sequence[str],
    count: int = 5040,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Positives of two relations of one category and a positive from outside the category: [n, 3].

    `pairs[k]` is a positive of the relation with number `relation[k]`, whose category is `category[relation[k]]`,
    empty if it has none; the triples hold such numbers k. Each category has `count` distinct triples, or all if
    fewer exist. Anchor and positive are different pairs, and the negative is no positive of their category under
    any relation.

    >>> pairs = [("oak", "tree"), ("rose", "flower"), ("hot", "cold")]
    >>> triples = category_triples(pairs, relation=[0, 1, 2], category=["kinds", "kinds", "opposites"])
    >>> sorted(triples.tolist())
    [[0, 1, 2], [1, 0, 2]]
    """
    # The standard library draws from a range without writing it out.
    draw = random.Random(int(torch.randint(2**62, (), generator=generator)))
    triples: list[tuple[int, int, int]] = []
    for name in dict.fromkeys(filter(None, category)):
        inside = [item for item, number in enumerate(relation) if category[number] == name]
        known = {pairs[item] for item in inside}
        outside = [item for item, pair in enumerate(pairs) if pair not in known]
        two = [(a, p) for a in inside for p in inside if relation[a] != relation[p] and pairs[a] != pairs[p]]
        total = len(two) * len(outside)
        for code in draw.sample(range(total), min(count, total)):
            anchor_and_positive, negative = divmod(code, len(outside))
            triples.append((*two[anchor_and_positive], outside[negative]))
    return torch.tensor(triples, dtype=torch.long).reshape(-1, 3)
