"""The one journal: what a long run has done so far, in JSON Lines, so that the same run resumes after a kill."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from relvec.errors import RelvecError, errors_as
from relvec.io.files import write_errors
from relvec.settings import DAMAGE, verified_lines, with_checksum
from relvec.storage.job import check_job

HISTORY_NAME = "history.jsonl"

Entry = dict[str, Any]


def check_own(folder: Path, journal: str, made: Sequence[str]) -> None:
    """Refuse to overwrite the files that a run makes, unless its journal is there to show that they are its own."""
    found = [name for name in made if (folder / name).exists()]
    if found and not (folder / journal).exists():
        problem = f"{folder} has a {found[0]} without the {journal} of a run to resume"
        raise RelvecError(f"{problem}; choose another output, or move it away.")


class Journal:
    """The entries of a run; the first line of the file is a checksum of its job. A line counts once it is whole.

    Every other line has a checksum, but for those of older versions.

    >>> Journal("history.jsonl", job="a").add({"loss": 0.5})
    >>> Journal("history.jsonl", job="a").entries
    [{'loss': 0.5}]
    """

    def __init__(self, path: str | Path, job: str) -> None:
        self.path = Path(path)
        header = _line({"job": job})
        with write_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            content = self.path.read_bytes() if self.path.exists() else b""
        check_job(content.startswith(header) or header.startswith(content), self.path)
        whole = content[: content.rfind(b"\n") + 1]
        self.entries: list[Entry] = []
        with self.damage_noticed():
            self.entries += verified_lines(whole.removeprefix(header).splitlines())
        # Written with the first entry: before it there is nothing to resume.
        self._header = b"" if whole else header
        if len(whole) < len(content):
            with write_errors(self.path):
                os.truncate(self.path, len(whole))

    @contextmanager
    def damage_noticed(self) -> Iterator[None]:
        """Around what reads the entries: where one makes no sense, the file is damaged."""
        with errors_as(f"{self.path} is damaged", "remove it to start again", *DAMAGE):
            yield

    def add(self, entry: Entry) -> None:
        """Append an entry to the file."""
        with write_errors(self.path), self.path.open("ab") as file:
            file.write(self._header + _line(with_checksum(entry)))
        self._header = b""
        self.entries.append(entry)


def _line(entry: Entry) -> bytes:
    return (json.dumps(entry, ensure_ascii=False) + "\n").encode()
