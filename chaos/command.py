"""Commands of relvec as processes of their own, forked from one that has imported everything: a start costs nothing."""

import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

# Threads do not survive a fork, so nothing here may start one.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ |= {"RELVEC_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "COLUMNS": "80"}

import accelerate
import faiss
import matplotlib.figure
import peft
import pyarrow.parquet
import sklearn.neural_network
import torch
import transformers

from relvec.cli.app import COMMANDS, main, make_app

IMPORTED = (accelerate, faiss, matplotlib, peft, pyarrow, sklearn, transformers)
torch.set_num_threads(1)
make_app(COMMANDS)

LONGEST_SECONDS = 120.0
LONGEST_SENTENCE = 300


class Ended(NamedTuple):
    """How a command ended; the exit code of a killed one is minus the number of the signal."""

    code: int
    output: str
    complaint: str

    @property
    def problem(self) -> str:
        """What is wrong with the way in which it ended: "" if it did its work, or refused it in one sentence."""
        if "Traceback" in self.complaint:
            return f"a traceback: {self.complaint.strip().splitlines()[-1][:200]}"
        if self.code not in (0, 2):
            return f"exit code {self.code}: {self.complaint.strip()[-200:]}"
        said = [line for line in self.complaint.splitlines() if not line.startswith("relvec: warning:")]
        if self.code == 2 and (len(said) != 1 or not said[0].startswith("relvec: ") or len(said[0]) > LONGEST_SENTENCE):
            return f"{len(said)} lines, {len(self.complaint)} characters: {self.complaint[:200]}"
        return ""


@dataclass
class Command:
    """A command that runs in a process of its own."""

    pid: int
    started: float
    said: Path

    def kill(self, after: float) -> None:
        """Kill -9 at a moment after its start, unless it has ended by then."""
        time.sleep(max(0.0, self.started + after - time.perf_counter()))
        os.kill(self.pid, signal.SIGKILL)  # until it has been waited for, the number is its own

    def wait(self, longest: float = LONGEST_SECONDS) -> Ended:
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        while not ended:
            if time.perf_counter() > self.started + longest:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.005)
            ended, status = os.waitpid(self.pid, os.WNOHANG)
        output, complaint = ((self.said / name).read_bytes().decode(errors="replace") for name in ("out", "err"))
        for name in ("out", "err", "in"):
            (self.said / name).unlink()
        self.said.rmdir()
        return Ended(os.waitstatus_to_exitcode(status), output, complaint)


def start(
    *words: object,
    folder: Path,
    typed: bytes = b"",
    environment: Mapping[str, str] | None = None,
    more_memory: int | None = None,
) -> Command:
    """Start `relvec WORDS` in a folder; `more_memory` is what it may ask for above what it starts with, in bytes."""
    said = Path(tempfile.mkdtemp(prefix="chaos-"))
    for name, data in (("in", typed), ("out", b""), ("err", b"")):
        (said / name).write_bytes(data)
    sys.stdout.flush()
    sys.stderr.flush()
    started = time.perf_counter()
    pid = os.fork()
    if pid:
        return Command(pid, started, said)
    code = 1
    try:
        for number, (name, flags) in enumerate((("in", os.O_RDONLY), ("out", _WRITE), ("err", _WRITE))):
            os.dup2(os.open(said / name, flags), number)
        os.chdir(folder)
        os.environ.update(environment or {})
        if more_memory is not None:
            most = _bytes_of_this_process() + more_memory
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        sys.argv = ["relvec", *map(str, words)]
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run(
    *words: object,
    folder: Path,
    typed: bytes = b"",
    environment: Mapping[str, str] | None = None,
    more_memory: int | None = None,
) -> Ended:
    """Run `relvec WORDS` to its end."""
    return start(*words, folder=folder, typed=typed, environment=environment, more_memory=more_memory).wait()


_WRITE = os.O_WRONLY


def _bytes_of_this_process() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
