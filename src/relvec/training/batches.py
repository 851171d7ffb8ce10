"""Which pairs meet in a step: R relations x K positives, or the paper's triples.

A sampler is a function of seed and step alone, so a resumed run meets the very batches it would have met.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

import torch

from relvec.data.rated import RatedRelation
from relvec.errors import RelvecError
from relvec.pairs import Pair
from relvec.training.batch import Batch
from relvec.training.triples import category_triples, in_batch_triples, relation_triples

Item = tuple[Pair, int, bool]
"""A pair, the number of its relation, and whether it is a positive of it."""


class Sampler(Protocol):
    steps_per_epoch: int

    def __call__(self, step: int) -> Batch: ...


class RelationBatches:
    """R relations x K positives (+ hard negatives): every pair is anchor, positive and negative at once.

    An epoch meets every relation once, in an order of its own.
    """

    def __init__(
        self, relations: Sequence[RatedRelation], relations_per_batch: int, positives: int, negatives: int, seed: int
    ) -> None:
        self._relations = relations
        self._size = min(relations_per_batch, len(relations))
        self._positives, self._negatives = positives, negatives
        self._seed = seed
        self.steps_per_epoch = len(relations) // self._size

    def __call__(self, step: int) -> Batch:
        epoch, place = divmod(step, self.steps_per_epoch)
        order = torch.randperm(len(self._relations), generator=_generator(self._seed, epoch, 0)).tolist()
        chosen = order[place * self._size : (place + 1) * self._size]
        generator = _generator(self._seed, step, 1)
        items: list[Item] = []
        for number in chosen:
            relation = self._relations[number]
            items += [(pair, number, True) for pair in _some(relation.positives, self._positives, generator)]
            items += [(pair, number, False) for pair in _some(relation.negatives, self._negatives, generator)]
        return make_batch(self._relations, items)


class TripleBatches:
    """The paper's triples: m of different relations a batch, their in-batch triples, and triples of categories.

    An epoch meets 450 triples a relation and 5,040 a category (section 4.1).
    """

    def __init__(
        self,
        relations: Sequence[RatedRelation],
        triples_per_batch: int,
        seed: int,
        per_relation: int = 450,
        per_category: int = 5040,
    ) -> None:
        for relation in relations:
            if not relation.negatives:
                raise RelvecError(
                    f"Relation {relation.name!r} has no negative pair for its triples; rate some lower, or set "
                    f"batches = 'relations'."
                )
        self._relations = relations
        self._size = min(triples_per_batch, len(relations))
        self._seed = seed
        self._per_relation, self._per_category = per_relation, per_category
        self.steps_per_epoch = math.ceil(len(relations) * per_relation / self._size)
        self._epoch = -1

    def __call__(self, step: int) -> Batch:
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._plan(epoch)
        chosen = self._own[place * self._size : (place + 1) * self._size]
        items: list[Item] = []
        for number, (anchor, positive, negative) in chosen:
            relation = self._relations[number]
            items += [(relation.positives[anchor], number, True), (relation.positives[positive], number, True)]
            items += [(relation.negatives[negative], number, False)]
        own = torch.arange(len(items)).reshape(-1, 3)
        start, end = (len(self._shared) * part // self.steps_per_epoch for part in (place, place + 1))
        shared = self._shared[start:end]
        members = torch.arange(len(items), len(items) + 3 * len(shared)).reshape(-1, 3)
        items += [item for triple in shared for item in triple]
        batch = make_batch(self._relations, items)
        return replace(batch, triples=torch.cat([own, in_batch_triples(batch, own), members]))

    def _plan(self, epoch: int) -> None:
        """Lay out the triples of an epoch: each pass takes one triple of every relation, in random order."""
        generator = _generator(self._seed, epoch, 2)
        triples = [
            relation_triples(len(r.positives), len(r.negatives), self._per_relation, generator=generator)
            for r in self._relations
        ]
        self._own = [
            (number, triples[number][turn].tolist())
            for turn in range(self._per_relation)
            for number in torch.randperm(len(self._relations), generator=generator).tolist()
        ]
        positives = [(pair, number, True) for number, r in enumerate(self._relations) for pair in r.positives]
        shared = category_triples(
            pairs=[pair for pair, _, _ in positives],
            relation=[number for _, number, _ in positives],
            category=[relation.category for relation in self._relations],
            count=self._per_category,
            generator=generator,
        )
        shared = shared[torch.randperm(len(shared), generator=generator)]
        self._shared = [[positives[member] for member in triple] for triple in shared.tolist()]
        self._epoch = epoch


def make_batch(relations: Sequence[RatedRelation], items: Iterable[Item]) -> Batch:
    """Number the distinct pairs and the categories of some items; there are no triples yet."""
    items = list(items)
    rows: dict[Pair, int] = {}
    categories: dict[str, int] = {}
    for pair, relation, _ in items:
        rows.setdefault(pair, len(rows))
        # A relation without a category is a category of its own.
        categories.setdefault(relations[relation].category or f"\0{relation}", len(categories))
    return Batch(
        pairs=tuple(rows),
        row=torch.tensor([rows[pair] for pair, _, _ in items]),
        relation=torch.tensor([relation for _, relation, _ in items]),
        category=torch.tensor([categories[relations[r].category or f"\0{r}"] for _, r, _ in items]),
        is_positive=torch.tensor([is_positive for _, _, is_positive in items]),
        triples=torch.empty((0, 3), dtype=torch.long),
    )


def _generator(seed: int, number: int, purpose: int) -> torch.Generator:
    return torch.Generator().manual_seed((seed * 1_000_003 + number) * 10 + purpose)


def _some(pairs: Sequence[Pair], count: int, generator: torch.Generator) -> list[Pair]:
    return [pairs[index] for index in torch.randperm(len(pairs), generator=generator)[:count].tolist()]
