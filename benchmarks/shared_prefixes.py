"""Pairs per second of a decoder that reads shared prefixes once, beside the same decoder that reads every pair whole.

    python benchmarks/shared_prefixes.py --model relvec-large --count 600

The pairs are some in a row of the bundled index, sorted, so that those of one head are together; or, with `--random`,
drawn from all of it. Both ways take turns, and the median of the rounds counts.
"""

import argparse
import random
import statistics
import time

import numpy as np

from relvec import PairIndex
from relvec.model.torch_backend import TorchRelBERT
from relvec.pairs import Pair


def some_pairs(count: int, at_random: bool) -> list[Pair]:
    index = PairIndex.load()
    pairs = sorted(index.pairs.pair(row) for row in range(len(index)))
    if at_random:
        return random.Random(0).sample(pairs, count)
    return pairs[len(pairs) // 2 :][:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="relvec-large")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--random", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    model = TorchRelBERT.from_pretrained(options.model, dtype=options.dtype)
    if not model.shares_prefixes:
        parser.error(f"{options.model} reads every pair whole")
    whole = type("WholeReader", (TorchRelBERT,), {"shares_prefixes": False})
    pairs = some_pairs(options.count, options.random)
    seconds: dict[bool, list[float]] = {True: [], False: []}
    vectors = {}
    for _ in range(options.rounds):
        for once in seconds:
            model.__class__ = TorchRelBERT if once else whole
            start = time.perf_counter()
            vectors[once] = model.encode(pairs, normalize=True)
            seconds[once].append(time.perf_counter() - start)
    rate = {once: len(pairs) / statistics.median(spans) for once, spans in seconds.items()}
    cosine = float(np.sum(vectors[True] * vectors[False], axis=1).min())
    print(f"whole {rate[False]:.1f} pairs/s, prefixes once {rate[True]:.1f}, ratio {rate[True] / rate[False]:.2f}")
    print(f"lowest cosine {cosine:.5f}")


if __name__ == "__main__":
    main()
