"""A file of JSON lines to which a long search adds as it goes, and from which it goes on after an interruption."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from relvec.errors import RelvecError

HISTORY_NAME = "history.jsonl"

Entry = dict[str, Any]


def check_own(folder: Path, journal: str, made: Sequence[str]) -> None:
    """Files that a search makes are not written over where its journal does not tell that they are its own."""
    if (folder / journal).exists():
        return
    for name in made:
        if (folder / name).exists():
            problem = f"{folder} has a {name} without the {journal} of a search to go on with"
            raise RelvecError(f"{problem}; choose another output, or move it away.")


class Journal:
    """The entries of a search; the first line of the file says which search it is.

    >>> Journal("history.jsonl", job="a").add({"loss": 0.5})
    >>> Journal("history.jsonl", job="a").entries
    [{'loss': 0.5}]
    """

    def __init__(self, path: str | Path, job: str) -> None:
        self._path = Path(path)
        header = _line({"job": job})
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            content = self._path.read_bytes() if self._path.exists() else b""
        except OSError as error:
            raise RelvecError(f"Cannot read {self._path}: {error.strerror}; choose another output.") from error
        if not content.startswith(header) and not header.startswith(content):
            problem = f"{self._path} belongs to a search with another base, other settings or other data"
            raise RelvecError(f"{problem}; remove it, or choose another output.")
        whole = content[: content.rfind(b"\n") + 1]  # the last line may have been cut off with the search
        self.entries = self._read(whole.removeprefix(header))
        # Written with the first entry: before it there is nothing to go on with.
        self._header = b"" if whole else header
        if len(whole) < len(content):
            self._append(b"", after=len(whole))

    @contextmanager
    def damage_noticed(self) -> Iterator[None]:
        """Around what makes sense of the entries: where one makes none, the file is damaged."""
        try:
            yield
        except (KeyError, TypeError, ValueError) as error:
            raise self._damaged(f"an entry makes no sense: {error!r}") from error

    def add(self, entry: Entry) -> None:
        self._append(self._header + _line(entry))
        self._header = b""
        self.entries.append(entry)

    def _append(self, line: bytes, after: int | None = None) -> None:
        """Write a line at the end of the file, which is first cut to `after` bytes."""
        try:
            with self._path.open("ab") as file:
                if after is not None:
                    file.truncate(after)
                file.write(line)
        except OSError as error:
            problem = f"Cannot write {self._path}: {error.strerror}"
            raise RelvecError(f"{problem}; free space, or choose another output.") from error

    def _read(self, lines: bytes) -> list[Entry]:
        try:
            return [json.loads(line) for line in lines.splitlines()]
        except ValueError as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, problem: str) -> RelvecError:
        return RelvecError(f"{self._path} is damaged ({problem}); remove it to start again.")


def _line(entry: Entry) -> bytes:
    return (json.dumps(entry, ensure_ascii=False) + "\n").encode()
