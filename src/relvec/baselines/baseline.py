"""A baseline: its description, its settings, and how to build a system from them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relvec.data.benchmarks.analogy import ANALOGY_DATASETS, Question, load_questions
from relvec.errors import RelvecError
from relvec.evaluation.systems import Scores, Solver, SolverFor, System
from relvec.pairs import Pair
from relvec.settings import Settings

FACTS = {"kind": "baseline"}


@dataclass(frozen=True)
class Context:
    """What a baseline may need besides its settings. `pairs` are all that it will be asked for."""

    pairs: list[Pair]
    task: str = "analogy"
    name: str = ""
    data_dir: Path | None = None
    device: str | None = None

    def validation(self, dataset: str) -> list[Question]:
        """The validation part that belongs to a dataset; the full SAT set has that of SAT."""
        if dataset not in ANALOGY_DATASETS:
            raise RelvecError(f"{dataset} has no validation part to learn from; choose a dataset by name.")
        return load_questions(ANALOGY_DATASETS[dataset].folder, "valid", self.data_dir)


@dataclass(frozen=True)
class Baseline:
    """A system to compare with. `build` makes it from its settings and the context."""

    name: str
    description: str
    build: Callable[[Any, Context], System]
    settings: type[Settings] = Settings
    tasks: tuple[str, ...] = ("analogy",)

    def setting_texts(self) -> dict[str, str]:
        """What each setting means, with its default.

        >>> from relvec.baselines.registry import BASELINES
        >>> BASELINES["pmi"].setting_texts()["window"]
        'how many tokens apart the words may be (10)'
        """
        return {
            name: str(field.description) + (f" ({field.default})" if not field.is_required() and field.default else "")
            for name, field in self.settings.model_fields.items()
        }


def choice_scores(question: Question, chosen: int | None) -> Scores:
    """1 for the choice that was made and 0 for the others; nan for all where none was made."""
    count = len(question.choices)
    return np.full(count, np.nan) if chosen is None else (np.arange(count) == chosen).astype(np.float64)


def always(solver: Solver) -> SolverFor:
    """The same solver for every dataset; it ignores the scoring."""
    return lambda dataset, part, questions, scoring: solver
