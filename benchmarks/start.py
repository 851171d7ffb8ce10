"""How long a small command takes from a cold start, with the quick encoder and with torch.

    python benchmarks/start.py --rounds 5

Both answer the same question in turns, each time in a new process, so that a busy machine slows both alike; the
median of the rounds counts. `--device cpu` is what makes a command load torch.
"""

import argparse
import statistics
import subprocess
import sys
import time

from relvec.hub.catalogue import BUNDLED_MODELS, DEFAULT_MODEL

COMMANDS = {
    "similarity": ["similarity", "barista:coffee", "baker:bread"],
    "neighbours": ["neighbours", "barista:coffee"],
    "complete": ["complete", "barista:coffee", "::", "sommelier:?"],
}
ENCODERS: dict[str, list[str]] = {"numpy": [], "torch": ["--device", "cpu"]}


def seconds_of(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "relvec", *command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=["similarity", "neighbours"])
    parser.add_argument("--model", choices=BUNDLED_MODELS, default=DEFAULT_MODEL)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"{options.model}, median of {options.rounds} rounds\n")
    print("| command | numpy s | torch s | ratio |")
    print("| --- | ---: | ---: | ---: |")
    for name in options.commands:
        seconds: dict[str, list[float]] = {encoder: [] for encoder in ENCODERS}
        for round_number in range(options.rounds + 1):
            for encoder, arguments in ENCODERS.items():
                taken = seconds_of([*COMMANDS[name], "--model", options.model, *arguments])
                if round_number:  # the first brings the files into memory
                    seconds[encoder].append(taken)
        numpy, torch = (statistics.median(taken) for taken in seconds.values())
        print(f"| {name} | {numpy:.2f} | {torch:.2f} | {torch / numpy:.1f}x |", flush=True)


if __name__ == "__main__":
    main()
