"""Pairs per second of the bundled models: the ratio to the default, which `relvec models` calls speed, and of bfloat16.

    python benchmarks/models.py --threads 2

All take turns on the same pairs, so that a busy machine slows all alike; the median of the rounds counts. The smallest
cosine of a pair's two vectors tells what bfloat16 costs.
"""

import argparse
import statistics
import time

import torch

from relvec import RelBERT
from relvec.data.sources import load
from relvec.hub.catalogue import BUNDLED_MODELS, DEFAULT_MODEL
from relvec.similarity import normalized

DTYPES = ("float32", "bfloat16")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    pairs = list(dict.fromkeys(pair for relation in load("bundled") for pair in relation.positives))
    pairs = pairs[:: max(1, len(pairs) // options.pairs)][: options.pairs]
    # A static model has no other precision than float32.
    keys = [(each.name, dtype) for each in BUNDLED_MODELS.values() for dtype in (DTYPES if each.base else DTYPES[:1])]
    models = {(name, dtype): RelBERT.from_pretrained(name, dtype=dtype) for name, dtype in keys}
    vectors = {key: normalized(model.encode(pairs)) for key, model in models.items()}  # warms up, too
    seconds: dict[tuple[str, str], list[float]] = {key: [] for key in models}
    for _ in range(options.rounds):
        for key, model in models.items():
            start = time.perf_counter()
            model.encode(pairs)
            seconds[key].append(time.perf_counter() - start)
    rate = {key: len(pairs) / statistics.median(taken) for key, taken in seconds.items()}
    print(f"{len(pairs)} pairs, {options.threads} threads, median of {options.rounds} rounds\n")
    print("| model | pairs/s | speed | bfloat16 pairs/s | ratio | smallest cosine |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in BUNDLED_MODELS:
        exact = rate[name, "float32"]
        row = f"| {name} | {exact:.0f} | {exact / rate[DEFAULT_MODEL, 'float32']:.1f}x |"
        if rounded := rate.get((name, "bfloat16")):
            cosine = (vectors[name, "float32"] * vectors[name, "bfloat16"]).sum(axis=1).min()
            row += f" {rounded:.0f} | {rounded / exact:.2f}x | {cosine:.5f} |"
        print(row)


if __name__ == "__main__":
    main()
