"""What a prompt is judged by: the triplet loss over a whole part of the data (section 4.1).

It depends on nothing but the vectors of the distinct pairs, so each pair is encoded once, whatever the number of
triples.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from relvec.data.rated import Part, RatedRelation, check_relations, split
from relvec.errors import RelvecError
from relvec.model.relation_model import RelBERT
from relvec.model.torch_backend import TorchRelBERT
from relvec.pairs import Pair
from relvec.progress import progress_bar
from relvec.prompts import MANUAL_TEMPLATES
from relvec.training.batch import CATEGORY_TRIPLES, RELATION_TRIPLES, Batch, category_triples, relation_triples
from relvec.training.losses.triplet import Triplet
from relvec.training.samplers import BatchItem, make_batch, validation_batch

OTHER_RELATIONS = 30  # negatives from other relations for each relation triple: the paper's 13,500 for 450
MOST_TRIPLES = 500_000  # with negatives from other relations; each weighs more where there would be more


class PromptObjective:
    """The triplet loss of a part as a function of the vectors of its distinct pairs.

        mean over triples (a, p, n) of max(0, |x_a - x_p| - |x_a - x_n| + margin)

    Training triples: two positives of a relation with each of its hard negatives, the same two with positives drawn
    from other relations, and positives of two relations of a category with one from outside. They are distinct, and
    weigh as much as the paper's: 450 and 13,500 of each relation, and 5,040 of each category. For validation: those of
    the trainer, so that both report the same number.

    >>> from relvec.data.sources import load
    >>> objective = PromptObjective(load("bundled")[:4], "train")
    >>> bool(objective.loss(torch.zeros(len(objective.pairs), 8)) == 1.0)  # all alike: the margin is left
    True
    """

    def __init__(self, relations: Sequence[RatedRelation], part: Part, seed: int = 0) -> None:
        self._relations, self._part, self._seed = relations, part, seed
        train = split(relations, "train")
        if part == "train":
            self._batch, self._weights = _training_batch(train, seed)
        else:
            self._batch = validation_batch(train, split(relations, "valid"))
            self._weights = torch.ones(len(self._batch.triples))
        if not len(self._batch.triples):
            raise RelvecError(f"The {part} part of the data has no triples; rate more pairs of the relations low.")
        self._triplet = Triplet(0)
        self.relations, self.triples = len(relations), len(self._batch.triples)
        self.triple_encodings = 3 * self.triples  # pairs to encode if each triple were evaluated by itself
        self.pairs: tuple[Pair, ...] = self._batch.pairs  # the distinct ones; `loss` takes their vectors in this order

    def loss(self, vectors: Tensor) -> Tensor:
        """The loss of `vectors` [pairs, dim], differentiable."""
        return self._terms(vectors).mean()

    def by_relation(self, vectors: Tensor) -> Tensor:
        """The part of each relation in the loss: [relations], the mean of which is the loss.

        relations / triples * sum of term / 2 over its triples as anchor, and again over those as negative
        """
        terms = self._terms(vectors)
        relation = self._batch.relation[self._batch.triples[:, [0, 2]]].to(terms.device)
        halves = (terms / 2).unsqueeze(1).expand(-1, 2)
        sums = terms.new_zeros(self.relations).index_add(0, relation.flatten(), halves.flatten())
        return sums * (self.relations / self.triples)

    def _terms(self, vectors: Tensor) -> Tensor:
        batch = self._batch.to(vectors.device)
        return self._weights.to(vectors) * self._triplet.terms(vectors[batch.row], batch)

    def of_model(self, model: RelBERT) -> float:
        """The loss of a model with its own prompt."""
        with torch.no_grad():
            return float(self.loss(torch.from_numpy(model.encode(self.pairs, show_progress=False))))

    def subset(self, relations: int) -> "PromptObjective":
        """The loss over so many relations, two or more; a larger subset has all relations of a smaller one."""
        order = torch.randperm(self.relations, generator=torch.Generator().manual_seed(self._seed)).tolist()
        chosen = [self._relations[number] for number in sorted(order[:relations])]
        return PromptObjective(chosen, self._part, self._seed)


def check_finite(loss: float) -> None:
    """The loss of a base must be a number for anything to be learned or compared."""
    if not math.isfinite(loss):
        raise RelvecError(
            "The loss of the base is not finite; compute in float32 (--dtype float32), or use another base."
        )


def _training_batch(relations: Sequence[RatedRelation], seed: int) -> tuple[Batch, Tensor]:
    """All pairs of the relations as items, positives first, with their triples; and the weights of these."""
    generator = torch.Generator().manual_seed(seed)
    positives: list[BatchItem] = [(pair, number, True) for number, r in enumerate(relations) for pair in r.positives]
    negatives: list[BatchItem] = [(pair, number, False) for number, r in enumerate(relations) for pair in r.negatives]
    own, start, negative_start = [], 0, len(positives)
    for relation in relations:
        size, bad = len(relation.positives), len(relation.negatives)
        # Without negatives, the third column means nothing, but the first two serve with those of other relations.
        count = min(RELATION_TRIPLES, math.comb(size, 2) * max(bad, 1))
        triples = relation_triples(size, max(bad, 1), count, generator=generator)
        own.append(triples + torch.tensor([start, start, negative_start]))
        start, negative_start = start + size, negative_start + bad
    others = _from_other_relations(relations, own, generator)
    of_categories = category_triples(relations, CATEGORY_TRIPLES, generator)
    with_negatives = [triples for triples, relation in zip(own, relations, strict=True) if relation.negatives]
    categories = {relations[positives[anchor][1]].category for anchor in of_categories[:, 0].tolist()}
    kinds = [
        (with_negatives, RELATION_TRIPLES * len(with_negatives)),
        (others, OTHER_RELATIONS * RELATION_TRIPLES * len(others)),
        ([of_categories], CATEGORY_TRIPLES * len(categories)),
    ]
    weights = [_shared(torch.cat([of_categories[:0], *triples]), weight) for triples, weight in kinds]
    batch = make_batch(relations, [*positives, *negatives])
    all_weights = torch.cat(weights)
    triples = torch.cat([*with_negatives, *others, of_categories])
    return replace(batch, triples=triples), all_weights / all_weights.mean()


def _shared(triples: Tensor, weight: float) -> Tensor:
    """The weight in equal shares."""
    return torch.full((len(triples),), weight / max(1, len(triples)))


def _from_other_relations(
    relations: Sequence[RatedRelation], own: Sequence[Tensor], generator: torch.Generator
) -> list[Tensor]:
    """The anchors and positives of `own`, each with some positives drawn from other relations."""
    pairs = [pair for relation in relations for pair in relation.positives]
    each = max(1, min(OTHER_RELATIONS, MOST_TRIPLES // sum(map(len, own))))
    made = []
    for relation, triples in zip(relations, own, strict=True):
        known = set(relation.positives)
        outside = torch.tensor([item for item, pair in enumerate(pairs) if pair not in known])
        if not len(outside):
            continue
        drawn = outside[torch.randint(len(outside), (len(triples) * each, 1), generator=generator)]
        made.append(torch.cat([triples[:, :2].repeat_interleave(each, dim=0), drawn], dim=1))
    return made


class ManualLoss(NamedTuple):
    """A manual template by its number, and its validation loss."""

    number: int
    template: str
    loss: float


def manual_losses(
    base: str | Path,
    relations: Sequence[RatedRelation],
    *,
    pooling: str = "average",
    device: str | torch.device | None = None,
    show_progress: bool | None = None,
) -> list[ManualLoss]:
    """The validation loss of each manual template; the lowest is the best.

    >>> from relvec.data.sources import load
    >>> losses = manual_losses(tiny_model, load("bundled")[:4])
    >>> [each.number for each in losses]
    [1, 2, 3, 4, 5]
    """
    check_relations(relations)
    objective = PromptObjective(relations, "valid")
    first = next(iter(MANUAL_TEMPLATES))  # the base's own template, if it has one, need not suit the pooling
    model = TorchRelBERT.from_pretrained(base, template=first, pooling=pooling, device=device)
    losses = []
    with progress_bar(len(MANUAL_TEMPLATES), "Templates", unit="template", show=show_progress) as bar:
        for number, template in MANUAL_TEMPLATES.items():
            loss = objective.of_model(TorchRelBERT(model.encoder, model.tokenizer, template, pooling))
            check_finite(loss)
            losses.append(ManualLoss(number, template, loss))
            bar.update()
    return losses
