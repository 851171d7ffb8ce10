"""The pairs of each step: R relations x K positives with negatives, or the paper's triples.

A sampler is a function of seed and step alone, so a resumed run sees the batches it would have seen.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest

import torch

from relvec.data.overlap import inflected
from relvec.data.rated import RatedRelation, joined
from relvec.errors import RelvecError
from relvec.pairs import Pair
from relvec.training.batch import (
    CATEGORY_TRIPLES,
    RELATION_TRIPLES,
    Batch,
    category_triples,
    in_batch_triples,
    relation_triples,
)
from relvec.training.recipe import Recipe

VALIDATION_PAIRS = 2
FLIP_PROBABILITY = 0.5

# How often each kind is tried: of pairs (h_i, t_i) and (h_j, t_j), which words make the negative.
KINDS = {"scrambled": 0.4, "heads": 0.2, "tails": 0.2, "reversed": 0.2}
TRIES_PER_NEGATIVE = 8

BatchItem = tuple[Pair, int, bool]
"""A pair, the number of its relation, and whether it is a positive of it."""


class Scrambler:
    """Makes hard negatives by scrambling a relation's own positives.

    A model that only knows what kind of word the head is, and what kind the tail, cannot tell (h_i, t_j) from
    (h_i, t_i). These negatives ask whether the two words belong together.

    None has the same word twice, is a positive of a `known` relation (in either order, if that one is symmetric), or
    has one of the `excluded` keys (see `relvec.data.overlap.inflected`), such as those of benchmark pairs.
    """

    def __init__(self, known: Sequence[RatedRelation], excluded: Collection[Pair] = ()) -> None:
        self._positives = {pair for relation in known for pair in relation.known_positives}
        self._excluded = excluded

    def __call__(self, relation: RatedRelation, count: int, generator: torch.Generator) -> list[Pair]:
        """Up to `count` distinct negatives; fewer where a few tries find no more."""
        found: dict[Pair, None] = {}
        kinds = torch.tensor([0.0 if k == "reversed" and relation.is_symmetric else KINDS[k] for k in KINDS])
        for _ in range(TRIES_PER_NEGATIVE * count):
            if len(found) == count:
                break
            kind = list(KINDS)[int(torch.multinomial(kinds, 1, generator=generator))]
            first, second = torch.randint(len(relation.positives), (2,), generator=generator).tolist()
            pair = scrambled(kind, relation.positives[first], relation.positives[second])
            if self.is_negative(pair):
                found[pair] = None
        return list(found)

    def is_negative(self, pair: Pair) -> bool:
        if pair[0] == pair[1] or pair in self._positives:
            return False
        return not self._excluded or inflected(pair) not in self._excluded


def scrambled(kind: str, first: Pair, second: Pair) -> Pair:
    """
    >>> [scrambled(kind, ("baker", "bread"), ("brewer", "beer")) for kind in KINDS]
    [('baker', 'beer'), ('baker', 'brewer'), ('bread', 'beer'), ('bread', 'baker')]
    """
    return {
        "scrambled": (first[0], second[1]),
        "heads": (first[0], second[0]),
        "tails": (first[1], second[1]),
        "reversed": (first[1], first[0]),
    }[kind]


class RelationBatches:
    """R relations x K positives (+ hard negatives); an epoch goes through every relation, in an order of its own.

    The recipe says how many, and how many negatives the `scrambler` makes of a relation's own positives. If it says to
    flip relations, all pairs of an asymmetric one are turned round half of the time. It then counts as another
    relation, in a category of its own, with its number plus the number of relations.
    """

    def __init__(self, relations: Sequence[RatedRelation], recipe: Recipe, scrambler: Scrambler) -> None:
        turned = [
            replace(
                each,
                category=f"{each.category}, turned" if each.category else "",
                positives=tuple((tail, head) for head, tail in each.positives),
            )
            for each in relations
        ]
        self._relations, self._both_ways = relations, [*relations, *turned]
        self._recipe, self._scrambler = recipe, scrambler
        self._size = min(recipe.relations_per_batch, len(relations))
        self.steps_per_epoch = math.ceil(len(relations) / self._size)

    def __call__(self, step: int) -> Batch:
        recipe = self._recipe
        epoch, place = divmod(step, self.steps_per_epoch)
        order = torch.randperm(len(self._relations), generator=seeded_generator(recipe.seed, epoch, 0)).tolist()
        start = min(place * self._size, len(order) - self._size)  # the last batch takes some of the one before
        chosen = order[start : start + self._size]
        generator = seeded_generator(recipe.seed, step, 1)
        items: list[BatchItem] = []
        for number in chosen:
            relation = self._relations[number]
            positives = _some(relation.positives, recipe.positives_per_relation, generator)
            negatives = _some(relation.negatives, recipe.negatives_per_relation, generator)
            made = self._scrambler(relation, recipe.scrambled_negatives_per_relation, generator)
            negatives += [pair for pair in made if pair not in relation.negatives]
            own = [*((pair, number, True) for pair in positives), *((pair, number, False) for pair in negatives)]
            flips = recipe.flip_relations and not relation.is_symmetric
            if flips and torch.rand(1, generator=generator) < FLIP_PROBABILITY:
                own = [((tail, head), number + len(self._relations), good) for (head, tail), _, good in own]
            items += own
        return make_batch(self._both_ways, items)


class TripleBatches:
    """The paper's triples: m of a batch, their in-batch triples, and triples of categories.

    An epoch has 450 triples a relation and 5,040 a category (section 4.1). The m triples are of different relations,
    except in batches in which one pass over the relations ends and the next begins.
    """

    def __init__(self, relations: Sequence[RatedRelation], triples_per_batch: int, seed: int) -> None:
        for relation in relations:
            if not relation.negatives:
                problem = f"Relation {relation.name!r} has no negative pair for its triples"
                raise RelvecError(f"{problem}; rate more of its pairs low, leave it out, or do without triples.")
        self._relations = relations
        self._size = min(triples_per_batch, len(relations))
        self._seed = seed
        self.steps_per_epoch = math.ceil(len(relations) * RELATION_TRIPLES / self._size)
        self._epoch = -1

    def __call__(self, step: int) -> Batch:
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._plan(epoch)
        chosen = self._own[place * self._size : (place + 1) * self._size]
        items: list[BatchItem] = []
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
        generator = seeded_generator(self._seed, epoch, 2)
        triples = [
            relation_triples(len(r.positives), len(r.negatives), RELATION_TRIPLES, generator=generator)
            for r in self._relations
        ]
        self._own = [
            (number, triples[number][turn].tolist())
            for turn in range(RELATION_TRIPLES)
            for number in torch.randperm(len(self._relations), generator=generator).tolist()
        ]
        positives = [(pair, number, True) for number, r in enumerate(self._relations) for pair in r.positives]
        shared = category_triples(self._relations, CATEGORY_TRIPLES, generator)
        shared = shared[torch.randperm(len(shared), generator=generator)]
        self._shared = [[positives[member] for member in triple] for triple in shared.tolist()]
        self._epoch = epoch


def validation_batch(train: Sequence[RatedRelation], valid: Sequence[RatedRelation]) -> Batch:
    """Two positives and two negatives of every relation, with all their triples, as one fixed batch.

    They are held-out pairs; a relation with too few of them is filled up with training pairs.
    """
    items: list[BatchItem] = []
    own = []
    generator = torch.Generator().manual_seed(0)
    for number, (known, held_out) in enumerate(zip(train, valid, strict=True)):
        positives = (*held_out.positives, *known.positives)[:VALIDATION_PAIRS]
        negatives = (*held_out.negatives, *known.negatives)[:VALIDATION_PAIRS]
        if negatives:
            triples = relation_triples(len(positives), len(negatives), len(negatives), generator=generator)
            own.append(triples + len(items) + torch.tensor([0, 0, len(positives)]))
        items += [(pair, number, True) for pair in positives] + [(pair, number, False) for pair in negatives]
    batch = make_batch([joined(*parts) for parts in zip(train, valid, strict=True)], items)
    if not own:
        return batch
    firsts = torch.stack([triples[0] for triples in own])
    return replace(batch, triples=torch.cat([*own, in_batch_triples(batch, firsts)]))


def with_parents(relations: Sequence[RatedRelation]) -> list[RatedRelation]:
    """The relations, and each category of several relations as one more relation, with all their positives.

    They take turns, so that the first two are of different relations: it is these that validation compares.
    """
    categories: dict[str, list[RatedRelation]] = {}
    for relation in relations:
        if relation.category:
            categories.setdefault(relation.category, []).append(relation)
    parents = [
        RatedRelation(
            f"parent {name}",
            "",
            _in_turns(children),
            (),
            is_symmetric=any(relation.is_symmetric for relation in children),  # then it has no one direction
        )
        for name, children in categories.items()
        if len(children) > 1
    ]
    return [*relations, *parents]


def _in_turns(relations: Sequence[RatedRelation]) -> tuple[Pair, ...]:
    """The positives of the relations: the first of each, then the second of each, and so on."""
    turns = zip_longest(*(relation.positives for relation in relations))
    return tuple(dict.fromkeys(pair for turn in turns for pair in turn if pair))


def make_batch(relations: Sequence[RatedRelation], items: Iterable[BatchItem]) -> Batch:
    """Number the distinct pairs and the categories of some items; there are no triples yet.

    A pair that the data has as a positive of a relation is known as one, whatever its roles among the items.
    """
    items = list(items)
    rows: dict[Pair, int] = {}
    categories: dict[str, int] = {}
    some_item = {relation: item for item, (_, relation, _) in enumerate(items)}
    for pair, relation, _ in items:
        rows.setdefault(pair, len(rows))
        # A relation without a category is a category of its own.
        categories.setdefault(relations[relation].category or f"\0{relation}", len(categories))
    known = [
        (item, rows[pair])
        for relation, item in some_item.items()
        for pair in rows.keys() & relations[relation].known_positives
    ]
    return Batch(
        pairs=tuple(rows),
        row=torch.tensor([rows[pair] for pair, _, _ in items]),
        relation=torch.tensor([relation for _, relation, _ in items]),
        category=torch.tensor([categories[relations[r].category or f"\0{r}"] for _, r, _ in items]),
        is_positive=torch.tensor([is_positive for _, _, is_positive in items]),
        triples=torch.empty((0, 3), dtype=torch.long),
        known=torch.tensor(known, dtype=torch.long).reshape(-1, 2),
    )


def seeded_generator(seed: int, number: int, purpose: int) -> torch.Generator:
    """The random numbers of a step or an epoch, others for each purpose."""
    return torch.Generator().manual_seed((seed * 1_000_003 + number) * 10 + purpose)


def _some(pairs: Sequence[Pair], count: int, generator: torch.Generator) -> list[Pair]:
    return [pairs[index] for index in torch.randperm(len(pairs), generator=generator)[:count].tolist()]
