"""How long a plan takes and how much it stores, from the arithmetic of its encoders and the speed of this machine."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from relvec.reproduction.plan import Step

EFFICIENCY = 0.35  # the share of its fastest matrix product that an encoder on short texts reaches
REFERENCE_GPU, REFERENCE_SPEED = "V100", 14e12  # float32, for plans that need a GPU where there is none
TRAINING_FACTOR = 3  # a backward pass costs two forward passes


@dataclass(frozen=True)
class Estimate:
    """The seconds and bytes of a step, and its floating-point operations."""

    seconds: float
    bytes: float
    flop: float


def estimate(step: Step, flop_per_second: float) -> Estimate:
    """FLOP = 2 x parameters of the layers x tokens x pairs encoded, three times that where weights are trained.

    What is encoded is kept on disk, 4 bytes a number, except in training and in a search for prompts. A trained model
    is stored whole, or as an adapter of `adapter_mb`.
    """
    pattern, values = step.pattern, step.values
    flop = 2.0 * values.get("parameters", 0) * pattern.tokens * step.encodings
    flop *= TRAINING_FACTOR if pattern.trains else 1
    kept = 0 if pattern.command[0] in ("train", "prompt") else 4.0 * step.encodings * values.get("dim", 0)
    adapter = values.get("adapter_mb", 0) if pattern.command[0] == "train" else 0
    saved = 1e6 * pattern.saved_models * (adapter or values.get("model_mb", 0))
    return Estimate(60 * pattern.minutes + flop / (EFFICIENCY * flop_per_second), kept + saved, flop)


def total(estimates: Sequence[Estimate]) -> Estimate:
    """
    >>> total([Estimate(1, 2, 3), Estimate(10, 20, 30)])
    Estimate(seconds=11, bytes=22, flop=33)
    """
    return Estimate(*(sum(getattr(each, name) for each in estimates) for name in ("seconds", "bytes", "flop")))


def measured_speed() -> float:
    """The floating-point operations a second of a large float32 matrix product here, best of three.

    On a CPU the time that it had, not the time that passed: others may be at work.
    """
    import torch

    is_gpu = torch.cuda.is_available()
    clock, cores = (time.perf_counter, 1) if is_gpu else (time.process_time, os.cpu_count() or 1)
    size = 4096 if is_gpu else 1024
    matrix = torch.rand(size, size, device="cuda" if is_gpu else "cpu")
    seconds = []
    for _ in range(4):  # the first one warms up
        start = clock()
        float((matrix @ matrix)[0, 0])  # reading a number waits for the GPU
        seconds.append(clock() - start)
    return cores * 2.0 * size**3 / min(seconds[1:])
