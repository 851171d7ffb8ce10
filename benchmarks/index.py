"""What each kind of index costs and finds: build rate, bytes a pair, recall@10, queries a second beside exact search.

The vectors are those of a model for the bundled relations, or planted clusters, grown to the wanted number.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from encode import bundled_pairs
from numpy.typing import NDArray

from relvec import RelBERT
from relvec.index.kinds import KINDS, Kind, faiss
from relvec.index.pair_index import RERANKED
from relvec.index.vector_store import VectorStore
from relvec.similarity import Vectors, normalized

NEIGHBOURS = 10
ROWS_PER_STEP = 16_384

Rows = list[NDArray[np.int64]]


@dataclass(frozen=True)
class Row:
    """`recall` is the share of the 10 true neighbours among the first 10, `recall_reranked` of those encoded again."""

    kind: str
    pairs: int
    build_pairs_per_second: float
    bytes_a_pair: float
    recall: float
    recall_reranked: float
    queries_per_second: float
    against_exact: float


def planted(random: np.random.Generator, count: int = 20_000, dim: int = 768) -> Vectors:
    """Clusters with a falling spectrum, off the origin, a few dimensions far larger than the others."""
    spread = np.arange(1, dim + 1) ** -0.5
    centres = random.normal(size=(count // 50, dim)) * spread
    vectors = (centres[random.integers(len(centres), size=count)] + random.normal(size=(count, dim)) * spread).astype(
        np.float32
    )
    vectors = vectors @ np.linalg.qr(random.normal(size=(dim, dim)))[0].astype(np.float32)
    vectors += random.normal(size=dim).astype(np.float32) * vectors.std()
    vectors[:, random.integers(dim, size=2)] *= 8
    return vectors


def grown(random: np.random.Generator, base: Vectors, count: int, path: Path) -> Vectors:
    """Vectors on disk, each a vector of the base moved by the difference of two others, which keeps its spectrum."""
    base = normalized(base)
    vectors = np.memmap(path, dtype=np.float32, mode="w+", shape=(count, base.shape[1]))
    for start in range(0, count, ROWS_PER_STEP):
        rows = random.integers(len(base), size=(3, min(ROWS_PER_STEP, count - start)))
        vectors[start : start + rows.shape[1]] = base[rows[0]] + 0.5 * (base[rows[1]] - base[rows[2]])
    vectors.flush()
    return vectors


def measure(kind: Kind, vectors: Vectors, queries: Vectors, truth: Rows, exact_rate: float, folder: Path) -> Row:
    """Build, write, map and search one kind, one query at a time; `truth` may be empty, for the exact kind itself."""
    start = time.perf_counter()
    store = VectorStore.of(vectors, kind)
    build_seconds = time.perf_counter() - start
    path = folder / "vectors.faiss"
    store.write(path)
    del store
    mapped = VectorStore.read(path, kind, mapped=True)
    mapped.search(queries[0], RERANKED)  # the first search reads the file
    start = time.perf_counter()
    found = [mapped.search(query, RERANKED)[1] for query in queries]
    rate = len(queries) / (time.perf_counter() - start)
    truth.extend(rows[:NEIGHBOURS] for rows in (found if not truth else ()))
    return Row(
        kind.name,
        len(vectors),
        len(vectors) / build_seconds,
        path.stat().st_size / len(vectors),
        _recall(truth, [rows[:NEIGHBOURS] for rows in found]),
        _recall(truth, found),
        rate,
        rate / (exact_rate or rate),
    )


def _recall(truth: Rows, found: Rows) -> float:
    return float(np.mean([np.isin(true, rows).mean() for true, rows in zip(truth, found, strict=True)]))


def run(base: Vectors, count: int, kinds: Sequence[Kind], query_count: int) -> list[Row]:
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vectors = grown(random, base, count, folder / "vectors.f32")
        queries = np.array(grown(random, base, query_count, folder / "queries.f32"))
        truth: Rows = []
        rows = [measure(KINDS["flat"], vectors, queries, truth, 0, folder)]
        exact_rate = rows[0].queries_per_second
        return rows + [measure(kind, vectors, queries, truth, exact_rate, folder) for kind in kinds]


def markdown(rows: Sequence[Row]) -> str:
    head = (
        f"| kind | pairs | build pairs/s | bytes a pair | recall@10 | of {RERANKED} reranked | queries/s | exact = 1 |"
    )
    lines = [head, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for row in rows:
        cost = f"{row.pairs:,} | {row.build_pairs_per_second:,.0f} | {row.bytes_a_pair:.0f}"
        found = f"{row.recall:.3f} | {row.recall_reranked:.3f}"
        lines.append(f"| {row.kind} | {cost} | {found} | {row.queries_per_second:.1f} | {row.against_exact:.1f}x |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, nargs="+", default=[200_000, 1_000_000], help="how many, one run each")
    parser.add_argument("--kinds", nargs="+", default=[kind for kind in KINDS if kind != "flat"], choices=KINDS)
    parser.add_argument("--model", help="grow the vectors of this model for the bundled relations; else clusters")
    parser.add_argument("--queries", type=int, default=200, help="how many searches")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of FAISS")
    parser.add_argument("--json", action="store_true", help="print JSON for machines")
    options = parser.parse_args()
    faiss().omp_set_num_threads(options.threads)
    if options.model:
        base = RelBERT.from_pretrained(options.model).encode(bundled_pairs(20_000), show_progress=None)
    else:
        base = planted(np.random.default_rng(0))
    kinds = [KINDS[name] for name in options.kinds]
    rows = [row for count in options.pairs for row in run(base, count, kinds, options.queries)]
    if options.json:
        settings = {"queries": options.queries, "threads": options.threads, "model": options.model}
        print(json.dumps({**settings, "rows": [asdict(row) for row in rows]}, indent=2))
    else:
        source = f"vectors of {options.model}, grown" if options.model else "planted clusters"
        print(f"{source}, {base.shape[1]} dimensions, {options.queries} queries, {options.threads} threads\n")
        print(markdown(rows))


if __name__ == "__main__":
    main()
