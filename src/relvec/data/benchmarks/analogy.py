"""Analogy questions: which of the choices is related as the stem is?"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from relvec.data.benchmarks.registry import Benchmark, benchmarks_of
from relvec.errors import RelvecError, did_you_mean, one_of
from relvec.io.paths import expanded
from relvec.io.tables import Row, read_rows
from relvec.pairs import Pair, as_pair

Part = Literal["valid", "test"]

ANALOGY_DATASETS = benchmarks_of("analogy")

_FORM = 'write {"stem": [a, b], "choice": [[c, d], ...], "answer": 0}'


@dataclass(frozen=True)
class Question:
    """A stem, its choices, which of them is right, and the kind of question (the relation, or where it comes from)."""

    stem: Pair
    choices: tuple[Pair, ...]
    answer: int
    kind: str = ""


def datasets_with(part: str) -> dict[str, Benchmark]:
    """The datasets that have a part; one that is both parts of another has none to choose by.

    >>> list(datasets_with("valid"))
    ['sat', 'u2', 'u4', 'google', 'bats']
    """
    return {name: dataset for name, dataset in ANALOGY_DATASETS.items() if part == "test" or not dataset.is_whole}


def load_questions(name: str, part: Part = "test", data_dir: str | Path | None = None) -> list[Question]:
    """The questions of a dataset by name, or of a file of the user's."""
    if name not in ANALOGY_DATASETS:
        if expanded(name).is_file():
            return read_questions(name)
        advice = did_you_mean(name, ANALOGY_DATASETS, otherwise=f"known are {', '.join(ANALOGY_DATASETS)}, or a file")
        raise RelvecError(f"There are no analogy questions {name}; {advice}.")
    dataset = ANALOGY_DATASETS[name]
    if name not in datasets_with(part):
        problem = f"{name} has no validation part: it holds the test questions of {dataset.folder}"
        raise RelvecError(f"{problem}; use {dataset.folder}.")
    parts: Sequence[str] = ("valid", "test") if dataset.is_whole else (part,)
    return [question for each in parts for question in read_questions(dataset.file(each, data_dir))]


def read_questions(source: Any) -> list[Question]:
    """Questions from a table: `stem`, `choice`, `answer` (counted from 0) and perhaps `prefix`, the kind."""
    return [as_question(row) for row in read_rows(source, "question")]


def as_question(row: Row) -> Question:
    where = row.where
    choices = tuple(as_pair(pair, f"{where}choice {place}: ") for place, pair in enumerate(row.items("choice", _FORM)))
    answer = row.values.get("answer", "")
    if answer not in range(len(choices)):
        raise RelvecError(f"{where}the answer {answer!r} is none of the {len(choices)} choices; count them from 0.")
    return Question(as_pair(row.items("stem", _FORM), f"{where}stem: "), choices, int(answer), row.label("prefix"))


def category_of(dataset: str, kind: str) -> str:
    """The high-level category of a kind of question, as in the paper's break-down; empty if the dataset has none."""
    return ANALOGY_DATASETS[dataset].category_of(kind) if dataset in ANALOGY_DATASETS else ""


def relation_of(dataset: str, kind: str) -> str:
    """What the paper calls a kind of question in its table of BATS relations; other kinds keep their name."""
    return ANALOGY_DATASETS[dataset].relation_of(kind) if dataset in ANALOGY_DATASETS else kind


def check_part(part: str) -> Part:
    """
    >>> check_part("test")
    'test'
    """
    return one_of("part", part, get_args(Part))
