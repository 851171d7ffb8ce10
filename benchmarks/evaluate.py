"""Seconds of the whole analogy evaluation, relvec against the peer's own, on the same checkpoint and questions.

    python benchmarks/evaluate.py --data-dir DATA --model mpnet --questions 60

Both answer the validation and the test part of every dataset and SAT as a whole, as the peer always does; loading the
model counts. The accuracies must agree.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from peer import HERE, environment, peer_python

from relvec import RelBERT
from relvec.data.benchmarks.analogy import datasets_with
from relvec.io.files import read_lines
from relvec.io.tables import json_rows


def questions(data_dir: Path, count: int | None) -> dict[str, dict[str, list[Any]]]:
    """The first questions of each part of each dataset, as the files hold them; SAT as a whole is a dataset too."""
    found: dict[str, dict[str, list[Any]]] = {}
    for dataset in datasets_with("test").values():
        parts = {}
        for part in ("valid", "test"):
            name, lines = read_lines(data_dir / "analogy" / dataset.folder / f"{part}.jsonl")
            parts[part] = [row for _, row in json_rows(lines, name)][:count]
        found[dataset.name] = {"test": parts["valid"] + parts["test"]} if dataset.is_whole else parts
    return found


def run(python: str | Path, script: str, arguments: dict[str, Any], threads: int) -> dict[str, Any]:
    """What a package's own process answers: seconds, and the accuracy on each part."""
    command = [str(python), str(HERE / script)]
    done = subprocess.run(
        command, input=json.dumps(arguments), stdout=subprocess.PIPE, env=environment(threads), text=True, check=True
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--model", default="mpnet")
    parser.add_argument("--template", default="4")
    parser.add_argument("--questions", type=int, help="only so many of each part; default: all")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--peer-python", type=Path, help="the interpreter of an environment that holds the peer")
    options = parser.parse_args()
    asked = questions(options.data_dir, options.questions)
    with tempfile.TemporaryDirectory() as folder:
        model = RelBERT.from_pretrained(options.model, template=options.template, pooling="average")
        model.save_pretrained(Path(folder) / "model")
        arguments = {"model": str(Path(folder) / "model"), "questions": asked, "cache": str(Path(folder) / "cache")}
        ours = run(sys.executable, "evaluate_relvec.py", arguments, options.threads)
        theirs = run(options.peer_python or peer_python(), "evaluate_peer.py", arguments, options.threads)
    count = sum(len(rows) for parts in asked.values() for rows in parts.values())
    print(f"{options.model}, template {options.template}, {count} questions, {options.threads} threads\n")
    print("| package | seconds | ratio |\n| --- | ---: | ---: |")
    print(f"| relbert | {theirs['seconds']:.1f} | 1.00x |")
    print(f"| relvec | {ours['seconds']:.1f} | {theirs['seconds'] / ours['seconds']:.2f}x |\n")
    differing = {key: (ours["accuracy"][key], value) for key, value in theirs["accuracy"].items()}
    differing = {key: both for key, both in differing.items() if abs(both[0] - both[1]) > 1e-9}
    print(f"Accuracies that differ: {differing or 'none'} of {len(theirs['accuracy'])}")


if __name__ == "__main__":
    main()
