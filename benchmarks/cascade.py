"""How many of the 10 true neighbours a quick model finds among its candidates, for a better model to rank.

python benchmarks/cascade.py --quick relvec-nano --exact relvec-mpnet --queries 200

Queries are drawn from the pairs of the bundled index, or of a file. The true neighbours of a query are those of the
exact model, by its vectors of all pairs (from the cache, where it has them). The quick model has an index of the same
pairs. Of what it finds, the exact model ranks the true 10 first, so recall@10 of the cascade is the share of the true
10 among the candidates.
"""

import argparse
import time

import numpy as np

from relvec import PairIndex, RelBERT
from relvec.io.tables import read_pairs
from relvec.model.cached_vectors import ModelVectors

CANDIDATES = (10, 100, 1000, 10_000)
NEIGHBOURS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", default="relvec-nano")
    parser.add_argument("--exact", default="relvec-mpnet")
    parser.add_argument("--dtype", default="float32", help="of the exact model")
    parser.add_argument("--pairs", help="a file of pairs; by default those of the bundled index")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    pairs = list(dict.fromkeys(read_pairs(options.pairs) if options.pairs else PairIndex.load().pairs.pairs()))
    queries = np.random.default_rng(options.seed).permutation(len(pairs))[: options.queries]

    quick = RelBERT.from_pretrained(options.quick)
    start = time.perf_counter()
    index = PairIndex.of(quick, pairs)
    print(f"{len(pairs):,} pairs indexed by {quick.name} in {time.perf_counter() - start:.1f} s")
    asked = [pairs[row] for row in queries]
    found = index.neighbours_of_each(quick, asked, max(CANDIDATES), rerank=0)

    exact = ModelVectors(RelBERT.from_pretrained(options.exact, dtype=options.dtype))
    exact.prepare(pairs)
    vectors = exact.rows(pairs, normalize=True)[:]
    places = []
    for row, query, candidates in zip(queries, asked, found, strict=True):
        scores = np.where(index.pairs.with_word(query), -1, vectors @ vectors[row])
        place_of = {candidate.pair: place for place, candidate in enumerate(candidates)}
        places += [place_of.get(pairs[true], len(pairs)) for true in np.argsort(-scores)[:NEIGHBOURS]]
    print("| candidates | recall@10 (%) |\n| ---: | ---: |")
    for count in CANDIDATES:
        print(f"| {count:,} | {100 * np.mean(np.array(places) < count):.1f} |")


if __name__ == "__main__":
    main()
