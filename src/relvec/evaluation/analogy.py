"""Answering analogy questions and counting what was right (sections 4.2 and 5.1 of the paper)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from relvec.data.benchmarks.analogy import ANALOGY_DATASETS, Part, Question, datasets_with, load_questions
from relvec.data.benchmarks.registry import benchmark_name
from relvec.errors import RelvecError, one_of
from relvec.evaluation.records import Record
from relvec.evaluation.systems import OutOfVocabulary, Scores, System
from relvec.evaluation.task import Outcome, Task, percent_interval
from relvec.pairs import Pair
from relvec.similarity import Scoring, check_scoring


@dataclass(frozen=True)
class Prediction:
    """The right answer, the one that was given (None: out of vocabulary), and the credit it earns."""

    index: int
    kind: str
    answer: int
    predicted: int | None
    scores: list[float | None]
    is_tied: bool
    credit: float


def predict(
    questions: Sequence[Question],
    scores: Sequence[Scores],
    out_of_vocabulary: OutOfVocabulary = "wrong",
    fallback: Sequence[int | None] | None = None,
) -> list[Prediction]:
    """Choose the choice with the highest score. Of several that share it the first is chosen, and counted as a tie.

    A question without any score is out of vocabulary. It counts as wrong, earns what chance would (`chance`), or takes
    another system's answer (`fallback`; the paper's main table takes that of PMI).
    """
    predictions = []
    for index, (question, found) in enumerate(zip(questions, scores, strict=True)):
        predicted: int | None = None
        is_tied = False
        if not np.isnan(found).all():
            predicted = int(np.nanargmax(found))
            is_tied = int(np.sum(found == found[predicted])) > 1
        credit = float(predicted == question.answer)
        if predicted is None and out_of_vocabulary == "chance":
            credit = 1 / len(question.choices)
        elif predicted is None and out_of_vocabulary == "fallback" and fallback is not None:
            credit = float(fallback[index] == question.answer)
        listed = [None if np.isnan(score) else round(float(score), 6) for score in found]
        predictions.append(Prediction(index, question.kind, question.answer, predicted, listed, is_tied, credit))
    return predictions


def metrics(dataset: str, predictions: Sequence[Prediction]) -> dict[str, Any]:
    """Accuracy (%) with its 95 % interval, ties and unknown questions, and the break-down by category and relation."""
    earned = np.array([prediction.credit for prediction in predictions])
    known, kinds = ANALOGY_DATASETS.get(dataset), [prediction.kind for prediction in predictions]
    return {
        "accuracy": 100 * float(earned.mean()),
        "interval": percent_interval(earned),
        "questions": len(predictions),
        "out_of_vocabulary": sum(prediction.predicted is None for prediction in predictions),
        "ties": sum(prediction.is_tied for prediction in predictions),
        "by_category": _break_down([known.category_of(kind) if known else "" for kind in kinds], earned),
        "by_relation": _break_down([known.relation_of(kind) if known else kind for kind in kinds], earned),
    }


def by_distractor(questions: Sequence[Question], predictions: Sequence[Prediction]) -> dict[str, dict[str, Any]]:
    """For each type of wrong choice, in % of the questions that have it, with 95 % intervals:

    `accuracy` is how often the right answer scores above it, `picked` how often it is the answer given.
    """
    beaten: dict[str, list[bool]] = {}
    picked: dict[str, list[bool]] = {}
    for question, prediction in zip(questions, predictions, strict=True):
        scores = [-np.inf if score is None else score for score in prediction.scores]
        for kind in {*question.types} - {question.types[question.answer]} if question.types else ():
            places = [place for place, each in enumerate(question.types) if each == kind]
            beaten.setdefault(kind, []).append(scores[question.answer] > max(scores[place] for place in places))
            picked.setdefault(kind, []).append(prediction.predicted in places)
    return {
        kind: {
            "accuracy": 100 * float(np.mean(beaten[kind])),
            "interval": percent_interval(np.array(beaten[kind], dtype=float)),
            "picked": 100 * float(np.mean(picked[kind])),
            "picked_interval": percent_interval(np.array(picked[kind], dtype=float)),
            "questions": len(beaten[kind]),
        }
        for kind in sorted(beaten)
    }


def _break_down(labels: Sequence[str], earned: NDArray[np.float64]) -> dict[str, dict[str, float]]:
    names = np.array(labels)
    return {
        label: {"accuracy": 100 * float(earned[names == label].mean()), "questions": int((names == label).sum())}
        for label in sorted(set(labels) - {""})
    }


@dataclass(frozen=True)
class Fallback:
    """Another system, whose answers stand in where a system knows no word: one for each question of a dataset."""

    name: str
    answers: Callable[[str, Part, Sequence[Question], Scoring], Sequence[int | None]]


@dataclass(frozen=True)
class AnalogyTask(Task[list[Question]]):
    """Analogy questions, scored forward, in reverse or in both directions."""

    name = "analogy"
    columns: ClassVar[dict[str, Callable[[Record], str]]] = {
        "dataset": lambda record: record.dataset,
        "scoring": lambda record: str(record.settings["scoring"]),
        "accuracy": lambda record: f"{record.metrics['accuracy']:.1f}",
        "95 %": lambda record: "{:.1f}-{:.1f}".format(*record.metrics["interval"]),
        "questions": lambda record: str(record.metrics["questions"]),
        "unknown": lambda record: str(record.metrics["out_of_vocabulary"]),
        "ties": lambda record: str(record.metrics["ties"]),
    }

    part: Part = field(default="test", kw_only=True)
    scoring: Scoring = "forward"
    out_of_vocabulary: OutOfVocabulary = "wrong"
    fallback: Fallback | None = None

    def __post_init__(self) -> None:
        one_of("part", self.part, ("valid", "test"))
        check_scoring(self.scoring)
        one_of("policy", self.out_of_vocabulary, get_args(OutOfVocabulary))
        if (self.out_of_vocabulary == "fallback") != (self.fallback is not None):
            raise RelvecError("--out-of-vocabulary fallback and --fallback go together; give both or neither.")

    def load(self, datasets: Sequence[str], data_dir: str | Path | None = None) -> dict[str, list[Question]]:
        chosen = [benchmark_name("analogy", dataset) for dataset in datasets] or datasets_with(self.part)
        return {dataset: load_questions(dataset, self.part, data_dir) for dataset in chosen}

    def pairs(self, data: list[Question]) -> Iterable[Pair]:
        return (pair for question in data for pair in (question.stem, *question.choices))

    def check(self, system: System, data: Mapping[str, list[Question]]) -> None:
        if system.vectors is None and self.scoring != "forward":
            problem = f"{system.name} compares no vectors, so {self.scoring} scoring means nothing"
            raise RelvecError(f"{problem}; leave it out.")
        if self.fallback is not None and system.out_of_vocabulary:
            problem = f"{system.name} has no unknown words for the answers of {self.fallback.name}"
            raise RelvecError(f"{problem}; leave them out.")
        for dataset, questions in data.items():
            self._fallback_answers(dataset, questions)

    def settings(self, system: System, data: list[Question]) -> dict[str, Any]:
        policy = system.out_of_vocabulary or self.out_of_vocabulary
        named = {"fallback": self.fallback.name} if self.fallback else {}
        return {"scoring": self.scoring, "out_of_vocabulary": policy, **named}

    def run(self, system: System, dataset: str, data: list[Question], work: Path) -> Outcome:
        solver = system.solver_for(dataset, self.part, data, self.scoring)
        policy = system.out_of_vocabulary or self.out_of_vocabulary
        predictions = predict(data, solver.scores(data), policy, self._fallback_answers(dataset, data))
        found = metrics(dataset, predictions)
        if distractors := by_distractor(data, predictions):
            found["by_distractor"] = distractors
        # Only a solver with settings, perhaps tuned on the dataset, has a configuration.
        if configuration := getattr(solver, "configuration", None):
            found["configuration"] = configuration
        return Outcome(found, solver.fingerprint, [asdict(prediction) for prediction in predictions])

    def _fallback_answers(self, dataset: str, questions: Sequence[Question]) -> Sequence[int | None] | None:
        if self.fallback is None:
            return None
        return self.fallback.answers(dataset, self.part, questions, self.scoring)
