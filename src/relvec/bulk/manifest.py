"""The manifest of a folder of shards: which part of the input became which shard, and by which model.

`manifest.jsonl` has the job in its first line and a shard in each of the others, each with a checksum; `errors.jsonl`
has the rows that were left out. Only the driver writes them, each whole or not at all. A shard counts once the manifest
has it, and so a job resumes after any kill, whoever encoded its shards.
"""

import json
import time
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from relvec.errors import RelvecError, errors_as
from relvec.io.addresses import read_whole, size_of, write_whole
from relvec.model.model_check import ModelCheck
from relvec.settings import DAMAGE, Settings, verified_lines, with_checksum

MANIFEST = "manifest.jsonl"
ERRORS = "errors.jsonl"
SHARDS = "part-*.parquet"

REST = 20
"""Saving takes at most 1/20 of the time: with thousands of shards, the files have several MB."""


class JobHeader(ModelCheck):
    """What decides every shard: the model, how it encodes, and a checksum of the parts."""

    dim: Annotated[int, Field(ge=1)]
    normalize: bool
    truncate: bool
    dtype: str
    parts: int
    rows: int
    plan: str
    format: Literal[1] = 1

    @property
    def made_as(self) -> str:
        return self.dtype


class Shard(Settings):
    """A whole shard: the rows `start` to `stop` of an input file, without those that are in the errors file."""

    part: int
    file: str
    start: int
    stop: int
    output: str
    rows: int
    distinct: int
    errors: int
    unknown: int
    bytes: int
    sha256: str


class Manifest:
    """The shards that a folder has, and the problems of the rows that were left out."""

    def __init__(self, folder: str, header: JobHeader) -> None:
        self.folder = folder
        self.header = header
        self.shards: dict[int, Shard] = {}
        self._problems: dict[int, list[dict[str, Any]]] = {}
        self._saved = 0.0
        self._seconds = 0.0

    @classmethod
    def read(cls, folder: str) -> Self:
        """The manifest of a folder, with the shards that are there."""
        address = f"{folder}/{MANIFEST}"
        if size_of(address) < 0:
            fix = "make one with `relvec embed pairs/ -o vectors/`"
            raise RelvecError(f"{folder} is not a folder of shards (it has no {MANIFEST}); {fix}.")
        with errors_as(f"{address} is damaged", "remove it and the shards beside it to encode again", *DAMAGE):
            header, *shards = verified_lines(read_whole(address).splitlines())
            found = cls(folder, JobHeader(**header))
            found.shards = {shard["part"]: Shard(**shard) for shard in shards}
            if size_of(f"{folder}/{ERRORS}") >= 0:
                for line in read_whole(f"{folder}/{ERRORS}").splitlines():
                    problem = json.loads(line)
                    found._problems.setdefault(problem["part"], []).append(problem)
        return found

    @property
    def problems(self) -> list[dict[str, Any]]:
        """The rows that were left out, in their order."""
        return [problem for part in sorted(self._problems) for problem in self._problems[part]]

    def keep_whole(self) -> None:
        """Forget shards whose file is missing or of another size."""
        self.shards = {
            part: shard for part, shard in self.shards.items() if size_of(self.address(shard)) == shard.bytes
        }
        self._problems = {part: found for part, found in self._problems.items() if part in self.shards}

    def address(self, shard: Shard) -> str:
        return f"{self.folder}/{shard.output}"

    def add(self, shard: Shard, problems: Iterable[dict[str, Any]]) -> None:
        """Take up a shard; what a kill may lose of the manifest is encoded again."""
        self.shards[shard.part] = shard
        if found := list(problems):
            self._problems[shard.part] = found
        if time.monotonic() - self._saved > REST * self._seconds:
            self.save()

    def begin(self) -> None:
        """Write the job before its first shard: a kill in between leaves no shard that nobody knows."""
        write_whole(f"{self.folder}/{MANIFEST}", _lines([with_checksum(self.header.as_dict())]))

    def save(self) -> None:
        """Write both files; the errors first, so that the manifest never has a shard whose errors are not there."""
        start = time.monotonic()
        write_whole(f"{self.folder}/{ERRORS}", _lines(self.problems))  # also if empty: another job may have left one
        entries = [self.header, *(self.shards[part] for part in sorted(self.shards))]
        write_whole(f"{self.folder}/{MANIFEST}", _lines(with_checksum(entry.as_dict()) for entry in entries))
        self._saved = time.monotonic()
        self._seconds = self._saved - start


def _lines(entries: Iterable[Any]) -> bytes:
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries).encode()
