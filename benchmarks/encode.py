"""Pairs per second of relvec against the peer, on the same checkpoint folder: float32 on the CPU."""

import argparse
import json
import os
import random
import statistics
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

from peer import BATCH_SIZE, Encoded, Worker, peer_python, smallest_cosine

from relvec import RelBERT
from relvec.pairs import Pair, parse_pair

MODELS = ("mpnet", "minilm")
TEMPLATES = ("4", "I discovered: [h] is the <mask> of [t]", "[h] <mask> [t]")


@dataclass(frozen=True)
class Measured:
    pairs_per_second: float
    peak_megabytes: float


@dataclass(frozen=True)
class Row:
    model: str
    template: str
    relvec: Measured
    peer: Measured
    ratio: float
    smallest_cosine: float


def bundled_pairs(count: int) -> list[Pair]:
    """Distinct pairs drawn from the bundled relations, the same ones each time."""
    pairs: set[Pair] = set()
    for file in resources.files("relvec").joinpath("data", "relations").iterdir():
        if file.name.endswith(".toml"):
            for relation in tomllib.loads(file.read_text(encoding="utf-8"))["relation"]:
                pairs.update(parse_pair(text) for text in relation["positives"] + relation["negatives"])
    return random.Random(0).sample(sorted(pairs), min(count, len(pairs)))


def measure(model: str, template: str, pairs: Sequence[Pair], rounds: int, threads: int, python: Path) -> Row:
    """Both packages on one checkpoint, in turns, each in a fresh process."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Worker.of_relvec(threads) as relvec,
        Worker.of_peer(python, threads) as peer,
    ):
        RelBERT.from_pretrained(model, template=template, pooling="average").save_pretrained(folder)
        runs: dict[Worker, list[Encoded]] = {relvec: [], peer: []}
        for worker in runs:
            worker.load(Path(folder))
            worker.encode(pairs[:BATCH_SIZE])  # warm-up
        for _ in range(rounds):
            for worker, encoded in runs.items():
                encoded.append(worker.encode(pairs))
    ours, theirs = (_summary(encoded, len(pairs)) for encoded in runs.values())
    cosine = smallest_cosine(runs[relvec][0].vectors, runs[peer][0].vectors)
    return Row(model, template, ours, theirs, ours.pairs_per_second / theirs.pairs_per_second, cosine)


def _summary(runs: Sequence[Encoded], pairs: int) -> Measured:
    rate = statistics.median(pairs / run.seconds for run in runs)
    return Measured(rate, max(run.peak_megabytes for run in runs))


def markdown(rows: Sequence[Row]) -> str:
    head = "| model | template | relvec pairs/s | relbert pairs/s | ratio | relvec MB | relbert MB | smallest cosine |"
    lines = [head, "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for row in rows:
        rates = f"{row.relvec.pairs_per_second:.1f} | {row.peer.pairs_per_second:.1f} | {row.ratio:.2f}x"
        peaks = f"{row.relvec.peak_megabytes:.0f} | {row.peer.peak_megabytes:.0f}"
        lines.append(f"| {row.model} | {row.template} | {rates} | {peaks} | {row.smallest_cosine:.7f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=MODELS, help="names of base models")
    parser.add_argument("--templates", nargs="+", default=TEMPLATES, help="numbers of the paper's, or text")
    parser.add_argument("--pairs", type=int, default=2000, help="how many distinct pairs")
    parser.add_argument("--rounds", type=int, default=3, help="how often each package encodes them")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of each package")
    parser.add_argument("--peer-python", type=Path, help="the interpreter of an environment that holds the peer")
    parser.add_argument("--json", action="store_true", help="print JSON for machines")
    options = parser.parse_args()
    pairs = bundled_pairs(options.pairs)
    python = options.peer_python or peer_python()
    rows = [
        measure(model, template, pairs, options.rounds, options.threads, python)
        for model in options.models
        for template in options.templates
    ]
    if options.json:
        settings = {"pairs": len(pairs), "rounds": options.rounds, "threads": options.threads, "batch": BATCH_SIZE}
        print(json.dumps({**settings, "rows": [asdict(row) for row in rows]}, indent=2))
    else:
        print(f"{len(pairs)} pairs, median of {options.rounds} rounds, {options.threads} threads, float32 on the CPU\n")
        print(markdown(rows))


if __name__ == "__main__":
    main()
