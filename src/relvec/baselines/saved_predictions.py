"""Another system's answers: from a file with a column for each system, or from an earlier evaluation."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from relvec.baselines.baseline import FACTS, Baseline, Context, choice_scores
from relvec.data.benchmarks.analogy import ANALOGY_DATASETS, Part, Question
from relvec.errors import RelvecError, one_of
from relvec.evaluation.analogy import Fallback
from relvec.evaluation.records import last_part, load_predictions, load_records, portable_path
from relvec.evaluation.systems import Scores, Solver, System
from relvec.io.files import expanded, read_lines
from relvec.io.tables import json_rows
from relvec.settings import Settings, setting
from relvec.similarity import Scoring

Answers = list[int | None]


class SavedPredictions:
    """Predictions from JSON Lines with `dataset`, `split`, `index` (of the question in its part), `answer` (the right
    choice) and a column for each system: the choice it made, or null where it made none.

    >>> row = '{"dataset": "u2", "split": "test", "index": 0, "answer": 1, "pmi": 0, "glove": null}'
    >>> _ = Path("saved.jsonl").write_text(row)
    >>> question = Question(("a", "b"), (("c", "d"), ("e", "f")), answer=1)
    >>> SavedPredictions("saved.jsonl", "pmi", "u2", "test").scores([question])
    [array([1., 0.])]
    """

    def __init__(self, path: str | Path, column: str, dataset: str, part: Part, *, name: str = "") -> None:
        self.name = name or column
        self._path = path
        self._of = f"{dataset}, {part} part"
        places = _places(dataset, part)
        file, lines = read_lines(expanded(path))
        self.fingerprint = hashlib.sha256("\n".join([column, *lines]).encode()).hexdigest()
        found: dict[tuple[int, int], tuple[str, int, int | None]] = {}
        for where, values in json_rows(lines, file):
            row = _checked_row(values, column, where)
            if (row.dataset, row.split) in places:
                place = places.index((row.dataset, row.split)), row.index
                if place in found:
                    raise RelvecError(f"{where}a second row of this question; remove one.")
                found[place] = (where, row.answer, row.predicted)
        self._rows = [found[place] for place in sorted(found)]

    def answers(self, questions: Sequence[Question]) -> Answers:
        """The choice made for each question, as `predict` takes it for a `fallback`."""
        if not self._rows:
            raise RelvecError(f"{self._path} has no prediction for {self._of}; give a file that has.")
        return _checked(self._path, self._of, self._rows, questions)

    def scores(self, questions: Sequence[Question]) -> list[Scores]:
        """1 for the choice that was made and 0 for the others."""
        return list(map(choice_scores, questions, self.answers(questions)))


def fallback(given: str, runs: str | Path) -> Fallback:
    """The answers in FILE:COLUMN, or of a system that was evaluated with the same runs folder."""
    path, _, column = given.rpartition(":")
    is_file = path.endswith(".jsonl") or (path != "" and expanded(path).is_file())

    def answers(dataset: str, part: Part, questions: Sequence[Question], scoring: Scoring) -> Answers:
        if is_file:
            return SavedPredictions(path, column, dataset, part).answers(questions)
        return answers_of_run(runs, given, dataset, part, questions, scoring)

    return Fallback(last_part(given), answers)


def answers_of_run(
    runs: str | Path, system: str, dataset: str, part: Part, questions: Sequence[Question], scoring: Scoring = "forward"
) -> Answers:
    """The choices of a system that was evaluated before, by its record with this scoring if there is one.

    >>> from relvec.evaluation.records import Record, save_record
    >>> fields = {"task": "analogy", "dataset": "u2", "part": "test", "fingerprint": "a1", "metrics": {}}
    >>> record = Record(system="PMI", settings={"scoring": "forward"}, **fields)
    >>> save_record(record, "runs", [{"answer": 1, "predicted": 0}])
    >>> answers_of_run("runs", "PMI", "u2", "test", [Question(("a", "b"), (("c", "d"), ("e", "f")), answer=1)])
    [0]
    """
    of = f"{dataset}, {part} part"
    wanted = ("analogy", system, portable_path(dataset), part)
    kept = load_records(runs)
    one_of("system", system, sorted({each.system for each in kept}), where=f"{runs}: ")
    records = [each for each in kept if (each.task, each.system, each.dataset, each.part) == wanted]
    chosen = [each for each in records if each.settings.get("scoring") == scoring] or records
    if not chosen:
        raise RelvecError(f"{runs} has no predictions of {system} for {of}; evaluate it first.")
    found = []
    for record in chosen:
        rows = [(f"{runs}: ", row["answer"], row["predicted"]) for row in load_predictions(record, runs)]
        found.append(_checked(runs, of, rows, questions))
    if any(answers != found[0] for answers in found):
        raise RelvecError(f"The records of {system} in {runs} differ in their answers; keep one of them.")
    return found[0]


def _checked(
    path: str | Path, of: str, rows: Sequence[tuple[str, int, int | None]], questions: Sequence[Question]
) -> Answers:
    """The choices in rows (where, right choice, choice made) that are of these questions."""
    if [right for _, right, _ in rows] != [question.answer for question in questions]:
        fix = "give the file that was made for these questions, in their order"
        raise RelvecError(f"The right answers in {path} are not those of {of}; {fix}.")
    for (where, _, given), question in zip(rows, questions, strict=True):
        if given is not None and not 0 <= given < len(question.choices):
            raise RelvecError(f"{where}{given} is none of the {len(question.choices)} choices; count from 0.")
    return [given for _, _, given in rows]


def _places(dataset: str, part: Part) -> list[tuple[str, str]]:
    """The dataset and part of each row in the file; the full SAT set is both parts of one dataset."""
    if dataset not in ANALOGY_DATASETS:
        return [(dataset, part)]
    named = ANALOGY_DATASETS[dataset]
    return [(named.folder, each) for each in (("valid", "test") if named.is_whole else (part,))]


Count = Annotated[int, Field(ge=0)]


class _Row(Settings):
    model_config = ConfigDict(extra="ignore")

    dataset: str
    split: str
    index: Count
    answer: Count
    predicted: Count | None


def _checked_row(values: Any, column: str, where: str) -> _Row:
    named = values if isinstance(values, dict) else {}
    one_of("system", column, [name for name in named if name not in _Row.model_fields], where)
    return _Row.checked({**named, "predicted": named[column]}, where)


class SavedSettings(Settings):
    """Where the answers are."""

    file: str = setting(..., "JSON Lines with dataset, split, index, answer and a column for each system")
    column: str = setting(..., "which system")


def _build(settings: SavedSettings, context: Context) -> System:
    name = context.name or settings.column

    def solver_for(dataset: str, part: Part, questions: Sequence[Question], scoring: Scoring) -> Solver:
        return SavedPredictions(settings.file, settings.column, dataset, part, name=name)

    return System(name, solver_for, facts=FACTS)


BASELINE = Baseline("predictions", "another system's saved answers", _build, SavedSettings)
