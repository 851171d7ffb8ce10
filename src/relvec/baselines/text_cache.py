"""What was computed for a text once: kept on disk, so that a killed run goes on."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from relvec.storage.growing_file import GrowingFile


class TextCache:
    """A growing file of texts and their values.

    >>> cache = TextCache("cache")
    >>> cache.add({"a is to b": [-3.5, 4]})
    >>> cache["a is to b"], TextCache("cache").missing(["a is to b", "c", "c"])
    ([-3.5, 4], ['c'])
    """

    def __init__(self, folder: str | Path) -> None:
        self._file = GrowingFile(Path(folder) / "texts.jsonl")
        self._values: dict[str, Any] = dict(self._file.news())

    def __getitem__(self, text: str) -> Any:
        return self._values[text]

    def missing(self, texts: Iterable[str]) -> list[str]:
        """The distinct texts that are not here yet."""
        return [text for text in dict.fromkeys(texts) if text not in self._values]

    def add(self, values: Mapping[str, Any]) -> None:
        """Keep the values of texts."""
        with self._file.locked():
            self._values.update(self._file.news())
            self._file.append([text, values[text]] for text in self.missing(values))
            self._values.update(self._file.news())
