"""Pairs per second of relvec's backends against the peer, on the same checkpoint folder, on the CPU."""

import argparse
import json
import os
import random
import statistics
import tempfile
import tomllib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

from peer import BATCH_SIZE, Encoded, Worker, peer_python, smallest_cosine

from relvec import RelBERT
from relvec.pairs import Pair, parse_pair

MODELS = ("mpnet", "minilm")
TEMPLATES = ("4", "I discovered: [h] is the <mask> of [t]", "[h] <mask> [t]")
PEER = "relbert"
WAYS = {
    f"{backend} {dtype}": {"backend": backend, "dtype": dtype}
    for backend, dtype in (
        ("torch", "float32"),
        ("torch", "bfloat16"),
        ("numpy", "float32"),
        ("onnx", "float32"),
        ("onnx", "int8"),
    )
}


@dataclass(frozen=True)
class Row:
    """How fast one way encodes; the ratio and the smallest cosine are to the peer."""

    model: str
    template: str
    way: str
    pairs_per_second: float
    ratio: float
    peak_megabytes: float
    smallest_cosine: float


def bundled_pairs(count: int) -> list[Pair]:
    """Distinct pairs drawn from the bundled relations, the same ones each time."""
    pairs: set[Pair] = set()
    for file in resources.files("relvec").joinpath("data", "relations").iterdir():
        if file.name.endswith(".toml"):
            for relation in tomllib.loads(file.read_text(encoding="utf-8"))["relation"]:
                pairs.update(parse_pair(text) for text in relation["positives"] + relation["negatives"])
    return random.Random(0).sample(sorted(pairs), min(count, len(pairs)))


def measure(
    model: str, template: str, ways: Sequence[str], pairs: Sequence[Pair], rounds: int, threads: int, python: Path
) -> list[Row]:
    """The peer and the ways of relvec on one checkpoint, in turns, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        RelBERT.from_pretrained(model, template=template, pooling="average").save_pretrained(folder)
        workers = {PEER: stack.enter_context(Worker.of_peer(python, threads))}
        workers |= {way: stack.enter_context(Worker.of_relvec(threads)) for way in ways}
        runs: dict[str, list[Encoded]] = {way: [] for way in workers}
        for way, worker in workers.items():
            worker.load(Path(folder), **WAYS.get(way, {}))
            worker.encode(pairs[:BATCH_SIZE])  # warm-up
        for _ in range(rounds):
            for way, worker in workers.items():
                runs[way].append(worker.encode(pairs))
    rate = {way: statistics.median(len(pairs) / run.seconds for run in encoded) for way, encoded in runs.items()}
    return [
        Row(
            model,
            template,
            way,
            rate[way],
            rate[way] / rate[PEER],
            max(run.peak_megabytes for run in encoded),
            smallest_cosine(encoded[0].vectors, runs[PEER][0].vectors),
        )
        for way, encoded in runs.items()
    ]


def markdown(rows: Sequence[Row]) -> str:
    lines = ["| model | template | way | pairs/s | ratio | MB | smallest cosine |"]
    lines.append("| --- | --- | --- | ---: | ---: | ---: | ---: |")
    for row in rows:
        speed = f"{row.pairs_per_second:.1f} | {row.ratio:.2f}x | {row.peak_megabytes:.0f}"
        lines.append(f"| {row.model} | {row.template} | {row.way} | {speed} | {row.smallest_cosine:.7f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=MODELS, help="names of base models")
    parser.add_argument("--templates", nargs="+", default=TEMPLATES, help="numbers of the paper's, or text")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="backends and precisions")
    parser.add_argument("--pairs", type=int, default=2000, help="how many distinct pairs")
    parser.add_argument("--rounds", type=int, default=3, help="how often each package encodes them")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of each package")
    parser.add_argument("--peer-python", type=Path, help="the interpreter of an environment that holds the peer")
    parser.add_argument("--json", action="store_true", help="print JSON for machines")
    options = parser.parse_args()
    pairs = bundled_pairs(options.pairs)
    python = options.peer_python or peer_python()
    rows = [
        row
        for model in options.models
        for template in options.templates
        for row in measure(model, template, options.ways, pairs, options.rounds, options.threads, python)
    ]
    if options.json:
        settings = {"pairs": len(pairs), "rounds": options.rounds, "threads": options.threads, "batch": BATCH_SIZE}
        print(json.dumps({**settings, "rows": [asdict(row) for row in rows]}, indent=2))
    else:
        print(f"{len(pairs)} pairs, median of {options.rounds} rounds, {options.threads} threads, on the CPU\n")
        print(markdown(rows))


if __name__ == "__main__":
    main()
