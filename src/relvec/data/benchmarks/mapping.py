"""Relation mapping: which term of one field plays the part of which term of another (Turney 2008; SCAN, 2022)?"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relvec.data.benchmarks.registry import BENCHMARKS, Benchmark, find_files
from relvec.errors import RelvecError
from relvec.io.tables import Row, read_rows
from relvec.pairs import as_word

DEFAULT_DATASET = "relation_mapping"

_FORM = 'write {"source": [a, b], "target": [c, d]}'


@dataclass(frozen=True)
class MappingProblem:
    """Source terms, target terms in an order that says nothing, and the place of each source term's target."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    answer: tuple[int, ...]
    name: str = ""
    kind: str = ""


def load_problems(name: str = DEFAULT_DATASET, data_dir: str | Path | None = None) -> list[MappingProblem]:
    """The problems of a benchmark, of a table in `mapping` below the data folder by name, or of a file."""
    file = find_files("mapping", name, ["test"], data_dir)["test"]
    return read_problems(file, BENCHMARKS.get(name))


def read_problems(source: Any, benchmark: Benchmark | None = None) -> list[MappingProblem]:
    """Problems from a table: `source` and `target`, term by term, and perhaps `id` and `type`.

    A problem of a benchmark without a type has the category of its id.
    """
    return [_problem(row, benchmark) for row in read_rows(source, "problem")]


def _problem(row: Row, benchmark: Benchmark | None) -> MappingProblem:
    source, target = (_terms(row, side) for side in ("source", "target"))
    if len(source) != len(target):
        counts = f"{len(source)} source terms and {len(target)} target terms"
        raise RelvecError(f"{row.where}there are {counts}; give each source term one target term.")
    name, kind = row.label("id"), row.label("type")
    if benchmark and not kind:
        kind = benchmark.category_of(name.lower())
    shown = shuffled(target, source)
    return MappingProblem(source, shown, tuple(shown.index(term) for term in target), name, kind)


def _terms(row: Row, side: str) -> tuple[str, ...]:
    words = tuple(as_word(term, f"{row.where}{side}: ") for term in row.items(side, _FORM))
    if len(words) < 2 or len(set(words)) < len(words):
        raise RelvecError(f"{row.where}{side}: {', '.join(words)}; give at least 2 terms, each once.")
    return words


def shuffled(target: Sequence[str], source: Sequence[str]) -> tuple[str, ...]:
    """The target terms in an order that depends on the terms alone, so that no solver can profit from the right one.

    >>> shuffled(["nucleus", "electron"], ["sun", "planet"]) == shuffled(["electron", "nucleus"], ["planet", "sun"])
    True
    """
    salt = "\t".join(sorted(source))
    return tuple(sorted(target, key=lambda term: hashlib.sha256(f"{salt}\n{term}".encode()).digest()))
