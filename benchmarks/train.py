"""Seconds of training to the same validation loss, relvec against the peer's `relbert-train` (triplet loss).

Both start from the same encoder and see the same few relations, one after the other. The yardsticks are relvec's for
both, on held-out pairs: the paper's triplet loss (margin 1, L2); the same with distances in units of their mean, as
one package shrinks its vectors where the other spreads them; and the share of triples in the right order. Loading
the model and the data counts, evaluation does not.
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
from relvec.hub.models import resolve
from relvec.prompts import Template
from relvec.training.batch import Batch
from relvec.training.losses.triplet import Triplet, distances
from relvec.training.samplers import make_batch

CATEGORIES = ("part-whole", "contrast", "cause-effect", "professions")
RELATIONS_PER_CATEGORY = 3
SPLIT_PAIRS = 10  # positives, and as many negatives: 8 to train on, 2 held out
MORE_POSITIVES = 4  # held out too; they cost no training, and steady the yardstick
TEMPLATE = 4
LEARNING_RATE = 2e-5
GAINS = (0.5, 0.9, 1.0)
MEASURES = {"loss": "validation loss", "scaled_loss": "scale-free loss", "ordered": "triples in order"}

SAME_OBJECTIVE: dict[str, Any] = {
    "template": str(TEMPLATE),
    "pooling": "average_no_mask",
    "loss": "triplet",
    "triples_per_batch": len(CATEGORIES) * RELATIONS_PER_CATEGORY,
    "learning_rate": LEARNING_RATE,
    "schedule": "constant",
    "weight_decay": 0,
    "lora_rank": 0,
}
RECIPES: dict[str, dict[str, Any]] = {"relvec triplet": SAME_OBJECTIVE, "relvec default recipe": {}}
PEER_RUN = "relbert"

Course = list["Point"]


@dataclass(frozen=True)
class Point:
    """How good a model is after so much training."""

    seconds: float
    loss: float
    scaled_loss: float
    ordered: float

    def badness(self, measure: str) -> float:
        value: float = getattr(self, measure)
        return 1 - value if measure == "ordered" else value


@dataclass(frozen=True)
class Row:
    """When each package first reached a level that the peer's training reached; None if it never did."""

    measure: str
    gain: float
    level: float
    seconds: dict[str, float | None]

    @property
    def ratios(self) -> dict[str, float | None]:
        peer = self.seconds[PEER_RUN]
        return {name: peer / own if peer and own else None for name, own in self.seconds.items() if name != PEER_RUN}


def subset() -> tuple[list[RatedRelation], list[RatedRelation]]:
    """The training and the held-out part of a few bundled relations.

    A name starts with the category, from which the peer reads the hierarchy.
    """
    relations = load("bundled")
    chosen = [
        replace(relation, name=f"{category}/{relation.name}", negatives=relation.negatives[:SPLIT_PAIRS])
        for category in CATEGORIES
        for relation in [r for r in relations if r.category == category][:RELATIONS_PER_CATEGORY]
    ]
    first = [replace(r, positives=r.positives[:SPLIT_PAIRS]) for r in chosen]
    held_out = [
        replace(part, positives=(*part.positives, *r.positives[SPLIT_PAIRS:][:MORE_POSITIVES]))
        for part, r in zip(split(first, "valid"), chosen, strict=True)
    ]
    return split(first, "train"), held_out


def write(relations: Sequence[RatedRelation], path: Path) -> None:
    """In the form of the authors' hub datasets, which both packages read."""
    rows = [
        {"relation_type": r.name, "category": r.category, "positives": r.positives, "negatives": r.negatives}
        for r in relations
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def yardstick(held_out: Sequence[RatedRelation]) -> Batch:
    """All held-out triples: two positives, and a negative of their relation or a positive of another."""
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
        if (relation == other) != n_fits and pair not in held_out[relation].positives
    ]
    return replace(make_batch(held_out, items), triples=torch.tensor(triples))


def point(seconds: float, vectors: NDArray[np.float32], batch: Batch) -> Point:
    items = torch.from_numpy(vectors)[batch.row]
    anchor, positive, negative = batch.triples.unbind(dim=1)
    distance = distances(items)
    is_ordered = distance[anchor, positive] < distance[anchor, negative]
    loss, scaled_loss = (float(Triplet(items.shape[1])(x, batch)) for x in (items, items / distance.mean()))
    return Point(seconds, loss, scaled_loss, float(is_ordered.float().mean()))


def run(python: str | Path, script: str, output: Path, threads: int, arguments: dict[str, Any]) -> list[float]:
    """Train in a process of its own; the seconds of training before each evaluation."""
    output.mkdir()
    # Threads that spin while they wait would measure what else runs on the machine.
    settings = {"OMP_WAIT_POLICY": "passive", "HF_DATASETS_CACHE": str(output / "datasets")}
    command = [str(python), str(HERE / script), json.dumps({"output": str(output), **arguments})]
    subprocess.run(command, env={**environment(threads), **settings}, stdout=sys.stderr, check=True)
    seconds: list[float] = json.loads((output / "seconds.json").read_text())
    return seconds


def measure(base: str, steps: int, every: int, threads: int, python: Path) -> dict[str, Course]:
    """The course of the peer's training, and of relvec's with each recipe."""
    known, held_out = subset()
    batch = yardstick(held_out)
    encoder = str(resolve(base))
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        data = scratch / "data"
        data.mkdir()
        write(known, data / "train.jsonl")
        write(held_out, data / "validation.jsonl")
        settings: dict[str, Any] = {
            "model": encoder,
            "template": Template.of(TEMPLATE).to_config()["template"],
            "batch": len(known),  # it refuses batches of more triples than there are relations
            "lr": LEARNING_RATE,
        }
        arguments: dict[str, Any] = {"data": str(data), "steps": steps, "every": every, "settings": settings}
        output = scratch / PEER_RUN
        seconds = run(python, "train_peer.py", output, threads, arguments)
        models = (RelBERT.from_pretrained(output / f"checkpoint-{n}", device="cpu") for n in range(len(seconds)))
        courses = {PEER_RUN: [point(s, m.encode(batch.pairs), batch) for s, m in zip(seconds, models, strict=True)]}
        for name, recipe in RECIPES.items():
            settings = {"base": encoder, "steps": steps, "evaluate_every": every, **recipe}
            arguments = {"data": str(data), "pairs": batch.pairs, "settings": settings}
            output = scratch / name.replace(" ", "-")
            seconds = run(sys.executable, "train_relvec.py", output, threads, arguments)
            vectors = (np.load(output / f"vectors-{number}.npy") for number in range(len(seconds)))
            courses[name] = [point(s, found, batch) for s, found in zip(seconds, vectors, strict=True)]
    return courses


def compare(courses: dict[str, Course]) -> list[Row]:
    """The times to half, to nine tenths and to all of what the peer gained by training."""
    rows = []
    for measure in MEASURES:
        untrained, *trained = courses[PEER_RUN]
        start, best = untrained.badness(measure), min(trained, key=lambda p: p.badness(measure)).badness(measure)
        for gain in GAINS if best < start else (1.0,):
            level = best if gain == 1 else start + gain * (best - start)
            # A level that is no better than the untrained model measures the loading only.
            seconds = {name: _first(c, measure, level) if best < start else None for name, c in courses.items()}
            rows.append(Row(measure, gain, 1 - level if measure == "ordered" else level, seconds))
    return rows


def _first(course: Course, measure: str, level: float) -> float | None:
    return next((p.seconds for p in course[1:] if p.badness(measure) <= level), None)


def table_of_times(rows: Sequence[Row]) -> str:
    head = "| the peer's gain | level | relbert s |" + "".join(f" {name} s | ratio |" for name in RECIPES)
    lines = [head, "| --- | ---: | ---: |" + " ---: | ---: |" * len(RECIPES)]
    for row in rows:
        cells = [f"{row.gain:.0%} in {MEASURES[row.measure]}", f"{row.level:.3f}", _number(row.seconds[PEER_RUN])]
        for name, ratio in row.ratios.items():
            cells += [_number(row.seconds[name]), _number(ratio, "x")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def table_of_courses(courses: dict[str, Course], steps: int) -> str:
    head = "| run | s | s per step |" + "".join(f" {title}: start | best | last |" for title in MEASURES.values())
    lines = [head, "| --- | ---: | ---: |" + " ---: |" * 3 * len(MEASURES)]
    for name, course in courses.items():
        # The first steps come with the data and its tokens.
        seconds = (course[-1].seconds - course[1].seconds) / (steps * (len(course) - 2) / (len(course) - 1))
        cells = [name, f"{course[-1].seconds:.1f}", f"{seconds:.2f}"]
        for measure in MEASURES:
            best = min(course[1:], key=lambda p: p.badness(measure))
            cells += [f"{getattr(p, measure):.3f}" for p in (course[0], best, course[-1])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _number(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value:.1f}{unit}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="minilm", help="the encoder to start from: minilm, mpnet, ...")
    parser.add_argument("--steps", type=int, default=60, help="of each run")
    parser.add_argument("--every", type=int, default=3, help="steps from one evaluation to the next; a part of --steps")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of each package")
    parser.add_argument("--peer-python", type=Path, help="the interpreter of an environment that holds the peer")
    parser.add_argument("--json", action="store_true", help="print JSON for machines, with the course of each run")
    options = parser.parse_args()
    if options.steps % options.every or options.steps < 2 * options.every:
        parser.error(f"--steps {options.steps} is no multiple of --every {options.every}, or the same; give 2 or more.")
    python = options.peer_python or peer_python()
    courses = measure(options.base, options.steps, options.every, options.threads, python)
    rows = compare(courses)
    if options.json:
        settings = {"base": options.base, "steps": options.steps, "threads": options.threads}
        found = {
            "rows": [{**asdict(row), "ratios": row.ratios} for row in rows],
            "courses": {name: [asdict(p) for p in course] for name, course in courses.items()},
        }
        print(json.dumps({**settings, **found}, indent=2))
    else:
        print(f"{options.base}, {options.steps} steps of each run, {options.threads} threads, float32 on the CPU\n")
        print(f"{table_of_times(rows)}\n\n{table_of_courses(courses, options.steps)}")


if __name__ == "__main__":
    main()
