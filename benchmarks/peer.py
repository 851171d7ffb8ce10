"""The peer, `relbert` 2.0.2: its environment, and worker processes that hold it or relvec."""

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from relvec.pairs import Pair
from relvec.storage.cache import cache_folder

PEER = "relbert==2.0.2"
BESIDE_PEER = ("torch==2.13.0", "transformers<5", "huggingface-hub<1", "datasets<4", "scikit-learn", "tqdm")
BATCH_SIZE = 64
HERE = Path(__file__).resolve().parent


def peer_python() -> Path:
    """The interpreter of an environment that holds the peer; it is made once and kept in relvec's cache."""
    folder = cache_folder() / "benchmarks" / "peer-relbert-2.0.2"
    python, complete = folder / "bin" / "python", folder / "complete"
    if not complete.exists():
        print(f"Making the peer's environment in {folder}", file=sys.stderr)
        venv.create(folder, clear=True, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, *BESIDE_PEER], check=True)
        subprocess.run([*install, "--no-deps", PEER], check=True)  # it pins a numpy that no longer builds
        complete.touch()
    return python


def environment(threads: int) -> dict[str, str]:
    """What a process of either package is started with: the CPU, that many threads that do not spin, no network."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
    return {
        **os.environ,
        **dict.fromkeys(names, str(threads)),
        "OMP_WAIT_POLICY": "passive",  # a process that waits for its turn must not slow the others
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TRANSFORMERS_VERBOSITY": "error",
    }


class WorkerError(Exception):
    """A command failed inside a worker; the message is the worker's traceback."""


@dataclass(frozen=True)
class Encoded:
    vectors: NDArray[np.float32]
    seconds: float
    peak_megabytes: float


class Worker:
    """A process on the CPU that holds one package, and in it one model at a time."""

    def __init__(self, python: str | Path, script: str, threads: int) -> None:
        self._process = subprocess.Popen(
            [str(python), str(HERE / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env=environment(threads),
        )

    @classmethod
    def of_relvec(cls, threads: int) -> Self:
        return cls(sys.executable, "relvec_worker.py", threads)

    @classmethod
    def of_peer(cls, python: Path | None, threads: int) -> Self:
        return cls(python or peer_python(), "peer_worker.py", threads)

    def load(self, model: str | Path, template: str | None = None, pooling: str | None = None, **options: str) -> None:
        """Load a folder; an encoder that was never saved by either package needs a template and a pooling.

        Options are relvec's alone: `backend` and `dtype`.
        """
        self._ask("load", model=str(model), template=template, pooling=pooling, **options)

    def save(self, folder: Path) -> None:
        self._ask("save", folder=str(folder))

    def encode(self, pairs: Sequence[Pair]) -> Encoded:
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "vectors.npy"
            answer = self._ask("encode", pairs=pairs, batch_size=BATCH_SIZE, output=str(output))
            return Encoded(np.load(output), **answer)

    def _ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"command": command, **arguments}), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise WorkerError(f"The worker ended with code {self._process.wait()} at the command {command!r}.")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # closes the worker's input, which ends it


def smallest_cosine(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    """The least agreement between two packages on the same pairs, row by row."""
    a, b = left.astype(np.float64), right.astype(np.float64)
    return float(((a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)).min())
