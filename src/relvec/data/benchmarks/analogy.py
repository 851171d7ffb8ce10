"""Analogy questions: which of the choices is related as the stem is?"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relvec.data.benchmarks.registry import ANALOGY, Benchmark, benchmarks_of, find_files
from relvec.errors import RelvecError
from relvec.io.tables import Part as Part
from relvec.io.tables import Row, read_rows
from relvec.pairs import Pair, as_pair

ANALOGY_DATASETS = benchmarks_of("analogy")

_FORM = 'write {"stem": [a, b], "choice": [[c, d], ...], "answer": 0}'
_TYPES = "give each choice a type, or none"


@dataclass(frozen=True)
class Question:
    """A stem, its choices, which of them is right, and the kind of question (the relation, or where it comes from)."""

    stem: Pair
    choices: tuple[Pair, ...]
    answer: int
    kind: str = ""
    types: tuple[str, ...] = ()
    """What each choice is, where the file says so: `right`, or how a wrong one tempts."""


def datasets_with(part: str) -> dict[str, Benchmark]:
    """The paper's datasets that have a part; one that is both parts of another has none to choose by.

    >>> list(datasets_with("valid"))
    ['sat', 'u2', 'u4', 'google', 'bats']
    """
    theirs = {name: dataset for name, dataset in ANALOGY_DATASETS.items() if dataset.collection is ANALOGY}
    return {name: dataset for name, dataset in theirs.items() if part == "test" or not dataset.is_whole}


def load_questions(name: str, part: Part = "test", data_dir: str | Path | None = None) -> list[Question]:
    """The questions of a dataset by name, or of a file of the user's."""
    dataset = ANALOGY_DATASETS.get(name)
    is_whole = dataset is not None and dataset.is_whole
    if dataset is not None and is_whole and part == "valid":
        problem = f"{name} has no validation part: it holds the test questions of {dataset.folder}"
        raise RelvecError(f"{problem}; use {dataset.folder}.")
    files = find_files("analogy", name, ("valid", "test") if is_whole else (part,), data_dir)
    return [question for file in files.values() for question in read_questions(file)]


def read_questions(source: Any) -> list[Question]:
    """Questions from a table: `stem`, `choice`, `answer` (counted from 0); perhaps `prefix`, the kind, and `types`."""
    return [as_question(row) for row in read_rows(source, "question")]


def as_question(row: Row) -> Question:
    where = row.where
    choices = tuple(as_pair(pair, f"{where}choice {place}: ") for place, pair in enumerate(row.items("choice", _FORM)))
    answer = row.values.get("answer", "")
    if answer not in range(len(choices)):
        raise RelvecError(f"{where}the answer {answer!r} is none of the {len(choices)} choices; count them from 0.")
    types = tuple(map(str, row.items("types", _TYPES))) if row.values.get("types") is not None else ()
    if types and len(types) != len(choices):
        raise RelvecError(f"{where}{len(types)} types for {len(choices)} choices; {_TYPES}.")
    stem = as_pair(row.items("stem", _FORM), f"{where}stem: ")
    return Question(stem, choices, int(answer), row.label("prefix"), types)
