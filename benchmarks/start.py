"""How long a small command takes from a cold start, with the quick encoder and, where it is installed, with torch.

    python benchmarks/start.py --rounds 5

All answer the same question in turns, each time in a new process, so that a busy machine slows all alike; the median
of the rounds counts. `--device cpu` is what makes a command load torch. What counts is an installed package: an
editable one is a little slower.
"""

import argparse
import statistics
import subprocess
import sys
import time

from relvec.hub.catalogue import BUNDLED_MODELS
from relvec.model.backends import BACKENDS

COMMANDS = {
    "similarity": ["similarity", "barista:coffee", "baker:bread"],
    "neighbours": ["neighbours", "barista:coffee"],
    "complete": ["complete", "barista:coffee", "::", "sommelier:?"],
}
ENCODERS: dict[str, list[str]] = {"numpy": []}
if BACKENDS["torch"].is_installed:
    ENCODERS["torch"] = ["--device", "cpu"]


def seconds_of(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "relvec", *command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=["similarity", "neighbours"])
    parser.add_argument("--models", nargs="+", choices=BUNDLED_MODELS, default=["relvec-small", "relvec-mpnet"])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"Seconds to the first answer, median of {options.rounds} rounds\n")
    print(f"| command | model | {' | '.join(ENCODERS)} |\n| --- | --- |{' ---: |' * len(ENCODERS)}")
    for name in options.commands:
        for model in options.models:
            seconds: dict[str, list[float]] = {encoder: [] for encoder in ENCODERS}
            for round_number in range(options.rounds + 1):
                for encoder, arguments in ENCODERS.items():
                    taken = seconds_of([*COMMANDS[name], "--model", model, *arguments])
                    if round_number:  # the first brings the files into memory
                        seconds[encoder].append(taken)
            medians = (f"{statistics.median(taken):.2f}" for taken in seconds.values())
            print(f"| {name} | {model} | {' | '.join(medians)} |", flush=True)


if __name__ == "__main__":
    main()
