"""What bulk encoding and large indexes cost: one table a part (`--help` lists them).

The machine may be shared, so that seconds of the clock say little. `cost` counts seconds of the processor; the other
parts compare what they measure in one run.
"""

import argparse
import hashlib
import heapq
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from encode import bundled_pairs
from threadpoolctl import threadpool_limits

from index import grown, planted
from relvec import PairIndex, RelBERT
from relvec.data.benchmarks.analogy import Question, datasets_with, load_questions
from relvec.index.kinds import KINDS
from relvec.index.milvus import MilvusIndex
from relvec.index.pair_index import RERANKED, Wanted
from relvec.index.vector_store import VectorStore, principal_axes
from relvec.index.vocabulary import PairVocabulary
from relvec.io.vectors import read_pair_file
from relvec.model.model_check import PROBES, ModelCheck
from relvec.pairs import Pair
from relvec.similarity import Vectors, normalized

NEIGHBOURS = 10

Rows = Iterator[list[Any]]


def cost(options: argparse.Namespace) -> Rows:
    """Processor time of one thread for a pair, in batches of 64, without loading."""
    pairs = bundled_pairs(options.rows)
    yield ["model", "backend", "core-ms a pair", "pairs a core-second"]
    for name in options.models:
        for backend in options.backends:
            model = RelBERT.from_pretrained(name, backend=backend)
            with threadpool_limits(1):
                model.encode(pairs[:64])
                start = time.process_time()
                model.encode(pairs)
                seconds = time.process_time() - start
            yield [name, backend, f"{1000 * seconds / len(pairs):.2f}", f"{len(pairs) / seconds:.0f}"]


def workers(options: argparse.Namespace) -> Rows:
    """One bulk job by one process, by several, and on Ray with as many cores: the best of some rounds, in turns."""
    cores = options.cores
    settings = {
        "1 process, 1 thread": ("local", 1, 1),
        f"1 process, {cores} threads": ("local", 1, cores),
        f"{cores} processes, 1 thread each": ("local", cores, 1),
        f"Ray, {cores} actors": ("ray", cores, 1),
    }
    seconds: dict[str, list[float]] = {name: [] for name in settings}
    with tempfile.TemporaryDirectory() as folder:
        source = written(Path(folder) / "pairs.tsv", bundled_pairs(options.rows))
        for number in range(options.rounds):
            for name, (runner, count, threads) in settings.items():
                output = Path(folder) / f"{number} {name}"
                job = command(source, output, options, "--runner", runner, "--workers", str(count))
                seconds[name].append(json.loads(run(job, threads))["seconds"])
    yield ["who", "rows a second", "against the first"]
    for name, times in seconds.items():
        yield [name, f"{options.rows / min(times):.0f}", f"{min(seconds['1 process, 1 thread']) / min(times):.2f}x"]


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


def index(options: argparse.Namespace) -> Rows:
    """Kinds of FAISS index and Milvus Lite on the same vectors; the queries are left out of them."""
    yield [
        *("index", "build core-s", "build s", "recall@10", "after re-ranking", "p50 ms", "p50 core-ms"),
        *("filtered p50 ms", "filtered recall@10", "bytes a pair", "memory MB"),
    ]
    random = np.random.default_rng(1)
    base = normalized(read_pair_file(options.embeddings).vectors) if options.embeddings else normalized(planted(random))
    order = random.permutation(len(base))
    queries, kept = base[order[: options.queries]], order[options.queries :]
    more = random.choice(kept, size=max(0, options.pairs - len(kept)))
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        rows = np.concatenate([kept[: options.pairs], more])
        vectors = grown(random, base, rows, len(kept), folder / "vectors.f32")
        pairs = [(f"head {at % 9973}", f"tail {at}") for at in range(len(vectors))]
        labels = [f"relation {at % 10}" for at in range(len(vectors))]
        wanted = Wanted(("relation 3",), without_words=frozenset(["head 17", "tail 4711"]))
        truth: list[list[set[Pair]]] = []
        for kind in ("flat", *options.kinds):
            before = resident()
            start, core = time.perf_counter(), time.process_time()
            place = folder / f"{kind}.db"
            opened = (milvus if kind == "milvus" else faiss)(place, vectors, pairs, labels)
            built, built_core = time.perf_counter() - start, time.process_time() - core
            stored = sum(file.stat().st_size for file in place.rglob("*"))
            plain, seconds, cores = asked(opened, queries, None)
            filtered, filtered_seconds, _ = asked(opened, queries, wanted)
            truth = truth or [[set(each[:NEIGHBOURS]) for each in found] for found in (plain, filtered)]
            yield [
                *(kind, f"{built_core:.0f}", f"{built:.0f}"),
                *(f"{recall(truth[0], plain, NEIGHBOURS):.3f}", f"{recall(truth[0], plain, RERANKED):.3f}"),
                *(f"{1000 * seconds:.0f}", f"{1000 * cores:.0f}", f"{1000 * filtered_seconds:.0f}"),
                f"{recall(truth[1], filtered, RERANKED):.3f}",
                *(f"{stored / len(vectors):.0f}", f"{resident() - before:.0f}"),
            ]


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
    model = RelBERT.from_pretrained(options.models[0], backend=options.backends[0])
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
    encoded = dict(zip(distinct, model.encode(distinct, normalize=True, truncate=True), strict=True))
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


def scheduling(options: argparse.Namespace) -> Rows:
    """A simulation: how much longer than ideal a job takes by shards a worker, with slow workers and lost ones."""
    yield [
        "shards a worker",
        "minutes a shard",
        "alike",
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


def milvus(place: Path, vectors: Vectors, pairs: list[Pair], labels: list[str]) -> PairIndex:
    opened = MilvusIndex.begin(f"milvus:{place}", nobody(vectors), vectors.shape[1], vectors[:0], None)
    opened.append(pairs, labels, vectors)
    opened.finish()
    return opened


def faiss(place: Path, vectors: Vectors, pairs: list[Pair], labels: list[str]) -> PairIndex:
    made = VectorStore.of(vectors, KINDS[place.stem])
    PairIndex(made, PairVocabulary.of(pairs, labels), nobody(vectors)).save(place)
    return PairIndex.load(place)


def nobody(vectors: Vectors) -> ModelCheck:
    """The vectors are no model's; only their number of dimensions is asked for."""
    import base64

    probes = np.zeros((len(PROBES), vectors.shape[1]), dtype="<f2")
    return ModelCheck(model="none", fingerprint="", probes=base64.b64encode(probes.tobytes()).decode())


def asked(opened: PairIndex, queries: Vectors, wanted: Wanted | None) -> tuple[list[list[Pair]], float, float]:
    """What is found, and the medians of clock and processor."""
    found, seconds, cores = [], [], []
    opened.candidates(queries[0], RERANKED, wanted)
    for query in queries:
        start, core = time.perf_counter(), time.process_time()
        found.append([each.pair for each in opened.candidates(query, RERANKED, wanted)])
        seconds.append(time.perf_counter() - start)
        cores.append(time.process_time() - core)
    return found, statistics.median(seconds), statistics.median(cores)


def recall(truth: Sequence[set[Pair]], found: Sequence[Sequence[Pair]], count: int) -> float:
    return statistics.mean(len(true & set(each[:count])) / len(true) for true, each in zip(truth, found, strict=True))


def accuracy(questions: Sequence[Question], encoded: dict[Pair, Any], axes: Vectors) -> float:
    right = 0
    for question in questions:
        stem, *choices = normalized(np.stack([encoded[pair] for pair in (question.stem, *question.choices)]) @ axes.T)
        right += int(np.argmax(np.stack(choices) @ stem) == question.answer)
    return right / len(questions)


def resident() -> float:
    """Memory of this process in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


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
    part.__name__: part for part in (cost, workers, faults, index, dimensions, scheduling)
}


def main() -> None:
    listed = "; ".join(f"{name}: {(part.__doc__ or '').strip().splitlines()[0]}" for name, part in PARTS.items())
    parser = argparse.ArgumentParser(description=f"{__doc__} Parts are {listed}")
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--models", nargs="+", default=["relvec-small"])
    parser.add_argument("--backends", nargs="+", default=["numpy"])
    parser.add_argument("--rows", type=int, default=8_192, help="of cost, workers and faults")
    parser.add_argument("--rounds", type=int, default=3, help="of workers")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1, help="of workers")
    parser.add_argument("--pairs", type=int, default=1_000_000, help="of index")
    parser.add_argument("--kinds", nargs="+", default=["rabitq", "ivfpq", "milvus"], help="of index, besides flat")
    parser.add_argument(
        "--embeddings", type=Path, help="pair vectors for index and dimensions; index can plant its own"
    )
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--folder", help="where an index is written; by default the temporary folder")
    parser.add_argument("--dims", type=int, nargs="+", default=[32, 64, 128, 256], help="of dimensions")
    parser.add_argument("--datasets", nargs="+", help="of dimensions; by default the five of the paper")
    parser.add_argument("--questions", default="valid", help="the part of the datasets of dimensions: valid or test")
    parser.add_argument("--hours", type=float, default=4, help="of work for each worker in scheduling")
    options = parser.parse_args()
    for number, row in enumerate(PARTS[options.part](options)):
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
        if number == 0:
            print("|" + " --- |" * len(row), flush=True)


if __name__ == "__main__":
    main()
