"""JSON Lines that only grow, so that a killed run loses little and several processes can share them."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock

from relvec.errors import RelvecError


class GrowingFile:
    """A line counts once it is whole; what a kill left beyond that is cut off by the next writer.

    >>> file = GrowingFile("cache/pairs.jsonl")
    >>> with file.locked():
    ...     file.append([["Paris", "France"]])
    >>> file.news(), file.news()
    ([['Paris', 'France']], [])
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._read = 0  # bytes that are known
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            problem = f"Cannot make {self.path.parent}: {error.strerror}"
            raise RelvecError(f"{problem}; choose another cache folder.") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One writer at a time, of all processes."""
        try:
            with FileLock(self.path.parent / "lock"):
                yield
        except OSError as error:
            problem = f"Cannot write to {self.path.parent}: {error.strerror}"
            raise RelvecError(f"{problem}; free space there, or set RELVEC_CACHE.") from error

    def news(self) -> list[Any]:
        """What has been added since the last call, perhaps by another process."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self._read)
            added = file.read()
        whole = added[: added.rfind(b"\n") + 1]
        try:
            rows = [json.loads(line) for line in whole.splitlines()]
        except ValueError as error:
            raise RelvecError(f"{self.path} is damaged ({error}); remove the folder {self.path.parent}.") from error
        self._read += len(whole)
        return rows

    def append(self, rows: Iterable[Any]) -> None:
        """Add a line for each row; the lock must be held and all news be known."""
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.truncate(self._read)
            file.seek(0, 2)
            file.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
