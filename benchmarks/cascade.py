"""How many of the 10 true neighbours a quick model finds among its candidates, for a better model to rank.

python benchmarks/cascade.py --quick relvec-nano --exact relvec-mpnet --queries 200

The true neighbours are those of the exact model in an index that it made, by default the bundled one; its own 100 best
candidates are encoded again. Queries are pairs of the index, drawn at random. An index of the same pairs is made with
the quick model. What the quick model has among its candidates the exact one ranks as it would rank all pairs, so
recall@10 of the cascade is the share of the true 10 among the candidates.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from relvec import PairIndex, RelBERT

CANDIDATES = (10, 100, 1000, 10_000)
RERANKED = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", default="relvec-nano")
    parser.add_argument("--exact", default="relvec-mpnet")
    parser.add_argument("--index", type=Path, help="an index of the exact model; by default the bundled one")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    quick, exact = (RelBERT.from_pretrained(name) for name in (options.quick, options.exact))
    index = PairIndex.load(options.index)
    pairs = index.pairs.pairs()
    rows = np.random.default_rng(options.seed).permutation(len(pairs))[: options.queries]
    queries = [pairs[row] for row in rows]

    start = time.perf_counter()
    quick_index = PairIndex.of(quick, pairs)
    print(f"{len(pairs):,} pairs indexed by {quick.name} in {time.perf_counter() - start:.1f} s")

    true = index.neighbours_of_each(exact, queries, rerank=RERANKED, show_progress=None)
    found = quick_index.neighbours_of_each(quick, queries, max(CANDIDATES), rerank=0)
    places = []
    for neighbours, candidates in zip(true, found, strict=True):
        place_of = {candidate.pair: place for place, candidate in enumerate(candidates)}
        places += [place_of.get(neighbour.pair, len(pairs)) for neighbour in neighbours]
    print("| candidates | recall@10 (%) |\n| ---: | ---: |")
    for count in CANDIDATES:
        print(f"| {count:,} | {100 * np.mean(np.array(places) < count):.1f} |")


if __name__ == "__main__":
    main()
