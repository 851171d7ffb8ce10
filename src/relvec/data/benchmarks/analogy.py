"""Analogy questions: which of the choices is related as the stem is?"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from relvec.errors import RelvecError, did_you_mean, one_of
from relvec.hub.datasets import benchmark_file
from relvec.io.paths import expanded
from relvec.pairs import Pair, as_label, as_pair, json_rows, read_lines

Part = Literal["valid", "test"]

HUB_ID = "relbert/analogy_questions"


@dataclass(frozen=True)
class Question:
    """A stem, its choices, which of them is right, and the kind of question (the relation, or where it comes from)."""

    stem: Pair
    choices: tuple[Pair, ...]
    answer: int
    kind: str = ""


@dataclass(frozen=True)
class AnalogyDataset:
    """A set of questions with a name; `counts` are its questions in the validation and the test part."""

    name: str
    title: str
    counts: dict[str, int]
    folder: str
    is_whole: bool = False
    """Whether both parts together are the dataset, all of it for testing."""


ANALOGY_DATASETS: dict[str, AnalogyDataset] = {
    dataset.name: dataset
    for dataset in (
        AnalogyDataset("sat_full", "SAT full", {"valid": 37, "test": 337}, "sat", is_whole=True),
        AnalogyDataset("sat", "SAT", {"valid": 37, "test": 337}, "sat"),
        AnalogyDataset("u2", "U2", {"valid": 24, "test": 228}, "u2"),
        AnalogyDataset("u4", "U4", {"valid": 48, "test": 432}, "u4"),
        AnalogyDataset("google", "Google", {"valid": 50, "test": 500}, "google"),
        AnalogyDataset("bats", "BATS", {"valid": 199, "test": 1799}, "bats"),
    )
}


def datasets_with(part: str) -> dict[str, AnalogyDataset]:
    """The datasets that have a part; one that is both parts of another has none to choose by.

    >>> list(datasets_with("valid"))
    ['sat', 'u2', 'u4', 'google', 'bats']
    """
    return {name: dataset for name, dataset in ANALOGY_DATASETS.items() if part == "test" or not dataset.is_whole}


def load_questions(name: str, part: Part = "test", data_dir: str | Path | None = None) -> list[Question]:
    """The questions of a dataset by name, or of a file of the user's."""
    if name not in ANALOGY_DATASETS:
        if expanded(name).is_file():
            return read_questions(expanded(name))
        advice = did_you_mean(name, ANALOGY_DATASETS, otherwise=f"known are {', '.join(ANALOGY_DATASETS)}, or a file")
        raise RelvecError(f"There are no analogy questions {name}; {advice}.")
    dataset = ANALOGY_DATASETS[name]
    if name not in datasets_with(part):
        problem = f"{name} has no validation part: it holds the test questions of {dataset.folder}"
        raise RelvecError(f"{problem}; use {dataset.folder}.")
    parts: Sequence[str] = ("valid", "test") if dataset.is_whole else (part,)
    return [
        question
        for each in parts
        for question in read_questions(
            benchmark_file(
                f"analogy/{dataset.folder}/{each}.jsonl", HUB_ID, f"dataset/{dataset.folder}/{each}.jsonl", data_dir
            )
        )
    ]


def read_questions(path: str | Path) -> list[Question]:
    """Questions from JSON Lines: `stem`, `choice`, `answer` (counted from 0) and perhaps `prefix`, the kind."""
    name, lines = read_lines(path)
    questions = [_question(row, where) for where, row in json_rows(lines, name)]
    if not questions:
        raise RelvecError(f"{name} holds no question; write one a line.")
    return questions


def _question(row: Any, where: str) -> Question:
    if not isinstance(row, dict) or "stem" not in row or "choice" not in row:
        raise RelvecError(
            f'{where}no "stem" and "choice"; write {{"stem": [a, b], "choice": [[c, d], ...], "answer": 0}}.'
        )
    if not isinstance(row["choice"], list) or not row["choice"]:
        raise RelvecError(f"{where}there is no choice; give a list of pairs.")
    choices = tuple(as_pair(choice, f"{where}choice {number}: ") for number, choice in enumerate(row["choice"]))
    answer = row.get("answer")
    if not isinstance(answer, int) or isinstance(answer, bool):
        raise RelvecError(f'{where}the question has no answer; give "answer", the place of the right choice, from 0.')
    if not 0 <= answer < len(choices):
        raise RelvecError(f"{where}the answer {answer} is none of the {len(choices)} choices; count them from 0.")
    kind = as_label(row.get("prefix"), f"{where}prefix: ")
    return Question(as_pair(row["stem"], f"{where}stem: "), choices, answer, kind)


def category_of(dataset: str, kind: str) -> str:
    """The high-level category of a kind of question, as in the paper's break-down; empty if the dataset has none.

    >>> category_of("google", "gram3-comparative"), category_of("bats", "L09 [antonyms - gradable]")
    ('Morphological', 'Lexical')
    """
    if dataset == "google":
        return "Morphological" if kind.startswith("gram") else "Semantic"
    if dataset == "bats":
        return {"I": "Morphological", "D": "Morphological", "E": "Semantic", "L": "Lexical"}.get(kind[:1], "")
    return ""


def relation_of(dataset: str, kind: str) -> str:
    """What the paper calls a kind of question in its table of BATS relations; other kinds keep their name.

    Empty for SAT, whose kinds say where a question comes from, some of them in the question's own words.

    >>> relation_of("bats", "I09 [verb_Ving - Ved]"), relation_of("bats", "D01 [noun+less_reg]")
    ('verb v+ing:v+ed', 'noun+less')
    """
    if dataset in ANALOGY_DATASETS and ANALOGY_DATASETS[dataset].folder == "sat":
        return ""
    if dataset != "bats" or "[" not in kind:
        return kind
    label = kind[kind.index("[") + 1 :].rstrip("]")
    for ending in ("_reg", "_irreg"):
        label = label.removesuffix(ending)
    label = label.replace(" - ", ":").replace("_", " ")
    return label.replace("Ving", "v+ing").replace("Ved", "v+ed")


def check_part(part: str) -> Part:
    """
    >>> check_part("test")
    'test'
    """
    return one_of("part", part, get_args(Part))
