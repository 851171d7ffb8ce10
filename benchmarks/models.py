"""Pairs per second of the bundled models, and their ratio to the default: what `relvec models` calls speed.

    python benchmarks/models.py --threads 2

The models take turns on the same pairs, so that a busy machine slows all alike; the median of the rounds counts.
"""

import argparse
import statistics
import time

import torch

from relvec import RelBERT
from relvec.data.sources import load
from relvec.encoders.catalog import BUNDLED_MODELS, DEFAULT_MODEL


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    pairs = list(dict.fromkeys(pair for relation in load("bundled") for pair in relation.positives))
    pairs = pairs[:: max(1, len(pairs) // options.pairs)][: options.pairs]
    models = {name: RelBERT.from_pretrained(name) for name in BUNDLED_MODELS}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for round_number in range(options.rounds + 1):
        for name, model in models.items():
            start = time.perf_counter()
            model.encode(pairs)
            if round_number:  # the first warms up
                seconds[name].append(time.perf_counter() - start)
    median = {name: statistics.median(taken) for name, taken in seconds.items()}
    print(f"{len(pairs)} pairs, {options.threads} threads, median of {options.rounds} rounds\n")
    print("| model | pairs/s | speed |")
    print("| --- | ---: | ---: |")
    for name, taken in median.items():
        print(f"| {name} | {len(pairs) / taken:.0f} | {median[DEFAULT_MODEL] / taken:.1f}x |")


if __name__ == "__main__":
    main()
