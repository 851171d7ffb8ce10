"""`python chaos`: disturb relvec in every way that is known, and print a table of cases and failures."""

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from corruption import damaged
from inputs import malformed
from outputs import Case, full_disk, kills, little_memory, readers_during_writers, several_writers
from properties import properties
from soak import soak
from world import World
from written_before import written_before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of parts, by default all")
    parser.add_argument("--share", type=float, default=1.0, help="of the cases, for a quicker look")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--soak-minutes", type=float, default=0.5)
    given = parser.parse_args()

    def cases(number: int) -> int:
        return max(1, round(given.share * number))

    parts: dict[str, tuple[str, Callable[[World, random.Random], Iterator[Case]]]] = {
        "kills": ("kill -9 at a random moment, then the same command again", lambda w, d: kills(w, cases(20), d)),
        "writers": ("two and four writers of one output", lambda w, d: several_writers(w)),
        "readers": ("readers during writers", lambda w, d: readers_during_writers(w, 20 * given.share)),
        "disk": ("a full disk", lambda w, d: full_disk(w)),
        "memory": ("little memory", lambda w, d: little_memory(w)),
        "damage": (
            "bits flipped, blocks overwritten, files truncated or swapped",
            lambda w, d: damaged(w, cases(40), d),
        ),
        "before": ("files of the previous version", lambda w, d: written_before()),
        "inputs": ("malformed inputs to all commands", lambda w, d: malformed(w, cases(1000), d)),
        "properties": ("properties over generated inputs", lambda w, d: properties(w, cases(100))),
        "soak": ("memory over a long run", lambda w, d: soak(w, given.soak_minutes, d)),
    }
    rows, failed = [], 0
    with tempfile.TemporaryDirectory(prefix="chaos-") as root:
        world = World(Path(root) / "world")
        for name, (what, part) in parts.items():
            if given.only and name not in given.only:
                continue
            start, found = time.perf_counter(), []
            for case, problem in part(world, random.Random(given.seed)):
                found.append(problem)
                if problem or name == "soak":
                    print(f"{name}: {case}: {problem or 'well'}", flush=True)
            failures = sum(map(bool, found))
            failed += failures
            rows.append(f"| {what} | {len(found):,} | {failures} |")
            print(f"{name}: {len(found)} cases, {failures} failures, {time.perf_counter() - start:.0f} s", flush=True)
    print("\n| fault | cases | failures |\n| --- | --- | --- |", *rows, sep="\n")
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
