"""A file of JSON lines to which a long search adds as it goes, and from which it goes on after an interruption."""

import json
from pathlib import Path
from typing import Any

from relvec.errors import RelvecError

HISTORY_NAME = "history.jsonl"

Entry = dict[str, Any]


class Journal:
    """The entries of a search; the first line of the file says which search it is.

    >>> Journal("history.jsonl", job="a").add({"loss": 0.5})
    >>> Journal("history.jsonl", job="a").entries
    [{'loss': 0.5}]
    """

    def __init__(self, path: str | Path, job: str) -> None:
        self._path = Path(path)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            lines = self._whole_lines()
        except OSError as error:
            raise RelvecError(f"Cannot write {self._path}: {error.strerror}; choose another output.") from error
        self.entries: list[Entry] = lines[1:]
        if not lines:
            self._write({"job": job})
        elif lines[0] != {"job": job}:
            problem = f"{self._path} belongs to a search with other settings or other data"
            raise RelvecError(f"{problem}; remove it, or choose another output.")

    def add(self, entry: Entry) -> None:
        self._write(entry)
        self.entries.append(entry)

    def _write(self, entry: Entry) -> None:
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        except OSError as error:
            raise RelvecError(f"Cannot write {self._path}: {error.strerror}; free space and start again.") from error

    def _whole_lines(self) -> list[Entry]:
        """What the file holds; a last line that was cut off with the search is cut from the file."""
        if not self._path.exists():
            return []
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            self._path.write_bytes(whole)
        try:
            return [json.loads(line) for line in whole.splitlines()]
        except ValueError as error:
            raise RelvecError(f"{self._path} is not the journal of a search; choose another output.") from error
