"""Answering analogy questions and counting what was right (sections 4.2 and 5.1 of the paper)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from relvec.data.benchmarks.analogy import Question, category_of, relation_of
from relvec.errors import RelvecError, one_of
from relvec.evaluation.intervals import bootstrap_interval
from relvec.model.cached_vectors import PairVectors
from relvec.similarity import Scoring, normalized

OutOfVocabulary = Literal["wrong", "chance", "fallback"]

Scores = NDArray[np.float64]


class Solver(Protocol):
    """Anything that scores the choices of a question; the name is what tables call it."""

    name: str

    @property
    def fingerprint(self) -> str:
        """A checksum of all that decides the scores."""
        ...

    def scores(self, questions: Sequence[Question]) -> list[Scores]:
        """One score a choice, the highest wins; nan for a choice that cannot be scored (out of vocabulary)."""
        ...


class CosineSolver:
    """Cosine between the vectors of stem and choice: forward as in the paper, reverse, or the mean of both."""

    def __init__(self, vectors: PairVectors, scoring: Scoring = "forward") -> None:
        self.name = vectors.name
        self._vectors = vectors
        self._scoring = scoring

    @property
    def fingerprint(self) -> str:
        return self._vectors.fingerprint

    def scores(self, questions: Sequence[Question]) -> list[Scores]:
        compared = [(question.stem, choice) for question in questions for choice in question.choices]
        turned = [((b, a), (d, c)) for (a, b), (c, d) in compared]
        ways = {"forward": [compared], "reverse": [turned], "bidirectional": [compared, turned]}[self._scoring]
        distinct = list(dict.fromkeys(pair for way in ways for both in way for pair in both))
        vectors, known = self._vectors.vectors(distinct)
        vectors = normalized(vectors)
        row = {pair: number for number, pair in enumerate(distinct)}
        stems = np.array([[row[stem] for stem, _ in way] for way in ways])
        choices = np.array([[row[choice] for _, choice in way] for way in ways])
        # Row by row: a matrix product may round equal choices differently, which hides that they tie.
        cosines = np.sum(vectors[stems] * vectors[choices], axis=-1).astype(np.float64)
        scores: Scores = np.where(known[stems] & known[choices], cosines, np.nan).mean(axis=0)
        ends = np.cumsum([len(question.choices) for question in questions])
        return np.split(scores, ends[:-1])


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
    """Choose the choice with the highest score; the first of several that share it, which is counted as a tie.

    A question none of whose choices has a score is out of vocabulary: it counts as wrong, earns what chance would
    (`chance`), or takes another system's answer (`fallback`; the paper's main table takes that of PMI).
    """
    if out_of_vocabulary == "fallback" and (fallback is None or len(fallback) != len(questions)):
        raise RelvecError("The policy `fallback` needs the answers of another system; give --fallback.")
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
    low, high = bootstrap_interval(earned)
    return {
        "accuracy": 100 * float(earned.mean()),
        "interval": [100 * low, 100 * high],
        "questions": len(predictions),
        "out_of_vocabulary": sum(prediction.predicted is None for prediction in predictions),
        "ties": sum(prediction.is_tied for prediction in predictions),
        "by_category": _break_down([category_of(dataset, p.kind) for p in predictions], earned),
        "by_relation": _break_down([relation_of(dataset, p.kind) for p in predictions], earned),
    }


def _break_down(labels: Sequence[str], earned: NDArray[np.float64]) -> dict[str, dict[str, float]]:
    names = np.array(labels)
    return {
        label: {"accuracy": 100 * float(earned[names == label].mean()), "questions": int((names == label).sum())}
        for label in sorted(set(labels) - {""})
    }


def prediction_rows(predictions: Sequence[Prediction]) -> list[dict[str, Any]]:
    """Predictions as they are saved, one object a question."""
    return [asdict(prediction) for prediction in predictions]


def check_out_of_vocabulary(policy: str) -> OutOfVocabulary:
    """
    >>> check_out_of_vocabulary("wrong")
    'wrong'
    """
    return one_of("policy", policy, get_args(OutOfVocabulary))
