"""The tuned analogical proportion score: the settings that answer most validation questions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relvec.baselines.baseline import LikelihoodModel
from relvec.baselines.proportion import (
    NEGATIVE_AGGREGATORS,
    ORDERS,
    POSITIVE_AGGREGATORS,
    POSITIVE_ORDERS,
    TEMPLATES,
    MarginalPerplexity,
    MutualInformation,
    Perplexity,
    PerplexityTable,
    ProportionSettings,
    Score,
    aggregate,
    log_perplexity_tables,
)
from relvec.data.benchmarks.analogy import Question

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


@dataclass(frozen=True)
class Tuned:
    """The chosen settings, the share of validation questions (%) they answer, and how many settings did as well."""

    settings: ProportionSettings
    accuracy: float
    ties: int

    @property
    def configuration(self) -> dict[str, Any]:
        """What a record says of the choice."""
        return {**self.settings.to_dict(), "valid_accuracy": self.accuracy, "ties": self.ties}


def tune(model: LikelihoodModel, questions: Sequence[Question], grid: Grid | None = None) -> Tuned:
    """Try every setting of the grid on validation questions; the model is asked once for each distinct text.

    Of settings that answer equally many questions the first wins, in the order of five nested loops: template, score,
    beta, positive and, innermost, negative aggregator (which does nothing without a beta). Ushio et al. instead report
    the middle one of the tied settings by its accuracy on the test part.
    """
    tried = grid or Grid()
    best, most, ties = ProportionSettings(), -1, 0
    for template, score, beta, right in right_answers(model, questions, tried):
        if right.max() > most:
            most, ties = int(right.max()), 0
            positive, negative = np.unravel_index(int(np.argmax(right)), right.shape)
            best = ProportionSettings(template, score, tried.positive[positive], tried.negative[negative], beta)
        ties += int((right == most).sum())
    return Tuned(best, 100 * most / len(questions), ties)


def right_answers(
    model: LikelihoodModel, questions: Sequence[Question], grid: Grid
) -> Iterator[tuple[str, Score, float, NDArray[np.int64]]]:
    """How many answers are right, [positive aggregators, negative aggregators], for each template, score and beta."""
    has_negatives = any(grid.betas)
    orders = range(len(ORDERS) if has_negatives else len(POSITIVE_ORDERS))
    mixes_choices = any(score.mixes_choices for score in grid.scores)
    for template in grid.templates:
        groups = _by_size(questions, log_perplexity_tables(model, questions, template, orders, mixes_choices))
        for score in grid.scores:
            scored = [(_aggregated(score(tables), grid, has_negatives), answers) for tables, answers in groups]
            for beta in grid.betas:
                right = 0
                for (positive, negative), answers in scored:
                    proportions = positive[:, None] - beta * (negative if beta else negative[:1])[None]
                    right += np.sum(np.argmax(proportions, axis=-1) == answers, axis=-1)
                yield template, score, beta, np.asarray(right)


def _by_size(
    questions: Sequence[Question], tables: Sequence[PerplexityTable]
) -> list[tuple[PerplexityTable, NDArray[np.int64]]]:
    """Tables [questions, 24, n, n] and answers, together for questions with equally many choices."""
    sizes = np.array([len(question.choices) for question in questions])
    answers = np.array([question.answer for question in questions])
    return [
        (np.stack([tables[place] for place in np.flatnonzero(sizes == size).tolist()]), answers[sizes == size])
        for size in np.unique(sizes)
    ]


def _aggregated(by_order: PerplexityTable, grid: Grid, has_negatives: bool) -> tuple[PerplexityTable, PerplexityTable]:
    """Scores [questions, 24, n] under every aggregator: [aggregators, questions, n], positive and negative."""
    positive, negative = by_order[:, : len(POSITIVE_ORDERS)], by_order[:, len(POSITIVE_ORDERS) :]
    positives = np.stack([aggregate(name, positive, axis=1) for name in grid.positive])
    if not has_negatives:
        return positives, np.zeros_like(positives[:1])
    return positives, np.stack([aggregate(name, negative, axis=1) for name in grid.negative])
