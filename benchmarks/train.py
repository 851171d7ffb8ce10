"""Seconds of training to the same validation loss, relvec against the peer's `relbert-train` (triplet loss).

Both start from the same encoder and see the same few relations, one after the other. The yardstick is relvec's for
both: on held-out pairs, the paper's triplet loss (margin 1, L2), and the share of triples in the right order, which
does not depend on the scale of the vectors. Loading the model and the data counts, evaluation does not.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from peer import HERE, environment, peer_python

from relvec import RelBERT
from relvec.data.rated import RatedRelation, split
from relvec.data.sources import load
from relvec.encoders.resolve import resolve
from relvec.prompts import Template
from relvec.training.batch import Batch
from relvec.training.batches import make_batch
from relvec.training.losses.triplet import Triplet, distances

CATEGORIES = ("part-whole", "contrast", "cause-effect", "professions")
RELATIONS_PER_CATEGORY = 3
PAIRS_PER_LIST = 10  # of the positives and of the negatives of a relation; 8 are for training
TEMPLATE = 4
LEARNING_RATE = 2e-5
GAINS = (0.5, 0.9, 1.0)

SAME_OBJECTIVE: dict[str, Any] = {
    "template": str(TEMPLATE),
    "pooling": "average_no_mask",
    "loss": "triplet",
    "batches": "triples",
    "triples_per_batch": len(CATEGORIES) * RELATIONS_PER_CATEGORY,
    "learning_rate": LEARNING_RATE,
    "schedule": "constant",
    "weight_decay": 0,
    "lora_rank": 0,
}
RECIPES: dict[str, dict[str, Any]] = {"triplet": SAME_OBJECTIVE, "default recipe": {}}


@dataclass(frozen=True)
class Point:
    """How good a model is after so much training."""

    seconds: float
    loss: float
    ordered: float


@dataclass(frozen=True)
class Row:
    """When each package first reached a level that the peer reached; None if it never did."""

    measure: str
    gain: float
    level: float
    peer_seconds: float
    relvec_seconds: dict[str, float | None]

    @property
    def ratios(self) -> dict[str, float | None]:
        return {name: s and self.peer_seconds / s for name, s in self.relvec_seconds.items()}


def subset() -> list[RatedRelation]:
    """A few bundled relations; the name of each starts with its category, from which the peer reads the hierarchy."""
    relations = load("bundled")
    chosen = itertools.chain.from_iterable(
        [relation for relation in relations if relation.category == category][:RELATIONS_PER_CATEGORY]
        for category in CATEGORIES
    )
    return [
        replace(
            relation,
            name=f"{relation.category}/{relation.name}",
            positives=relation.positives[:PAIRS_PER_LIST],
            negatives=relation.negatives[:PAIRS_PER_LIST],
        )
        for relation in chosen
    ]


def write_data(relations: Sequence[RatedRelation], folder: Path) -> None:
    """In the form of the authors' hub datasets, which both packages read."""
    folder.mkdir()
    for name, part in (("train", split(relations, "train")), ("validation", split(relations, "valid"))):
        rows = [
            {"relation_type": r.name, "category": r.category, "positives": r.positives, "negatives": r.negatives}
            for r in part
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def yardstick(relations: Sequence[RatedRelation]) -> Batch:
    """All held-out triples: two positives, and a negative of their relation or a positive of another."""
    held_out = split(relations, "valid")
    items = [
        (pair, number, is_positive)
        for number, relation in enumerate(held_out)
        for pairs, is_positive in ((relation.positives, True), (relation.negatives, False))
        for pair in pairs
    ]
    triples = [
        (a, p, n)
        for (a, (_, relation, a_fits)), (p, (_, same, p_fits)) in itertools.permutations(enumerate(items), 2)
        if relation == same and a_fits and p_fits
        for n, (pair, other, n_fits) in enumerate(items)
        if (relation == other) != n_fits and pair not in relations[relation].positives
    ]
    return replace(make_batch(held_out, items), triples=torch.tensor(triples))


def point(seconds: float, vectors: NDArray[np.float32], batch: Batch) -> Point:
    items = torch.from_numpy(vectors)[batch.row]
    anchor, positive, negative = batch.triples.unbind(dim=1)
    distance = distances(items)
    is_ordered = distance[anchor, positive] < distance[anchor, negative]
    return Point(seconds, float(Triplet(items.shape[1])(items, batch)), float(is_ordered.float().mean()))


def run(python: str | Path, script: str, output: Path, threads: int, arguments: dict[str, Any]) -> list[float]:
    """Train in a process of its own; the seconds of training before each evaluation."""
    output.mkdir()
    # Threads that spin while they wait would measure what else runs on the machine.
    settings = {"OMP_WAIT_POLICY": "passive", "HF_DATASETS_CACHE": str(output / "datasets")}
    command = [str(python), str(HERE / script), json.dumps({"output": str(output), **arguments})]
    subprocess.run(command, env={**environment(threads), **settings}, stdout=sys.stderr, check=True)
    seconds: list[float] = json.loads((output / "seconds.json").read_text())
    return seconds


def measure(
    base: str, steps: int, every: int, threads: int, python: Path
) -> tuple[list[Point], dict[str, list[Point]]]:
    """The course of the peer's training, and of relvec's with each recipe."""
    relations = subset()
    batch = yardstick(relations)
    encoder = resolve(base)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        write_data(relations, scratch / "data")
        data = {"data": str(scratch / "data")}
        settings: dict[str, Any] = {
            "model": str(encoder),
            "template": Template.of(TEMPLATE).to_config()["template"],
            "batch": len(relations),  # it refuses batches of more triples than there are relations
            "lr": LEARNING_RATE,
        }
        output = scratch / "peer"
        arguments = {**data, "steps": steps, "every": every, "settings": settings}
        seconds = run(python, "train_peer.py", output, threads, arguments)
        models = (RelBERT.from_pretrained(output / f"checkpoint-{n}", device="cpu") for n in range(len(seconds)))
        peer = [point(s, model.encode(batch.pairs), batch) for s, model in zip(seconds, models, strict=True)]
        relvec = {}
        for name, recipe in RECIPES.items():
            output = scratch / name.replace(" ", "-")
            settings = {"base": str(encoder), "steps": steps, "evaluate_every": every, **recipe}
            arguments = {**data, "pairs": batch.pairs, "settings": settings}
            seconds = run(sys.executable, "train_relvec.py", output, threads, arguments)
            vectors = (np.load(output / f"vectors-{number}.npy") for number in range(len(seconds)))
            relvec[name] = [point(s, found, batch) for s, found in zip(seconds, vectors, strict=True)]
    return peer, relvec


def compare(peer: Sequence[Point], relvec: dict[str, list[Point]]) -> list[Row]:
    """The times to half, to nine tenths and to all of what the peer gained."""
    rows = []
    for measure, sign in (("loss", 1), ("ordered", -1)):
        courses = {name: [(p.seconds, sign * getattr(p, measure)) for p in course] for name, course in relvec.items()}
        theirs = [(p.seconds, sign * getattr(p, measure)) for p in peer]
        start, best = theirs[0][1], min(value for _, value in theirs)
        for gain in GAINS:
            level = best if gain == 1 else start + gain * (best - start)
            reached = {name: _first(course, level) for name, course in courses.items()}
            peer_seconds = _first(theirs, level)
            assert peer_seconds is not None
            rows.append(Row(measure, gain, sign * level, peer_seconds, reached))
    return rows


def _first(course: Sequence[tuple[float, float]], level: float) -> float | None:
    return next((seconds for seconds, value in course if value <= level), None)


def markdown(rows: Sequence[Row]) -> str:
    head = "| the peer's gain | level | relbert s |" + "".join(f" relvec {name} s | ratio |" for name in RECIPES)
    lines = [head, "| --- | ---: | ---: |" + " ---: | ---: |" * len(RECIPES)]
    for row in rows:
        level = f"{row.level:.3f}" if row.measure == "loss" else f"{row.level:.1%}"
        what = {"loss": "in validation loss", "ordered": "in triples in order"}[row.measure]
        cells = [f"{row.gain:.0%} {what}", level, f"{row.peer_seconds:.1f}"]
        for name, ratio in row.ratios.items():
            seconds = row.relvec_seconds[name]
            cells += ["not reached", "-"] if seconds is None or ratio is None else [f"{seconds:.1f}", f"{ratio:.1f}x"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="minilm", help="the encoder to start from: minilm, mpnet, ...")
    parser.add_argument("--steps", type=int, default=60, help="of each run")
    parser.add_argument("--every", type=int, default=3, help="steps from one evaluation to the next")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of each package")
    parser.add_argument("--peer-python", type=Path, help="the interpreter of an environment that holds the peer")
    parser.add_argument("--json", action="store_true", help="print JSON for machines, with the course of each run")
    options = parser.parse_args()
    python = options.peer_python or peer_python()
    peer, relvec = measure(options.base, options.steps, options.every, options.threads, python)
    rows = compare(peer, relvec)
    if options.json:
        settings = {"base": options.base, "steps": options.steps, "threads": options.threads}
        courses = {"relbert": peer, **{f"relvec {name}": course for name, course in relvec.items()}}
        found = {
            "rows": [{**asdict(row), "ratios": row.ratios} for row in rows],
            "courses": {name: [asdict(p) for p in course] for name, course in courses.items()},
        }
        print(json.dumps({**settings, **found}, indent=2))
    else:
        print(f"{options.base}, {options.steps} steps of each run, {options.threads} threads, float32 on the CPU\n")
        print(markdown(rows))


if __name__ == "__main__":
    main()
