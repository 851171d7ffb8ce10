"""How long README's first command takes from an empty virtual environment, in this version and in another one.

    git worktree add ../before COMMIT
    python benchmarks/install.py --before ../before --rounds 5

Each version's own README says what is run: its installation, then its first answer. The versions take turns, each time
in a new environment with the same pip, which keeps no cache; the median of the rounds counts. Making the environment is
not timed, and base weights must be in their cache already. On a busy machine the CPU seconds of all processes count.
"""

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def readme_commands(tree: Path) -> tuple[str, str]:
    """The installation and the first answer: `pip install ... && relvec ...`."""
    found = re.search(r"^(pip install .+) && (relvec .+)$", (tree / "README.md").read_text(), re.MULTILINE)
    if found is None:
        sys.exit(f"{tree / 'README.md'} has no line `pip install ... && relvec ...`.")
    return found[1], found[2]


def timed(command: str, tree: Path, environment: Path) -> tuple[float, float]:
    """Wall and CPU seconds."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables |= {"PATH": f"{environment / 'bin'}:{os.environ['PATH']}", "PIP_NO_CACHE_DIR": "1"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, shell=True, cwd=tree, env=variables, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(tree: Path, pip: str | None) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder)
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        if pip:
            subprocess.run([environment / "bin" / "pip", "install", "--quiet", f"pip=={pip}"], check=True)
        install, first_answer = readme_commands(tree)
        install_wall, install_cpu = timed(install, tree, environment)
        answer_wall, answer_cpu = timed(first_answer, tree, environment)
        files = [path for path in environment.glob("lib/*/site-packages/**/*") if path.is_file()]
        return {
            "seconds": install_wall + answer_wall,
            "install_seconds": install_wall,
            "first_answer_seconds": answer_wall,
            "cpu_seconds": install_cpu + answer_cpu,
            "install_cpu_seconds": install_cpu,
            "first_answer_cpu_seconds": answer_cpu,
            "site_packages_mb": sum(path.stat().st_size for path in files) / 1e6,
            "files": len(files),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="a folder with the sources of another version")
    parser.add_argument("--now", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--pip", help="the version of pip; without it, the one that Python brings")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    trees = {"before": options.before.resolve(), "now": options.now.resolve()}
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in trees}
    for number in range(options.rounds):
        for name, tree in trees.items():
            rounds[name].append(measure(tree, options.pip))
            print(f"round {number + 1}, {name}: {rounds[name][-1]}", file=sys.stderr, flush=True)
    medians = {
        name: {key: round(statistics.median(one[key] for one in measured), 2) for key in measured[0]}
        for name, measured in rounds.items()
    }
    ratios = {key: round(medians["before"][key] / medians["now"][key], 2) for key in medians["now"]}
    print(json.dumps({**medians, "ratio": ratios}, indent=2))


if __name__ == "__main__":
    main()
