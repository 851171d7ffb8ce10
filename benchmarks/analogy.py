"""Accuracy of a model on the analogy questions below a data folder, each distinct pair encoded once.

python benchmarks/analogy.py --model relvec-mpnet --data-dir DATA --part valid
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from relvec import RelBERT
from relvec.pairs import Pair

DATASETS = ("sat", "u2", "u4", "google", "bats")

Question = dict[str, Any]


def read_questions(data_dir: Path, part: str) -> dict[str, list[Question]]:
    """The questions of each dataset."""
    return {
        name: [json.loads(line) for line in (data_dir / "analogy" / name / f"{part}.jsonl").read_text().splitlines()]
        for name in DATASETS
    }


def accuracies(model: RelBERT, questions: dict[str, list[Question]]) -> dict[str, dict[str, float]]:
    """Per cent of right answers of each dataset, and their mean, by forward and by bidirectional scoring."""
    pairs: list[Pair] = [tuple(p) for qs in questions.values() for q in qs for p in (q["stem"], *q["choice"])]
    both = list(dict.fromkeys(pairs + [(tail, head) for head, tail in pairs]))
    vectors = model.encode(both, normalize=True, show_progress=None)
    row = {pair: number for number, pair in enumerate(both)}

    def right(question: Question) -> tuple[bool, bool]:
        scores = []
        for turn in (1, -1):
            stem, *choices = (vectors[row[tuple(pair[::turn])]] for pair in (question["stem"], *question["choice"]))
            scores.append(np.stack(choices) @ stem)
        answer = question["answer"]
        return bool(scores[0].argmax() == answer), bool((scores[0] + scores[1]).argmax() == answer)

    table = {}
    for name, of_dataset in questions.items():
        share = 100 * np.mean([right(question) for question in of_dataset], axis=0)
        table[name] = {"forward": float(share[0]), "bidirectional": float(share[1])}
    table["mean"] = {
        way: float(np.mean([table[name][way] for name in questions])) for way in ("forward", "bidirectional")
    }
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="relvec-mpnet")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--part", choices=("valid", "test"), default="valid")
    options = parser.parse_args()
    table = accuracies(RelBERT.from_pretrained(options.model), read_questions(options.data_dir, options.part))
    print(f"| {options.model}, {options.part} | {' | '.join(table)} |\n|{' --- |' * (len(table) + 1)}")
    for way in ("forward", "bidirectional"):
        print(f"| {way} | {' | '.join(f'{accuracy[way]:.1f}' for accuracy in table.values())} |")


if __name__ == "__main__":
    main()
