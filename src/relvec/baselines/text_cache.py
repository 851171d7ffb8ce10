"""What was computed for a text once: kept on disk, so that a killed run goes on."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from relvec.errors import RelvecError


class TextCache:
    """One growing file of JSON Lines, each a text and its value.

    A value counts once its line is whole; what a kill left beyond that is cut off by the next writer.

    >>> cache = TextCache("cache")
    >>> cache.add({"a is to b": [-3.5, 4]})
    >>> cache["a is to b"], TextCache("cache").missing(["a is to b", "c", "c"])
    ([-3.5, 4], ['c'])
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._file = self._folder / "texts.jsonl"
        self._values: dict[str, Any] = {}
        self._read = 0  # bytes of the file that are known
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RelvecError(f"Cannot make {self._folder}: {error.strerror}; choose another cache folder.") from error
        self._catch_up()

    def __getitem__(self, text: str) -> Any:
        return self._values[text]

    def missing(self, texts: Iterable[str]) -> list[str]:
        """The distinct texts that are not here yet."""
        return [text for text in dict.fromkeys(texts) if text not in self._values]

    def add(self, values: Mapping[str, Any]) -> None:
        """Keep the values of texts; one writer at a time."""
        with FileLock(self._folder / "lock"):
            self._catch_up()
            lines = [json.dumps([text, values[text]], ensure_ascii=False) + "\n" for text in self.missing(values)]
            try:
                with self._file.open("r+b" if self._file.exists() else "wb") as file:
                    file.truncate(self._read)
                    file.seek(0, 2)
                    file.write("".join(lines).encode())
            except OSError as error:
                raise RelvecError(f"Cannot write {self._file}: {error.strerror}; free space there.") from error
            self._catch_up()

    def _catch_up(self) -> None:
        """Learn of the texts that were added since, perhaps by another process."""
        if not self._file.exists():
            return
        with self._file.open("rb") as file:
            file.seek(self._read)
            added = file.read()
        whole = added[: added.rfind(b"\n") + 1]
        for line in whole.split(b"\n")[:-1]:
            try:
                text, value = json.loads(line)
            except ValueError as error:
                raise RelvecError(f"{self._file} is damaged ({error}); remove it.") from error
            self._values[text] = value
        self._read += len(whole)
