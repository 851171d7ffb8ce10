"""Paths as people write them (`~` is a home folder), and the folder of datasets."""

import os
from pathlib import Path

from relvec.errors import RelvecError


def expanded(path: str | Path) -> Path:
    """The path with the home folder in place of `~`, or of `~user`.

    >>> expanded("~/models") == Path.home() / "models", expanded("models") == Path("models")
    (True, True)
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise RelvecError(f"There is no home folder for {path}; write the path in full.") from error


def data_folder(data_dir: str | Path | None = None) -> Path | None:
    """Where the user keeps datasets: `data_dir`, else `RELVEC_DATA`, else nowhere."""
    chosen = data_dir or os.environ.get("RELVEC_DATA")
    return expanded(chosen) if chosen else None
