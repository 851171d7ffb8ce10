"""Pairs per second of relvec's models by each backend, beside the peer on the same checkpoint, on the CPU.

    make speed

Each way is a process of its own. The ways of a model take turns, so that a busy machine slows all alike; the median of
the rounds counts. A turn lasts about as long for each, so that a slow way encodes fewer pairs than a fast one. `speed`
is the ratio to the default model in float32 by torch, `to the peer` that to the peer on the same checkpoint. The
cosine is to the vectors of float32 by torch.
"""

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

from peer import Encoded, Worker, peer_python, smallest_cosine

from relvec import RelBERT
from relvec.evaluation.systems import model_system
from relvec.evaluation.task import evaluate
from relvec.hub.catalogue import BASE_MODELS, BUNDLED_MODELS, DEFAULT_MODEL
from relvec.pairs import Pair, parse_pair

PEER = "relbert"
EXACT = "torch float32"
STATIC = "numpy float32"
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
BENCHMARKS = ("sat", "u2", "u4", "google", "bats")
SAMPLE = 64  # pairs that warm a way up, and whose vectors are compared


@dataclass(frozen=True)
class Row:
    """How fast one way encodes; a number that was not measured, or means nothing for this model, is None."""

    model: str
    prompt: str
    way: str
    pairs_per_second: float
    to_peer: float | None
    peak_megabytes: float
    smallest_cosine: float | None
    accuracy: float | None


def bundled_pairs(count: int) -> list[Pair]:
    """Distinct pairs drawn from the bundled relations, the same ones each time."""
    pairs: set[Pair] = set()
    for file in resources.files("relvec").joinpath("data", "relations").iterdir():
        if file.name.endswith(".toml"):
            for relation in tomllib.loads(file.read_text(encoding="utf-8"))["relation"]:
                pairs.update(parse_pair(text) for text in relation["positives"] + relation["negatives"])
    return random.Random(0).sample(sorted(pairs), min(count, len(pairs)))


def ways_of(model: str) -> list[str]:
    """What can encode with a model: a static one has one way, and decoders are torch's alone, too large for float32."""
    bundled = BUNDLED_MODELS.get(model)
    if bundled and not bundled.base:
        return [STATIC]
    if bundled and BASE_MODELS[bundled.base].is_gguf:
        return ["torch bfloat16"]
    return [PEER, *WAYS]


def measure(
    model: str,
    template: str | None,
    pairs: Sequence[Pair],
    seconds: float,
    rounds: int,
    threads: int,
    python: Path | None,
) -> dict[str, list[Encoded]]:
    """The ways of one model in turns, each in a process of its own: first the sample, then the rounds."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        ways = ways_of(model)
        if PEER in ways:
            pooling = "average" if template else None
            RelBERT.from_pretrained(model, template=template, pooling=pooling).save_pretrained(folder)
        workers = {
            way: stack.enter_context(Worker.of_peer(python, threads) if way == PEER else Worker.of_relvec(threads))
            for way in ways
        }
        runs: dict[str, list[Encoded]] = {}
        for way, worker in workers.items():
            worker.load(folder if PEER in ways else model, **WAYS.get(way, {}))
            worker.encode(pairs[:SAMPLE])  # warm-up
            runs[way] = [worker.encode(pairs[:SAMPLE])]
        for _ in range(rounds):
            for way, worker in workers.items():
                count = max(SAMPLE, int(SAMPLE * seconds / runs[way][0].seconds))
                runs[way].append(worker.encode(pairs[:count]))
        return runs


def rows_of(model: str, template: str | None, runs: dict[str, list[Encoded]], accuracy: dict[str, float]) -> list[Row]:
    rate = {
        way: statistics.median(len(run.vectors) / run.seconds for run in measured)
        for way, (_, *measured) in runs.items()
    }
    return [
        Row(
            model,
            template or "",
            way,
            rate[way],
            rate[way] / rate[PEER] if PEER in rate else None,
            max(run.peak_megabytes for run in encoded),
            smallest_cosine(encoded[0].vectors, runs[EXACT][0].vectors) if EXACT in runs else None,
            accuracy.get(way.split()[-1]),
        )
        for way, encoded in runs.items()
    ]


def accuracy_of(model: str) -> dict[str, float]:
    """Mean accuracy on the test parts in both directions, by precision; the cache keeps the vectors."""
    ways = {way.split()[-1]: WAYS[way] for way in ways_of(model) if way != PEER}  # of a precision the last, the fastest
    found = {}
    for dtype, way in ways.items():
        system = model_system(model, **way)
        records = evaluate(system, "analogy", datasets=BENCHMARKS, part="test", scoring="bidirectional")
        found[dtype] = statistics.fmean(record.metrics["accuracy"] for record in records)
    return found | {PEER: found["float32"]}  # the cosine shows that the peer's vectors are the same


def known_accuracy(model: str) -> dict[str, float]:
    """What the catalogue says of a model: it is of float32, or of the only way that the model has."""
    known = BUNDLED_MODELS[model].measured.analogy_accuracy if model in BUNDLED_MODELS else None
    return {} if known is None else {way.split()[-1]: known for way in ways_of(model)[:2]}


def markdown(rows: Sequence[Row]) -> str:
    default = next((row.pairs_per_second for row in rows if (row.model, row.way) == (DEFAULT_MODEL, EXACT)), None)
    lines = ["| model | way | pairs/s | speed | to the peer | MB | smallest cosine | accuracy |"]
    lines.append("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        cells = [
            f"{row.model} {row.prompt}".strip(),
            row.way,
            f"{row.pairs_per_second:,.0f}" if row.pairs_per_second >= 100 else f"{row.pairs_per_second:.1f}",
            f"{row.pairs_per_second / default:.2f}x" if default else "",
            f"{row.to_peer:.1f}x" if row.to_peer else "",
            f"{row.peak_megabytes:.0f}",
            f"{row.smallest_cosine:.5f}" if row.smallest_cosine else "",
            f"{row.accuracy:.1f}" if row.accuracy else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(BUNDLED_MODELS), help="relation models, or base models")
    parser.add_argument("--templates", nargs="+", default=[None], help="instead of a model's own: numbers, or text")
    parser.add_argument("--accuracy", nargs="+", default=[], help="models to evaluate on analogies in every precision")
    parser.add_argument("--seconds", type=float, default=4, help="how long a turn lasts, about")
    parser.add_argument("--rounds", type=int, default=3, help="how many turns each way has")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of each package")
    parser.add_argument("--peer-python", type=Path, help="the interpreter of an environment that holds the peer")
    parser.add_argument("--output", type=Path, help="also write the rows as JSON")
    options = parser.parse_args()
    pairs = bundled_pairs(100_000)
    python = options.peer_python or peer_python()
    accuracy = {model: known_accuracy(model) for model in options.models}
    accuracy |= {model: accuracy_of(model) for model in options.accuracy}
    rows: list[Row] = []
    for model in options.models:
        for template in options.templates:
            runs = measure(model, template, pairs, options.seconds, options.rounds, options.threads, python)
            rows += rows_of(model, template, runs, {} if template else accuracy[model])
    print(f"{options.rounds} rounds of {options.seconds:g} s, {options.threads} threads, on the CPU\n")
    print(markdown(rows))
    if options.output:
        text = json.dumps([asdict(row) for row in rows], indent=2)
        options.output.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
