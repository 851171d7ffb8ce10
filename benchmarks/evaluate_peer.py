"""Runs the peer's own analogy evaluation; its dataset, which is no longer public, is answered from given questions."""

import json
import os
import sys
import time
from typing import Any

import datasets
import relbert.lm
from relbert.evaluation import analogy_questions

relbert.lm.internet_connection = lambda: False  # every model is a local folder: ask no web page


def main() -> None:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever the package prints goes to stderr
    arguments = json.load(sys.stdin)

    def given(_: str, name: str, split: str) -> Any:
        return datasets.Dataset.from_list(arguments["questions"][name]["valid" if split == "validation" else split])

    analogy_questions.load_dataset = given
    start = time.perf_counter()
    result = analogy_questions.evaluate_analogy(arguments["model"])
    seconds = time.perf_counter() - start
    accuracy = {
        name.replace("/validation", "/valid"): value for name, value in result.items() if isinstance(value, float)
    }
    if "sat_full" in accuracy:
        accuracy["sat_full/test"] = accuracy.pop("sat_full")
    print(json.dumps({"seconds": seconds, "accuracy": accuracy}), file=answers, flush=True)


if __name__ == "__main__":
    main()
