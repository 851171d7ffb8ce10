"""Seconds of training to the same validation loss: the exact way, and the fast one.

    python benchmarks/train_speed.py --base minilm --steps 60

Both train on the bundled relations from the same seed, and take turns step by step, each in a process of its own, so
that a busy machine slows both alike. Evaluation does not count. A last step shows where the time goes: the seconds of
its operations, summed over the threads.
"""

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from multiprocessing.connection import Connection
from typing import Any

WAYS: dict[str, dict[str, Any]] = {
    "float32, dropout": {},
    "float32": {"dropout": False},
    "bfloat16": {"dropout": False, "mixed_precision": "bf16", "base_dtype": "bfloat16"},
}
RECIPE: dict[str, Any] = {
    "template": "[h] <mask> [t]",
    "pooling": "mask",
    "loss": "contrastive",
    "relations_per_batch": 32,
    "positives_per_relation": 4,
    "negatives_per_relation": 1,
    "learning_rate": 1e-3,
    "lora_rank": 16,
}
KINDS: dict[str, tuple[str, ...]] = {
    "matrix products": ("aten::mm", "aten::addmm", "aten::bmm"),
    "attention": ("scaled_dot_product", "softmax"),
    "gelu": ("gelu",),
    "layer norm": ("layer_norm",),
    "dropout": ("bernoulli", "dropout", "aten::div_"),
    "copies": ("aten::copy_", "aten::cat", "aten::index"),
    "sums, products": ("aten::add", "aten::mul", "aten::sum", "aten::sqrt"),
}
OTHER = "all else"


def train(recipe: dict[str, Any], connection: Connection) -> None:
    """Make the steps that are asked for, and answer with the seconds of each; 0 asks for the loss, -1 for a profile."""
    from relvec.training.recipe import Recipe
    from relvec.training.run import make_trainer

    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(Recipe(**recipe), folder)
        for step in iter(connection.recv, None):
            if step < 0:
                connection.send(profile_of(lambda: trainer.step(trainer.steps)))
            elif step:
                start = time.perf_counter()
                trainer.step(step)
                connection.send(time.perf_counter() - start)
            else:
                connection.send(next(iter(trainer.evaluate().values())))


def profile_of(work: Callable[[], object]) -> dict[str, float]:
    """Seconds of each kind of operation, without those that it calls."""
    from torch._C._profiler import _ExperimentalConfig
    from torch.profiler import ProfilerActivity, profile

    every_thread = _ExperimentalConfig(profile_all_threads=True)
    with profile(activities=[ProfilerActivity.CPU], experimental_config=every_thread) as found:
        work()
    seconds = dict.fromkeys([*KINDS, OTHER], 0.0)
    for operation in found.key_averages():
        kinds = (kind for kind, names in KINDS.items() if any(name in operation.key for name in names))
        seconds[next(kinds, OTHER)] += operation.self_cpu_time_total / 1e6
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="minilm")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--every", type=int, default=10, help="steps between two evaluations")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    ends: dict[str, Any] = {}
    for way in options.ways:
        ends[way], other = context.Pipe()
        recipe = {**RECIPE, "base": options.base, "steps": options.steps, **WAYS[way]}
        context.Process(target=train, args=(recipe, other), daemon=True).start()

    def ask(way: str, step: int) -> Any:
        ends[way].send(step)
        return ends[way].recv()

    seconds = dict.fromkeys(ends, 0.0)
    courses: dict[str, list[tuple[float, float]]] = {way: [(0.0, ask(way, 0))] for way in ends}
    for step in range(1, options.steps + 1):
        for way in ends:
            seconds[way] += ask(way, step)
            if step % options.every == 0:
                courses[way].append((seconds[way], ask(way, 0)))
    first = options.ways[0]
    goal = min(loss for _, loss in courses[first])
    print(f"{options.base}, {options.steps} steps; the goal is the best validation loss of the first, {goal:.4f}\n")
    print("| way | seconds a step | ratio | best loss | seconds to the goal | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    taken = {way: seconds_to(goal, course) for way, course in courses.items()}
    for way, course in courses.items():
        pace = f"{seconds[way] / options.steps:.2f} | {seconds[first] / seconds[way]:.2f}x"
        best = min(loss for _, loss in course)
        arrival = taken[way]
        told = "never | -" if arrival is None else f"{arrival:.1f} | {(taken[first] or 0) / arrival:.2f}x"
        print(f"| {way} | {pace} | {best:.4f} | {told} |")
    profiles = {way: ask(way, -1) for way in ends}
    print(f"\n| seconds of a step | {' | '.join(ends)} |\n| --- |{' ---: |' * len(ends)}")
    for kind in (*KINDS, OTHER):
        print(f"| {kind} | {' | '.join(f'{profile[kind]:.2f}' for profile in profiles.values())} |")


def seconds_to(goal: float, course: list[tuple[float, float]]) -> float | None:
    """When a course first reaches a loss, between two evaluations by a straight line."""
    for (start, before), (end, after) in pairwise(course):
        if after <= goal:
            return start + (end - start) * (before - goal) / max(before - after, 1e-12)
    return None


if __name__ == "__main__":
    main()
