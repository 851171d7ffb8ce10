"""Runs relvec's analogy evaluation on given questions, with an empty cache of encodings."""

import json
import sys
import time
from pathlib import Path

from relvec import RelBERT
from relvec.data.benchmarks.analogy import read_questions
from relvec.evaluation.analogy import metrics, predict
from relvec.evaluation.systems import CosineSolver
from relvec.model.cached_vectors import ModelVectors


def main() -> None:
    arguments = json.load(sys.stdin)
    folder = Path(arguments["cache"])
    folder.mkdir()
    files = {}
    for name, parts in arguments["questions"].items():
        for part, rows in parts.items():
            files[f"{name}/{part}"] = folder / f"{name}-{part}.jsonl"
            files[f"{name}/{part}"].write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    start = time.perf_counter()
    model = RelBERT.from_pretrained(arguments["model"], device="cpu")
    solver = CosineSolver(ModelVectors(model, folder / "encodings", show_progress=False))
    accuracy = {}
    for name, file in files.items():
        questions = read_questions(file)
        predictions = predict(questions, solver.scores(questions))
        accuracy[name] = metrics(name.split("/")[0], predictions)["accuracy"] / 100
    print(json.dumps({"seconds": time.perf_counter() - start, "accuracy": accuracy}))


if __name__ == "__main__":
    main()
