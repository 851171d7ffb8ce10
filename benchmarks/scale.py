"""What bulk encoding and large indexes cost: one table a part (`--help` lists them).

The machine may be shared, so that seconds of the clock say little: `index` also counts seconds of the processor, and
every part compares what it measures in one run.
"""

import argparse
import hashlib
import heapq
import json
import multiprocessing
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from encode import bundled_pairs

from relvec import PairIndex, RelBERT
from relvec.bulk.manifest import Manifest
from relvec.data.benchmarks.analogy import Question, datasets_with, load_questions
from relvec.index import index_shards
from relvec.index.pair_index import RERANKED, PairFilter
from relvec.index.shard_vectors import ShardVectors
from relvec.index.storage import is_milvus
from relvec.index.vocabulary import PairVocabulary
from relvec.io.vectors import read_pair_file
from relvec.model.cached_vectors import ModelVectors
from relvec.pairs import Pair
from relvec.similarity import Vectors, normalized, principal_axes

NEIGHBOURS = 10
SIZES = {"10^6": 10**6, "10^8": 10**8, "10^9": 10**9}
RATES = Path(__file__).parents[1] / "experiments" / "encode.json"

Rows = Iterator[list[Any]]


def workers(options: argparse.Namespace) -> Rows:
    """One bulk job by one process, by several, and on Ray with as many cores: the best of some rounds, in turns.

    "To start" is a job of a pair a shard; the rate is that of the rows beyond.
    """
    cores, shards = options.cores, 8 * options.cores
    settings = {
        "1 process, 1 thread": ("local", 1, 1),
        f"1 process, {cores} threads": ("local", 1, cores),
        f"{cores} processes, 1 thread each": ("local", cores, 1),
        f"Ray, {cores} actors": ("ray", cores, 1),
    }
    seconds: dict[tuple[str, int], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, rows in product(range(options.rounds), (shards, options.rows)):
            source = written(Path(folder) / f"{rows}.tsv", bundled_pairs(rows))
            for name, (runner, count, threads) in settings.items():
                output = Path(folder) / f"{number} {rows} {name}"
                sharding = ("--shards", str(shards), "--runner", runner, "--workers", str(count))
                done = json.loads(run(command(source, output, options, *sharding), threads))
                seconds.setdefault((name, rows), []).append(done["seconds"])
    yield ["workers", "start-up, s", "rows/s", "vs the first"]
    first = 0.0
    for name in settings:
        start = min(seconds[name, shards])
        rate = (options.rows - shards) / (min(seconds[name, options.rows]) - start)
        first = first or rate
        yield [name, f"{start:.1f}", f"{rate:.0f}", f"{rate / first:.2f}x"]


def faults(options: argparse.Namespace) -> Rows:
    """Kill what encodes, start again where the driver was killed, and compare with the undisturbed result."""
    yield ["runner", "killed", "shards before the restart", "rows", "equal, row for row"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = written(folder / "pairs.tsv", bundled_pairs(options.rows))
        run(command(source, folder / "alone", options, "--shards", "24", "--workers", "1"), 1)
        expected = digest(folder / "alone")
        for runner, killed in (("local", "worker"), ("local", "driver"), ("ray", "worker"), ("ray", "driver")):
            output = folder / f"{runner}-{killed}"
            job = command(source, output, options, "--shards", "24", "--runner", runner, "--workers", "2")
            driver = subprocess.Popen(job, stdout=subprocess.PIPE, text=True)
            while len(list(output.glob("part-*.parquet"))) < 3 and driver.poll() is None:
                time.sleep(0.05)
            if killed == "driver":
                driver.send_signal(signal.SIGKILL)
                driver.wait()
                told = run(job, 1)
            else:
                os.kill(random.Random(0).choice(encoders(driver.pid)), signal.SIGKILL)
                told = driver.communicate()[0]
            done = json.loads(told)
            yield [runner, killed, done["shards_before"], done["rows"], digest(output) == expected]


class Query(NamedTuple):
    """The mean of two pairs of a relation: none of its neighbours is the query itself. `wanted` is the filter."""

    vector: Vectors
    wanted: PairFilter


class Answers(NamedTuple):
    """How many pairs there are, the candidates of every query without and with its filter, and what finding took.

    Milliseconds are medians, by the clock and of the processor.
    """

    pairs: int
    plain: list[list[Pair]]
    filtered: list[list[Pair]]
    open_seconds: float
    milliseconds: tuple[float, float]
    filtered_milliseconds: tuple[float, float]


def index(options: argparse.Namespace) -> Rows:
    """Kinds of FAISS index and Milvus Lite from the same shards, each built and asked in a process of its own.

    An index that is in `--folder` already is only asked.
    """
    yield [
        *("index", "build s", "build core-s", "build, peak MB", "bytes per pair", "open s", "search, peak MB"),
        *("recall@10", "after re-ranking", "p50 ms", "core-ms"),
        *("filtered recall@10", "filtered p50 ms", "filtered core-ms"),
    ]
    queries, truth, filtered_truth = exact(options)
    with tempfile.TemporaryDirectory() as name:
        for kind in options.kinds:
            place = Path(options.folder or name) / f"{kind}.db"
            built = None if place.exists() else in_new_process(build, options.shards, address(place))
            stored = sum(file.stat().st_size for file in place.rglob("*"))
            asked = in_new_process(ask, address(place), queries)
            found: Answers = asked.result
            yield [
                *(kind, *([f"{each:.0f}" for each in built[1:]] if built else "---")),
                *(f"{stored / found.pairs:.0f}", f"{found.open_seconds:.1f}", f"{asked.peak_mb:.0f}"),
                *(f"{recall(truth, found.plain, NEIGHBOURS):.3f}", f"{recall(truth, found.plain, RERANKED):.3f}"),
                *(f"{each:.1f}" for each in found.milliseconds),
                f"{recall(filtered_truth, found.filtered, RERANKED):.3f}",
                *(f"{each:.1f}" for each in found.filtered_milliseconds),
            ]


def pairs(options: argparse.Namespace) -> Rows:
    """Write `--rows` distinct pairs to `pairs.parquet` in `--folder`: bundled ones, reversed, then scrambled."""
    import pyarrow
    from pyarrow import parquet

    bundled = PairIndex.load().pairs
    rows = list(zip(bundled.pairs(), bundled.all_relations(), strict=True))
    found = dict(rows)
    tails: dict[str, list[str]] = {}
    for (head, tail), label in rows:
        found.setdefault((tail, head), label and f"reverse of {label}")
        tails.setdefault(label, []).append(tail)
    chance = random.Random(0)
    while len(found) < options.rows:
        (head, _), label = chance.choice(rows)
        tail = chance.choice(tails[label])
        if head.casefold() != tail.casefold():
            found.setdefault((head, tail), label and f"scrambled {label}")
    heads, tails_of = zip(*islice(found, options.rows), strict=True)
    columns: dict[str, Sequence[str]] = {
        "head": heads,
        "tail": tails_of,
        "relation": list(islice(found.values(), options.rows)),
    }
    parquet.write_table(pyarrow.table(columns), Path(options.folder) / "pairs.parquet", row_group_size=16_384)
    yield ["pairs", "labels"]
    yield [len(heads), len(set(columns["relation"]))]


def kills(options: argparse.Namespace) -> Rows:
    """Kill -9 a process that adds pairs to the indexes which `index --folder` left, and open them again."""
    yield [
        "index",
        "pairs before",
        "acknowledged steps of 1,000",
        "pairs after",
        "acknowledged pairs lost",
        "same answers",
        "open s",
    ]
    queries = exact(options)[0][:3]
    for kind in options.kinds:
        place = address(Path(options.folder) / f"{kind}.db")
        for number in range(options.rounds):
            before, answers = in_new_process(state, place, queries).result
            told = killed_writer(place, number, random.Random(number).uniform(0, 2))
            start = time.perf_counter()
            after, again = in_new_process(state, place, queries).result
            seconds = time.perf_counter() - start
            lost = max(0, before + 1_000 * told - after)
            yield [kind, before, told, after, lost, answers == again, f"{seconds:.1f}"]


def killed_writer(place: str, number: int, seconds: float) -> int:
    """Let a process add pairs by the thousand, kill it within its third step or later, and return what it told."""
    code = f"import scale; scale.add_for_ever({place!r}, {number})"
    writer = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent, env=dict(os.environ)
    )
    assert writer.stdout is not None
    writer.stdout.readline()
    time.sleep(seconds)
    writer.send_signal(signal.SIGKILL)
    return 1 + len(writer.stdout.read().splitlines())


def add_for_ever(place: str, number: int) -> None:
    """A folder counts what it was given when it is saved, Milvus at once."""
    random = np.random.default_rng(number)
    for step in range(1_000_000):
        with PairIndex.editing(place) as opened:
            pairs = [(f"head {number} {step}", f"tail {row}") for row in range(1_000)]
            vectors = normalized(random.normal(size=(1_000, opened.dim)).astype(np.float32))
            opened.append(pairs, [""] * len(pairs), vectors)
        print(step, flush=True)


def state(place: str, queries: Sequence[Query]) -> tuple[int, list[list[Pair]]]:
    opened = PairIndex.load(place)
    wanted = [(query.vector, query.wanted) for query in queries]
    return len(opened), [[each.pair for each in opened.candidates(vector, NEIGHBOURS, of)] for vector, of in wanted]


def exact(options: argparse.Namespace) -> tuple[list[Query], list[set[Pair]], list[set[Pair]]]:
    """Queries, and their true neighbours without and with the filter, by comparing every vector."""
    pairs, vectors = ShardVectors(Manifest.read(str(options.shards))).distinct()
    chance = np.random.default_rng(1)
    by_label = np.argsort(pairs.labels, kind="stable")
    bounds = np.searchsorted(pairs.labels[by_label], np.arange(len(pairs.relations) + 1))
    large = [label for label in range(1, len(pairs.relations)) if bounds[label + 1] - bounds[label] >= 100]
    queries = []
    for label in chance.choice(large, options.queries):
        rows = np.sort(chance.choice(by_label[bounds[label] : bounds[label + 1]], 2, replace=False))
        words = frozenset(word for row in rows for word in pairs.pair(int(row)))
        mean = normalized(vectors[rows]).mean(axis=0)
        queries.append(Query(mean, PairFilter((pairs.relations[label],), without_words=words)))
    asked = normalized(np.stack([query.vector for query in queries]))
    steps = range(0, len(vectors), 65_536)
    scores = np.concatenate([normalized(vectors[start : start + 65_536]) @ asked.T for start in steps]).T
    plain, filtered = [], []
    for (_, wanted), of_query in zip(queries, scores, strict=True):
        allowed = pairs.with_relation(wanted.relations or ()) & ~pairs.with_word(wanted.without_words)
        plain.append(best(pairs, of_query, np.arange(len(pairs))))
        filtered.append(best(pairs, of_query, np.flatnonzero(allowed)))
    return queries, plain, filtered


def best(pairs: PairVocabulary, scores: Vectors, rows: Any) -> set[Pair]:
    return {pairs.pair(int(row)) for row in rows[np.argsort(-scores[rows])[:NEIGHBOURS]]}


class Measured(NamedTuple):
    """What a function returned in a process of its own, and what that took."""

    result: Any
    seconds: float
    core_seconds: float
    peak_mb: float


def in_new_process(work: Callable[..., Any], *given: Any) -> Measured:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measured, work, *given).result()


def measured(work: Callable[..., Any], *given: Any) -> Measured:
    start = time.perf_counter()
    result = work(*given)
    seconds = time.perf_counter() - start
    return Measured(
        result, seconds, time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024 / 1e6
    )


def address(place: Path) -> str:
    return f"milvus:{place}" if place.stem == "milvus" else str(place)


def build(shards: Path, place: str) -> int:
    return index_shards(shards, place, kind="auto" if is_milvus(place) else Path(place).stem)


def ask(place: str, queries: Sequence[Query]) -> Answers:
    start = time.perf_counter()
    opened = PairIndex.load(place)
    opened.candidates(queries[0].vector, RERANKED)
    open_seconds = time.perf_counter() - start
    found: list[Any] = []
    for wanted in ([None] * len(queries), [query.wanted for query in queries]):
        answers, clock, processor = [], [], []
        for query, of_query in zip(queries, wanted, strict=True):
            start, core = time.perf_counter(), time.process_time()
            answers.append([each.pair for each in opened.candidates(query.vector, RERANKED, of_query)])
            clock.append(time.perf_counter() - start)
            processor.append(time.process_time() - core)
        found += [answers, (1_000 * statistics.median(clock), 1_000 * statistics.median(processor))]
    return Answers(len(opened), found[0], found[2], open_seconds, found[1], found[3])


def dimensions(options: argparse.Namespace) -> Rows:
    """Recall and analogy accuracy (forward) of shorter vectors; the projection knows the vectors of the index alone."""
    yield [
        "dimensions",
        "recall@10",
        "after re-ranking",
        *(options.datasets or datasets_with(options.questions)),
        "mean",
    ]
    vectors = normalized(read_pair_file(options.embeddings).vectors)
    order = np.random.default_rng(1).permutation(len(vectors))
    queries, kept = vectors[order[: options.queries]], vectors[order[options.queries :]]
    model = RelBERT.from_pretrained(options.models[0], backend=options.backends[0], dtype=options.dtype)
    asked = {
        name: load_questions(name, options.questions) for name in options.datasets or datasets_with(options.questions)
    }
    distinct = list(
        dict.fromkeys(
            pair
            for questions in asked.values()
            for question in questions
            for pair in (question.stem, *question.choices)
        )
    )
    encoded = dict(zip(distinct, normalized(ModelVectors(model).vectors(distinct)[0]), strict=True))
    exact = np.argsort(-(queries @ kept.T), axis=1)[:, :NEIGHBOURS]
    for dim in (*options.dims, vectors.shape[1]):
        axes = principal_axes(kept, dim)
        near = np.argsort(-((queries @ axes.T) @ (kept @ axes.T).T), axis=1)[:, :RERANKED]
        found = [
            np.mean([np.isin(a, b[:n]).mean() for a, b in zip(exact, near, strict=True)])
            for n in (NEIGHBOURS, RERANKED)
        ]
        right = [accuracy(questions, encoded, axes) for questions in asked.values()]
        cells = [
            *(f"{each:.3f}" for each in found),
            *(f"{100 * each:.1f}" for each in (*right, statistics.mean(right))),
        ]
        yield [dim, *cells]


def estimate(options: argparse.Namespace) -> Rows:
    """Core-hours, cost at 0.04 $ a core-hour, and hours on 64 cores, from what `encode.py` measured on two."""
    yield ["model", "computed by", *(f"{what}, {size}" for what in ("core-hours", "$", "hours") for size in SIZES)]
    for row in json.loads(options.rates.read_text(encoding="utf-8")):
        if not row["prompt"] and row["way"] != "relbert":
            hours = [2 * pairs / row["pairs_per_second"] / 3_600 for pairs in SIZES.values()]
            cells = [share * each for share in (1, 0.04, 1 / 64) for each in hours]
            yield [row["model"], row["way"], *(f"{cell:,.0f}" if cell >= 100 else f"{cell:.2g}" for cell in cells)]


def scheduling(options: argparse.Namespace) -> Rows:
    """A simulation: how much longer than ideal a job takes by shards a worker, with slow workers and lost ones."""
    yield [
        "shards per worker",
        "minutes per shard",
        "equal workers",
        "1 in 20 workers 3x slow",
        "a worker lost every 10 hours of work",
    ]
    for shards in (1, 2, 4, 16, 64):
        minutes = 60 * options.hours / shards
        cases = ((1.0, 0.0), (3.0, 0.0), (1.0, minutes / 600))
        longer = [
            statistics.mean(simulated(64, shards, slow, lost, random.Random(seed)) for seed in range(30))
            for slow, lost in cases
        ]
        yield [shards, f"{minutes:.0f}", *(f"+{100 * (each - 1):.0f} %" for each in longer)]


def simulated(count: int, shards_each: int, slow: float, lost: float, chance: random.Random) -> float:
    """The time until all shards are done, in that of ideal sharing; a shard that is lost is encoded again.

    Shards take 1 unit give or take a quarter, workers take the next shard when they are free, one in 20 is slow.
    """
    free = [(0.0, worker) for worker in range(count)]
    heapq.heapify(free)
    remaining = count * shards_each
    end = 0.0
    while remaining:
        now, worker = heapq.heappop(free)
        length = chance.uniform(0.75, 1.25) * (slow if worker % 20 == 0 else 1.0)
        if chance.random() < lost * length:
            length *= chance.random()
        else:
            remaining -= 1
            end = max(end, now + length)
        heapq.heappush(free, (now + length, worker))
    return end / shards_each


def recall(truth: Sequence[set[Pair]], found: Sequence[Sequence[Pair]], count: int) -> float:
    return statistics.mean(len(true & set(each[:count])) / len(true) for true, each in zip(truth, found, strict=True))


def accuracy(questions: Sequence[Question], encoded: dict[Pair, Any], axes: Vectors) -> float:
    right = 0
    for question in questions:
        stem, *choices = normalized(np.stack([encoded[pair] for pair in (question.stem, *question.choices)]) @ axes.T)
        right += int(np.argmax(np.stack(choices) @ stem) == question.answer)
    return right / len(questions)


def written(path: Path, pairs: Sequence[Pair]) -> Path:
    path.write_text("head\ttail\n" + "".join(f"{head}\t{tail}\n" for head, tail in pairs), encoding="utf-8")
    return path


def command(source: Path, output: Path, options: argparse.Namespace, *more: str) -> list[str]:
    encoder = ["-m", options.models[0], "--backend", options.backends[0], "--json"]
    return [sys.executable, "-m", "relvec", "embed", str(source), "-o", f"{output}/", *encoder, *more]


def run(job: list[str], threads: int) -> str:
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    return subprocess.run(job, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **limits}).stdout


def encoders(driver: int) -> list[int]:
    """The processes that encode: children of the driver, or actors of Ray."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            title = (entry / "cmdline").read_text() if entry.name.isdigit() else ""
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1]) if title else 0
        except OSError:
            continue
        if "RayWorker" in title or (parent == driver and "spawn_main" in title):
            found.append(int(entry.name))
    return found


def digest(folder: Path) -> str:
    files = sorted(folder.glob("part-*.parquet"))
    return hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()


PARTS: dict[str, Callable[[argparse.Namespace], Rows]] = {
    part.__name__: part for part in (workers, faults, pairs, index, kills, dimensions, estimate, scheduling)
}


def main() -> None:
    listed = "; ".join(f"{name}: {(part.__doc__ or '').strip().splitlines()[0]}" for name, part in PARTS.items())
    parser = argparse.ArgumentParser(description=f"{__doc__} Parts are {listed}")
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--models", nargs="+", default=["relvec-small"])
    parser.add_argument("--backends", nargs="+", default=["numpy"])
    parser.add_argument("--dtype", default="float32", help="of dimensions")
    parser.add_argument("--rows", type=int, default=8_192, help="of workers, faults and pairs")
    parser.add_argument("--rounds", type=int, default=3, help="of workers and kills")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1, help="of workers")
    parser.add_argument("--kinds", nargs="+", default=["flat", "rabitq", "ivfpq", "milvus"], help="of index and kills")
    parser.add_argument("--shards", type=Path, help="of index and kills: a folder by relvec embed, with labels")
    parser.add_argument("--embeddings", type=Path, help="of dimensions: a file of pair vectors")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--folder", help="where pairs are written, and indexes left for kills")
    parser.add_argument("--dims", type=int, nargs="+", default=[32, 64, 128, 256], help="of dimensions")
    parser.add_argument("--datasets", nargs="+", help="of dimensions; by default the five of the paper")
    parser.add_argument("--questions", default="valid", help="the part of the datasets of dimensions: valid or test")
    parser.add_argument("--rates", type=Path, default=RATES, help="of estimate")
    parser.add_argument("--hours", type=float, default=4, help="of work for each worker in scheduling")
    options = parser.parse_args()
    for number, row in enumerate(PARTS[options.part](options)):
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
        if number == 0:
            print("|" + " --- |" * len(row), flush=True)


if __name__ == "__main__":
    main()
