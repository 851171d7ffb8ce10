"""The tuned analogical proportion score: the settings that answer most validation questions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relvec.baselines.likelihood import LikelihoodModel
from relvec.baselines.proportion import (
    NEGATIVE_AGGREGATORS,
    ORDERS,
    POSITIVE_AGGREGATORS,
    POSITIVE_ORDERS,
    TEMPLATES,
    MarginalPerplexity,
    MutualInformation,
    Perplexity,
    ProportionSettings,
    Score,
    Table,
    aggregate,
    log_perplexity_tables,
)
from relvec.data.benchmarks.analogy import Question
from relvec.errors import RelvecError

ALPHAS = (0.0, -0.2, 0.2, -0.4, 0.4)
BETAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def all_scores() -> tuple[Score, ...]:
    """The scores with the weights of Ushio et al.'s grid, plain perplexity first.

    >>> len(all_scores())
    50
    """
    ways = ("index-0", "index-1", "mean", "max", "min")
    weights = [pair for pair in product(ALPHAS, ALPHAS) if any(pair)]  # without weights it is plain perplexity
    return (
        Perplexity(),
        *(MarginalPerplexity(head, tail) for head, tail in weights),
        *(MutualInformation(alpha, way) for alpha in ALPHAS for way in ways),
    )


@dataclass(frozen=True)
class Grid:
    """What is tried; each list has the simplest value first, because ties go to what comes first."""

    templates: tuple[str, ...] = tuple(TEMPLATES)
    scores: tuple[Score, ...] = field(default_factory=all_scores)
    betas: tuple[float, ...] = BETAS
    positive: tuple[str, ...] = POSITIVE_AGGREGATORS
    negative: tuple[str, ...] = NEGATIVE_AGGREGATORS

    def __len__(self) -> int:
        by_beta = sum(len(self.negative) if beta else 1 for beta in self.betas)
        return len(self.templates) * len(self.scores) * len(self.positive) * by_beta


@dataclass(frozen=True)
class TunedRow:
    """ProportionSettings and the share of validation questions (%) that they answer."""

    settings: ProportionSettings
    accuracy: float


@dataclass(frozen=True)
class Tuned:
    """The chosen settings, how many settings did as well, and the best rows of the grid."""

    settings: ProportionSettings
    accuracy: float
    ties: int
    rows: tuple[TunedRow, ...]

    @property
    def configuration(self) -> dict[str, Any]:
        """What a record tells of the choice.

        >>> Tuned(ProportionSettings(beta=0.2), 62.5, 3, ()).configuration["beta"]
        0.2
        """
        return {**self.settings.to_dict(), "valid_accuracy": self.accuracy, "ties": self.ties}


def tune(model: LikelihoodModel, questions: Sequence[Question], grid: Grid | None = None, rows: int = 20) -> Tuned:
    """Try every setting of the grid on validation questions; the model is asked once for each distinct text.

    Of settings that answer equally many questions the first wins, in the order of five nested loops: template, score,
    beta, positive and, innermost, negative aggregator (which does nothing without a beta). Ushio et al. instead report
    the middle one of the tied settings by its accuracy on the test part.
    """
    if not questions:
        raise RelvecError("There is no validation question to tune on; give at least one.")
    tried = grid or Grid()
    best: list[tuple[int, int, ProportionSettings]] = []
    top, ties, number = -1, 0, 0
    for template, score, beta, right in _counted(model, questions, tried):
        negatives = tried.negative if beta else tried.negative[:1]
        flat = right.ravel()
        for place in np.argsort(-flat, kind="stable")[:rows]:
            positive, negative = divmod(int(place), len(negatives))
            settings = ProportionSettings(template, score, tried.positive[positive], negatives[negative], beta)
            best.append((-int(flat[place]), number + int(place), settings))
        best = sorted(best, key=lambda row: row[:2])[:rows]
        number += len(flat)
        if flat.max() > top:
            top, ties = int(flat.max()), 0
        ties += int((flat == top).sum())
    found = tuple(TunedRow(settings, -100 * wrong / len(questions)) for wrong, _, settings in best)
    return Tuned(found[0].settings, found[0].accuracy, ties, found)


def _counted(
    model: LikelihoodModel, questions: Sequence[Question], grid: Grid
) -> Iterator[tuple[str, Score, float, NDArray[np.int64]]]:
    """Right answers [positive aggregators, negative aggregators] for each template, score and beta."""
    has_negatives = any(grid.betas)
    orders = range(len(ORDERS) if has_negatives else len(POSITIVE_ORDERS))
    mixes_choices = any(score.mixes_choices for score in grid.scores)
    for template in grid.templates:
        groups = _by_size(questions, log_perplexity_tables(model, questions, template, orders, mixes_choices))
        for score in grid.scores:
            scored = [(_aggregated(score(tables), grid, has_negatives), answers) for tables, answers in groups]
            for beta in grid.betas:
                right = sum(
                    _right(positive, negative if beta else negative[:1], beta, answers)
                    for (positive, negative), answers in scored
                )
                yield template, score, beta, np.asarray(right)


def _by_size(questions: Sequence[Question], tables: Sequence[Table]) -> list[tuple[Table, NDArray[np.int64]]]:
    """Tables [questions, 24, n, n] and answers, together for questions with equally many choices."""
    sizes = np.array([len(question.choices) for question in questions])
    answers = np.array([question.answer for question in questions])
    return [
        (np.stack([tables[place] for place in np.flatnonzero(sizes == size).tolist()]), answers[sizes == size])
        for size in np.unique(sizes)
    ]


def _aggregated(by_order: Table, grid: Grid, has_negatives: bool) -> tuple[Table, Table]:
    """Scores [questions, 24, n] under every aggregator: [aggregators, questions, n], positive and negative."""
    positive, negative = by_order[:, : len(POSITIVE_ORDERS)], by_order[:, len(POSITIVE_ORDERS) :]
    positives = np.stack([aggregate(name, positive, axis=1) for name in grid.positive])
    if not has_negatives:
        return positives, np.zeros_like(positives[:1])
    return positives, np.stack([aggregate(name, negative, axis=1) for name in grid.negative])


def _right(positive: Table, negative: Table, beta: float, answers: NDArray[np.int64]) -> NDArray[np.int64]:
    proportions = positive[:, None] - beta * negative[None]
    right: NDArray[np.int64] = np.sum(np.argmax(proportions, axis=-1) == answers, axis=-1)
    return right
