"""Which pairs meet in a step: pairs of like length, drawn anew in every epoch."""

import math
import random
from collections.abc import Sequence

BATCHES_SORTED_TOGETHER = 32


class LengthBatches:
    """Numbers of pairs for a step: an epoch meets each pair once, in batches with little padding.

    The pairs are shuffled, cut into stretches of 32 batches, and sorted by length within a stretch; then the batches
    are shuffled. It is a function of seed and step alone, so a resumed run meets the batches it would have met.

    >>> batches = LengthBatches([3, 9, 3, 9], size=2, seed=0)
    >>> sorted(sorted(batches(step)) for step in range(batches.steps_per_epoch))
    [[0, 2], [1, 3]]
    """

    def __init__(self, lengths: Sequence[int], size: int, seed: int) -> None:
        self._lengths, self._size, self._seed = lengths, size, seed
        self.steps_per_epoch = math.ceil(len(lengths) / size)
        self._epoch = -1

    def __call__(self, step: int) -> list[int]:
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._plan(epoch)
        return self._batches[place]

    def _plan(self, epoch: int) -> None:
        draw = random.Random(self._seed * 1_000_003 + epoch)
        order = list(range(len(self._lengths)))
        draw.shuffle(order)
        stretch = BATCHES_SORTED_TOGETHER * self._size
        rows: list[int] = []
        for start in range(0, len(order), stretch):
            rows += sorted(order[start : start + stretch], key=lambda row: self._lengths[row])
        self._batches = [rows[start : start + self._size] for start in range(0, len(rows), self._size)]
        draw.shuffle(self._batches)
        self._epoch = epoch
