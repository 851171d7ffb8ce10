"""What baselines share: how one is described and built, and what it asks of a language model."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from pydantic import Field

from relvec.data.benchmarks.analogy import ANALOGY_DATASETS, Question, load_questions
from relvec.errors import RelvecError
from relvec.evaluation.systems import Scores, Solver, SolverFor, System
from relvec.pairs import Pair
from relvec.settings import Settings

FACTS = {"kind": "baseline"}

Precision = Annotated[
    Literal["float32", "bfloat16"], Field(description="how the language model computes: float32 or bfloat16")
]


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


class Likelihood(NamedTuple):
    """The summed log-probability of a text's tokens and how many they are."""

    log_probability: float
    tokens: int

    @property
    def log_perplexity(self) -> float:
        """-log P(text) / tokens; nan for a text without a scored token.

        >>> round(Likelihood(-6.0, 3).log_perplexity, 3)
        2.0
        """
        return -self.log_probability / self.tokens if self.tokens else math.nan

    def after(self, prefix: "Likelihood") -> "Likelihood":
        """The likelihood of a continuation: this text without its beginning.

        >>> Likelihood(-6.0, 5).after(Likelihood(-2.0, 3))
        Likelihood(log_probability=-4.0, tokens=2)
        """
        return Likelihood(self.log_probability - prefix.log_probability, self.tokens - prefix.tokens)


class LikelihoodModel(Protocol):
    """A model that says how likely texts are. `fingerprint` is a checksum of all that decides the likelihoods."""

    name: str

    @property
    def fingerprint(self) -> str: ...

    def likelihoods(self, texts: Sequence[str]) -> list[Likelihood]: ...


@runtime_checkable
class ChatModel(Protocol):
    """A model that answers a prompt, but does not say how likely other answers are."""

    name: str

    @property
    def fingerprint(self) -> str: ...

    def answers(self, prompts: Sequence[str]) -> list[str]: ...
