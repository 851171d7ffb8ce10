"""How the learning rate goes over a run."""

from typing import Literal

Schedule = Literal["linear", "constant"]


def learning_rate_factor(step: int, steps: int, warmup_steps: int, schedule: Schedule = "linear") -> float:
    """The share of the full learning rate at a step, from 1: linear warm-up, then constant or falling to nearly zero.

        min(1, step / warmup) * (1 - (step - 1) / steps)

    >>> [learning_rate_factor(step, steps=4, warmup_steps=2) for step in (1, 2, 3, 4)]
    [0.5, 0.75, 0.5, 0.25]
    """
    warm = min(1.0, step / warmup_steps) if warmup_steps else 1.0
    return warm if schedule == "constant" else warm * (1 - (step - 1) / steps)
