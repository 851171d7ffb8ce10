"""Paths as people write them: `~` is a home folder."""

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
