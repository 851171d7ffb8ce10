"""Files that the version before wrote: each opens, and gives what it gave."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from outputs import Case

TESTS = Path(__file__).parents[1] / "tests" / "compatibility"


def written_before() -> Iterator[Case]:
    """The tests over stored files, one case each."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "0",
        "-q",
        "-rA",
        "--tb=line",
        "-p",
        "no:cacheprovider",
        str(TESTS),
    ]
    said = subprocess.run(command, capture_output=True, text=True, check=False, cwd=TESTS.parents[1])
    results = [
        line.split(" ", 2) for line in said.stdout.splitlines() if line.startswith(("PASSED", "FAILED", "ERROR"))
    ]
    if not results:
        yield "pytest", f"it found no test: {said.stdout[-200:]}{said.stderr[-200:]}"
    for state, name, *reason in results:
        yield name.rpartition("::")[2], "" if state == "PASSED" else " ".join([state, *reason])[:300]
