"""The worker's end of a benchmark: commands come in as lines of JSON, answers go out the same way."""

import json
import os
import re
import resource
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Protocol

import numpy as np


class Package(Protocol):
    """What is measured: one package that holds one model at a time."""

    def load(self, model: str, template: str | None, pooling: str | None) -> None: ...

    def save(self, folder: str) -> None: ...

    def encode(self, pairs: list[tuple[str, str]], batch_size: int) -> Any: ...


def serve(package: Package) -> None:
    """Obey until the input ends; whatever the package prints goes to stderr."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        try:
            answer = _obey(package, **json.loads(line))
        except Exception:  # the caller decides what a failure means
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


def _obey(package: Package, command: str, **arguments: Any) -> dict[str, Any]:
    if command == "load":
        package.load(**arguments)
    elif command == "save":
        package.save(**arguments)
    else:
        pairs = [(head, tail) for head, tail in arguments["pairs"]]
        started = time.perf_counter()
        vectors = package.encode(pairs, arguments["batch_size"])
        seconds = time.perf_counter() - started
        np.save(arguments["output"], np.asarray(vectors, dtype=np.float32))
        return {"seconds": seconds, "peak_megabytes": _peak_megabytes()}
    return {}


def _peak_megabytes() -> float:
    """The most memory that this process has held, without that of its children."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent held when it started this process
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        return int(found.group(1)) / 1024 if found else float("nan")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
