"""Successive halving: candidates are compared on ever more relations, and the hopeless are dropped early."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from relvec.learned_prompts.objective import PromptObjective

FIRST_ROUND = 4  # relations; each round has twice those of the one before, and at most half its candidates
STANDARD_ERRORS = 2.5  # by which a candidate may be behind the leader
ALWAYS_LEFT = 3  # candidates that halving leaves at least


class SuccessiveHalving:
    """The objective over a few relations, over more, and over all: each round has the pairs of the rounds before it.

    `pairs` are ordered so that the pairs of a round come first; `new_rows[number]` are those that a round adds.
    """

    def __init__(self, objective: PromptObjective) -> None:
        sizes = [FIRST_ROUND]
        while sizes[-1] < objective.relations:
            sizes.append(sizes[-1] * 2)
        self._rounds = [*(objective.subset(size) for size in sizes[:-1]), objective]
        self.relations = [each.relations for each in self._rounds]
        distinct = dict.fromkeys(pair for each in self._rounds for pair in each.pairs)
        rows = {pair: row for row, pair in enumerate(distinct)}
        self._rows = [torch.tensor([rows[pair] for pair in each.pairs]) for each in self._rounds]
        self.pairs = tuple(rows)
        self.new_rows = [range(start, end) for start, end in pairwise([0, *(len(each.pairs) for each in self._rounds)])]

    @property
    def last(self) -> int:
        """The number of the round on all relations."""
        return len(self._rounds) - 1

    def loss(self, vectors: Tensor) -> Tensor:
        """The loss over all relations, from the vectors of `pairs`."""
        return self._rounds[-1].loss(vectors[self._rows[-1]])

    def losses(self, number: int, vectors: Tensor) -> list[float]:
        """What a prompt is judged by in a round: the loss by relation; in the last round, the loss itself.

        What is not a number counts as infinite, so that it never wins.
        """
        if number == self.last:
            losses = self.loss(vectors).unsqueeze(0)
        else:
            losses = self._rounds[number].by_relation(vectors[self._rows[number]])
        return losses.where(~losses.isnan(), torch.inf).tolist()

    def survivors(self, number: int, current: Sequence[float], losses: Mapping[int, Sequence[float]]) -> list[int]:
        """The candidates that survive a round, in their order; of the last round, the best if it beats `current`.

        `current` are the losses of the prompt as it is, `losses` those of the candidates. How much a candidate is worse
        than the best of them all has a mean d and a standard deviation s over the n of N relations of a round. It
        survives if

            d <= 2.5 * 2 * s / sqrt(n) * sqrt(1 - n / N),  2.5 standard errors

        of a mean over pairs of relations (an anchor's and a negative's, hence the 2) in a finite population. It must
        also be in the better half, or one of the best three.
        """
        names = list(losses)
        if number == self.last:
            best = min(names, key=lambda name: losses[name][0])
            return [best] if losses[best][0] < current[0] else []
        table = torch.tensor([current, *losses.values()], dtype=torch.float64)
        behind = (table - table[table.mean(dim=1).argmin()])[1:]
        seen, total = self.relations[number], self.relations[-1]
        error = 2 * behind.std(dim=1) * math.sqrt((1 - seen / total) / seen)
        survives = behind.mean(dim=1) <= STANDARD_ERRORS * error
        most = max(ALWAYS_LEFT, math.ceil(len(names) / 2))
        survives[behind.mean(dim=1).argsort(stable=True)[most:]] = False
        return [name for name, stays in zip(names, survives.tolist(), strict=True) if stays]
