"""What each kind of index costs and finds: build rate, bytes a pair, recall@10, queries a second beside exact search.

The vectors are those of a file, of a model for the bundled relations, or planted clusters. Queries are drawn from them
and left out; where more are wanted, vectors are added that lie around the given ones.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from encode import bundled_pairs
from numpy.typing import NDArray

from relvec import RelBERT
from relvec.index.kinds import KINDS, Kind, faiss
from relvec.index.pair_index import RERANKED, PairIndex
from relvec.index.vector_store import VectorStore
from relvec.index.vocabulary import PairVocabulary
from relvec.io.vectors import read_pair_file
from relvec.model.model_check import ModelCheck
from relvec.pairs import Pair
from relvec.similarity import Vectors, normalized

NEIGHBOURS = 10
ROWS_PER_STEP = 16_384
WHOLE_QUERIES = 20

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Row:
    """`recall` is the share of the 10 true neighbours among the first 10, `recall_reranked` of those encoded again.

    `query_in_encodings` is the time of a whole query (encoding, search, re-ranking) over that of encoding one pair.
    """

    kind: str
    pairs: int
    build_pairs_per_second: float
    bytes_a_pair: float
    recall: float
    recall_reranked: float
    queries_per_second: float
    against_exact: float
    query_in_encodings: float | None


@dataclass(frozen=True)
class Source:
    """Unit vectors, their pairs (none if planted), and the model that encodes these, if whole queries are wanted."""

    name: str
    vectors: Vectors
    pairs: Sequence[Pair] = ()
    model: RelBERT | None = None


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


def grown(random: np.random.Generator, base: Vectors, rows: Rows, real: int, path: Path) -> Vectors:
    """Vectors on disk: row r is base[rows[r]], from row `real` on moved by half the difference of two others.

    That keeps the spectrum of the base, which independent noise would not.
    """
    vectors = np.memmap(path, dtype=np.float32, mode="w+", shape=(len(rows), base.shape[1]))
    for start in range(0, len(rows), ROWS_PER_STEP):
        step = base[rows[start : start + ROWS_PER_STEP]]
        moved = max(0, min(len(step), start + len(step) - real))
        others = random.integers(len(base), size=(2, moved))
        step[len(step) - moved :] += 0.5 * (base[others[0]] - base[others[1]])
        vectors[start : start + len(step)] = step
    vectors.flush()
    return vectors


class Run:
    """One number of pairs: the vectors to index, the queries, and what exact search finds for them."""

    def __init__(self, source: Source, count: int, query_count: int, folder: Path) -> None:
        random = np.random.default_rng(1)
        order = random.permutation(len(source.vectors))
        asked, kept = order[:query_count], order[query_count:]
        rows = np.concatenate([kept[:count], random.choice(kept, size=max(0, count - len(kept)))])
        self.queries = source.vectors[asked]
        self.vectors = grown(random, source.vectors, rows, len(kept), folder / "vectors.f32")
        self._source, self._rows, self._asked, self._file = source, rows, asked, folder / "vectors.faiss"
        self._truth: list[Rows] = []
        self._exact_rate = 0.0

    def measure(self, kind: Kind) -> Row:
        """Build, write, map and search one kind, one query at a time; the exact kind must come first."""
        seconds, store = _timed(lambda: VectorStore.of(self.vectors, kind))
        store.write(self._file)
        del store
        mapped = VectorStore.read(self._file, kind, mapped=True)
        mapped.search(self.queries[0], RERANKED)  # the first search reads the file
        search_seconds, found = _timed(lambda: [mapped.search(query, RERANKED)[1] for query in self.queries])
        rate = len(self.queries) / search_seconds
        self._truth = self._truth or [rows[:NEIGHBOURS] for rows in found]
        self._exact_rate = self._exact_rate or rate
        return Row(
            kind.name,
            len(self.vectors),
            len(self.vectors) / seconds,
            self._file.stat().st_size / len(self.vectors),
            self._recall([rows[:NEIGHBOURS] for rows in found]),
            self._recall(found),
            rate,
            rate / self._exact_rate,
            self._query_in_encodings(mapped),
        )

    def _recall(self, found: Sequence[Rows]) -> float:
        return float(np.mean([np.isin(true, rows).mean() for true, rows in zip(self._truth, found, strict=True)]))

    def _query_in_encodings(self, vectors: VectorStore) -> float | None:
        model, pairs = self._source.model, self._source.pairs
        if model is None:
            return None
        index = PairIndex(vectors, PairVocabulary.of([pairs[row] for row in self._rows]), ModelCheck.of(model))
        asked = [pairs[row] for row in self._asked[:WHOLE_QUERIES]]
        index.neighbours(model, asked[0], NEIGHBOURS)  # the first query checks the model
        encoding, whole = [], []
        for pair in asked:
            encoding.append(_timed(partial(model.encode, pair))[0])
            whole.append(_timed(partial(index.neighbours, model, pair, NEIGHBOURS))[0])
        return statistics.median(whole) / statistics.median(encoding)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def run(source: Source, count: int, kinds: Sequence[Kind], query_count: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        measured = Run(source, count, query_count, Path(folder))
        return [measured.measure(kind) for kind in (KINDS["flat"], *kinds)]


def markdown(rows: Sequence[Row]) -> str:
    head = (
        "| pairs | kind | build pairs/s | bytes per pair | recall@10 | without re-ranking | queries/s | vs flat | "
        "whole query, in encodings |"
    )
    lines = [head, "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for row in rows:
        cost = f"{row.build_pairs_per_second:,.0f} | {row.bytes_a_pair:,.0f}"
        found = f"{row.recall_reranked:.3f} | {row.recall:.3f}"
        speed = f"{row.queries_per_second:.1f} | {row.against_exact:.1f}x"
        whole = "-" if row.query_in_encodings is None else f"{row.query_in_encodings:.1f}"
        lines.append(f"| {row.pairs:,} | `{row.kind}` | {cost} | {found} | {speed} | {whole} |")
    return "\n".join(lines)


def source_of(embeddings: Path | None, model: str | None) -> Source:
    loaded = RelBERT.from_pretrained(model) if model else None
    if embeddings:
        file = read_pair_file(embeddings)
        return Source(f"vectors of {embeddings.name}", normalized(file.vectors), file.pairs, loaded)
    if loaded:
        pairs = bundled_pairs(20_000)
        vectors = loaded.encode(pairs, normalize=True, show_progress=None)
        return Source(f"vectors of {model} for the bundled relations", vectors, pairs, loaded)
    return Source("planted clusters", normalized(planted(np.random.default_rng(0))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, nargs="+", default=[200_000, 1_000_000], help="how many, one run each")
    parser.add_argument("--kinds", nargs="+", default=[kind for kind in KINDS if kind != "flat"], choices=KINDS)
    parser.add_argument("--embeddings", type=Path, help="real pair vectors, as `relvec index export` writes them")
    parser.add_argument("--model", help="the model of the embeddings: times whole queries; alone, it makes the vectors")
    parser.add_argument("--queries", type=int, default=200, help="how many searches")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of FAISS")
    parser.add_argument("--json", action="store_true", help="print JSON for machines")
    options = parser.parse_args()
    faiss().omp_set_num_threads(options.threads)
    source = source_of(options.embeddings, options.model)
    kinds = [KINDS[name] for name in options.kinds if name != "flat"]
    rows = [row for count in options.pairs for row in run(source, count, kinds, options.queries)]
    given = f"{len(source.vectors):,} {source.name}, {source.vectors.shape[1]} dimensions"
    if options.json:
        settings = {"source": given, "queries": options.queries, "threads": options.threads, "model": options.model}
        print(json.dumps({**settings, "rows": [asdict(row) for row in rows]}, indent=2))
    else:
        print(f"{given}, {options.queries} queries, {options.threads} threads\n")
        print(markdown(rows))


if __name__ == "__main__":
    main()
