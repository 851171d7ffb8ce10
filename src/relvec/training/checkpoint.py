"""Where a run stands, kept in one file of its output folder: written whole, and read only by the same run."""

from pathlib import Path
from typing import Any

import torch

from relvec.errors import RelvecError
from relvec.io.files import written_whole

CHECKPOINT_NAME = "checkpoint.pt"


def save_checkpoint(folder: Path, job: str, state: dict[str, Any]) -> None:
    """Keep what a run needs to go on; `job` says which run it is.

    >>> save_checkpoint(Path("."), "a", {"step": 3})
    >>> load_checkpoint(Path("."), "a")["step"]
    3
    """
    path = folder / CHECKPOINT_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(f".{CHECKPOINT_NAME}.*"):  # by a run that was killed while it wrote
            left.unlink(missing_ok=True)
        with written_whole(path) as partial:
            torch.save({**state, "job": job}, partial)
    except (OSError, RuntimeError) as error:  # torch has a bare RuntimeError for a full disk
        raise RelvecError(f"Cannot write {path}; free space and start again.") from error


def load_checkpoint(folder: Path, job: str) -> dict[str, Any] | None:
    """What a run kept, on the CPU; None if it kept nothing."""
    path = folder / CHECKPOINT_NAME
    if not path.is_file():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        owner = state["job"]
    except Exception as error:  # what torch raises for a file that is not its own is no closed list
        raise RelvecError(f"{path} is no checkpoint of a run; remove it to start again.") from error
    if owner != job:
        problem = f"{path} belongs to a run with another base, other settings or other data"
        raise RelvecError(f"{problem}; remove it, or choose another output.")
    return state
