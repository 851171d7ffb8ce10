"""Runs the steps of a plan one after the other; what is finished is not done again, what fails stops nothing else."""

import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from relvec import __version__
from relvec.evaluation.records import file_name
from relvec.reproduction.plan import Step
from relvec.storage.journal import Journal

State = Literal["done", "failed", "skipped", "was done"]
Runner = Callable[[Sequence[str], Path], int]
"""Runs `relvec` with some words, writes what it says to a file, and gives its exit code."""


@dataclass(frozen=True)
class Finished:
    """What became of a step; `reason` is the last line of a failure, or the step that was waited for in vain."""

    step: Step
    state: State
    seconds: float = 0.0
    reason: str = ""


def run_steps(steps: Sequence[Step], journal: Journal, logs: Path, run: Runner) -> Iterator[Finished]:
    """Run each step that the journal does not know as done, and note it there with all that decided its numbers."""
    done = {tuple(entry["command"]) for entry in journal.entries if entry["code"] == 0}
    lost: set[str] = set()
    for step in steps:
        if missing := [name for name in step.needs if name in lost]:
            lost.add(step.name)
            yield Finished(step, "skipped", reason=f"needs {missing[0]}")
        elif step.command in done:
            yield Finished(step, "was done")
        else:
            log = logs / f"{file_name(step.name)}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            started = time.time()
            code = run(step.command, log)
            seconds = time.time() - started
            journal.add(
                {
                    "step": step.name,
                    "command": list(step.command),
                    "code": code,
                    "started": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(started)),
                    "seconds": round(seconds, 1),
                    "seed": step.values.get("seed"),
                    "versions": versions(),
                    "hardware": hardware(),
                }
            )
            if code:
                lost.add(step.name)
            yield Finished(step, "failed" if code else "done", seconds, _last_line(log) if code else "")


def run_in_process_of_its_own(words: Sequence[str], log: Path) -> int:
    """`python -m relvec words...`, with what it prints in the file `log`."""
    with log.open("w", encoding="utf-8") as file:
        file.write(f"$ {shlex.join(['relvec', *words])}\n")
        file.flush()
        command = [sys.executable, "-m", "relvec", *words]
        return subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False).returncode


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


@cache
def versions() -> dict[str, str]:
    """Of Python, relvec and the packages that decide numbers."""
    found = {"python": platform.python_version(), "relvec": __version__}
    for package in ("torch", "transformers", "scikit-learn", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@cache
def hardware() -> dict[str, Any]:
    """The processor, its cores, and the GPUs that torch sees."""
    import torch

    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    return {"processor": platform.machine(), "cores": os.cpu_count(), "gpus": gpus}
