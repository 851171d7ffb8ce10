"""The state of a run in one file: written whole, and read again by the same run only."""

import hashlib
from pathlib import Path
from typing import Any

import torch

from relvec.errors import RelvecError
from relvec.io.files import written_whole

CHECKPOINT_NAME = "checkpoint.pt"
VERSION = 2  # of what a run stores


def job_of(*decisive: object) -> str:
    """A checksum of all that decides a run, by which it is known again.

    >>> job_of("minilm", 80) == job_of("minilm", 90)
    False
    """
    return hashlib.sha256(repr(decisive).encode()).hexdigest()


class Checkpoint:
    """A file with the state of the run called `job`.

    >>> Checkpoint(Path("checkpoint.pt"), job="a").save({"step": 3})
    >>> Checkpoint(Path("checkpoint.pt"), job="a").load()["step"]
    3
    """

    def __init__(self, path: Path, job: str) -> None:
        self.path, self._job = path, job

    def save(self, state: dict[str, Any]) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            for left in self.path.parent.glob(f".{self.path.name}.*"):  # by a run that was killed while it wrote
                left.unlink(missing_ok=True)
            with written_whole(self.path) as partial:
                torch.save({**state, "job": self._job, "version": VERSION}, partial)
        except (OSError, RuntimeError) as error:  # torch has a bare RuntimeError for a full disk
            raise RelvecError(f"Cannot write {self.path}; free space and start again.") from error

    def load(self) -> dict[str, Any] | None:
        """The state, on the CPU; None if nothing was saved."""
        if not self.path.is_file():
            return None
        try:
            state: dict[str, Any] = torch.load(self.path, map_location="cpu", weights_only=True)
            job = {VERSION: state["job"]}[state["version"]]
        except Exception as error:  # what torch raises for a file that is not its own is no closed list
            raise RelvecError(f"{self.path} is no checkpoint of a run; remove it to start again.") from error
        if job != self._job:
            problem = f"{self.path} belongs to a run with another base, other settings or other data"
            raise RelvecError(f"{problem}; remove it, or choose another output.")
        return state
