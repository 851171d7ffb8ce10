"""The measured effect of each choice of a training recipe: short runs of one base that differ in one setting.

    python benchmarks/recipes.py --data-dir DATA --base minilm --steps 60

Runs are scored on the analogy questions' validation parts, and by how often the nearest of all held-out pairs of
SemEval and the bundled relations is one of the same relation.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from relvec import RelBERT
from relvec.data.benchmarks.analogy import Question, load_questions
from relvec.data.rated import RatedRelation, split
from relvec.evaluation.analogy import metrics, predict
from relvec.evaluation.systems import CosineSolver
from relvec.model.cached_vectors import ModelVectors
from relvec.similarity import Scoring
from relvec.training import Recipe, train
from relvec.training.run import load_relations

DATASETS = ("sat", "u2", "u4", "google", "bats")

# Every variant differs in this from the defaults of relvec, and then in what its own line says.
COMMON: dict[str, Any] = {
    "data": ["semeval2012", "bundled"],
    "exclude_benchmark_pairs": True,
    "evaluate_every": 1000,
    "template": "I discovered: [h] is the <mask> of [t]",
    "learning_rate": 3e-4,
}
ALL_WEIGHTS: dict[str, Any] = {"lora_rank": 0, "learning_rate": 3e-5}
BARE = "[h] <mask> [t]"
VARIANTS: dict[str, dict[str, Any]] = {
    "the starting point": {},
    "SemEval alone": {"data": ["semeval2012"]},
    "template 4, average": {"template": "4", "pooling": "average"},
    "short template, average": {"pooling": "average"},
    "InfoNCE": {"loss": "infonce"},
    "triplet + classification, triples": {"loss": "triplet+classification"},
    "no hard negatives": {"negatives_per_relation": 0},
    "no negatives of the own category": {"loss_settings": {"same_category_negatives": False}},
    "all weights, learning rate 3e-5": ALL_WEIGHTS,
    "all weights, [h] is the <mask> of [t]": {**ALL_WEIGHTS, "template": "[h] is the <mask> of [t]"},
    f"all weights, {BARE}": {**ALL_WEIGHTS, "template": BARE},
    f"learning rate 1e-3, {BARE}": {"template": BARE, "learning_rate": 1e-3},
}


def accuracies(model: RelBERT, questions: dict[str, list[Question]], scoring: Scoring, cache: str) -> list[float]:
    """Per cent of right answers on each dataset, and their mean."""
    solver = CosineSolver(ModelVectors(model, cache), scoring)
    found = [metrics(name, predict(asked, solver.scores(asked)))["accuracy"] for name, asked in questions.items()]
    return [*found, float(np.mean(found))]


def share_found(model: RelBERT, relations: list[RatedRelation]) -> float:
    """Per cent of the pairs whose nearest other pair is of the same relation."""
    labels = {pair: {r.name for r in relations if pair in r.positives} for r in relations for pair in r.positives}
    pairs = list(labels)
    similarity = model.similarity(pairs, pairs)
    np.fill_diagonal(similarity, -np.inf)
    nearest = similarity.argmax(axis=1)
    return 100 * float(np.mean([bool(labels[pair] & labels[pairs[n]]) for pair, n in zip(pairs, nearest, strict=True)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--base", default="minilm")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--runs", type=Path, default=Path("runs/recipes"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=("untrained", *VARIANTS), help="variants to run, by name")
    options = parser.parse_args()
    questions = {name: load_questions(name, "valid", options.data_dir) for name in DATASETS}
    held_out = split(load_relations(Recipe().changed(COMMON), options.data_dir), "valid")
    print("| recipe | sat | u2 | u4 | google | bats | mean | mean, bidirectional | held-out found | s/step |")
    print(f"|{' --- |' * 10}")
    for number, (name, changes) in enumerate({"untrained": None, **VARIANTS}.items()):
        if options.only and name not in options.only:
            continue
        recipe = Recipe().changed(COMMON | {"base": options.base, "steps": options.steps, "seed": options.seed})
        seconds = 0.0
        if changes is None:
            model = RelBERT.from_pretrained(recipe.base, template=recipe.template, pooling=recipe.pooling)
        else:
            folder = options.runs / f"{options.base}-{number}"
            start = time.perf_counter()
            train(recipe.changed(changes), folder, options.data_dir)
            seconds = (time.perf_counter() - start) / options.steps
            model = RelBERT.from_pretrained(folder)
        with tempfile.TemporaryDirectory() as cache:
            forward = accuracies(model, questions, "forward", cache)
            both = accuracies(model, questions, "bidirectional", cache)
        columns = [*forward, both[-1], share_found(model, held_out)]
        scores = " | ".join(f"{value:.1f}" for value in columns)
        print(f"| {name} | {scores} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
