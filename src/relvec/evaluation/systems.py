"""What is evaluated: a model or a baseline, under one name, ready to answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from relvec.data.benchmarks.analogy import Part, Question
from relvec.hub.models import resolve
from relvec.io.files import expanded
from relvec.model.cached_vectors import ModelVectors, PairVectors
from relvec.model.relation_model import RelBERT
from relvec.model.stored import relbert_config
from relvec.prompts import Template
from relvec.prompts.learned import PromptResult
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
        found, known = self._vectors.vectors([pair for way in ways for both in way for pair in both])
        vectors = normalized(found)
        # Row by row: a matrix product may round equal choices differently, which hides that they tie.
        cosines = np.sum(vectors[::2] * vectors[1::2], axis=1).astype(np.float64)
        each: Scores = np.where(known[::2] & known[1::2], cosines, np.nan)
        scores = each.reshape(len(ways), len(compared)).mean(axis=0)
        ends = np.cumsum([len(question.choices) for question in questions])
        return np.split(scores, ends[:-1])


SolverFor = Callable[[str, Part, Sequence[Question], Scoring], Solver]


@dataclass(frozen=True)
class System:
    """A row of the tables: `solver_for` answers the questions of a dataset; `vectors` are for the other tasks."""

    name: str
    solver_for: SolverFor
    vectors: PairVectors | None = None
    out_of_vocabulary: OutOfVocabulary | None = None
    """How its unknown questions must count, whatever the user says."""
    facts: dict[str, Any] = field(default_factory=dict)


def name_with_settings(name: str, *settings: str) -> str:
    """The name with its unusual settings. Systems of one name count as seeds of one system.

    >>> name_with_settings("PMI", "window 5", ""), name_with_settings("PMI", "")
    ('PMI (window 5)', 'PMI')
    """
    unusual = ", ".join(filter(None, settings))
    return f"{name} ({unusual})" if unusual else name


def vector_system(vectors: PairVectors, facts: dict[str, Any], name: str = "") -> System:
    """A system that answers by the cosine of its vectors."""

    def solver_for(dataset: str, part: Part, questions: Sequence[Question], scoring: Scoring) -> Solver:
        return CosineSolver(vectors, scoring)

    return System(name or vectors.name, solver_for, vectors, facts=facts)


def model_system(
    source: str,
    *,
    template: str | None = None,
    pooling: str | None = None,
    dtype: str = "float32",
    name: str = "",
    device: str | None = None,
    backend: str = "auto",
) -> System:
    """A RelBERT by name, folder or hub id, perhaps with another prompt; its encodings are kept on disk.

    The folder of a learned prompt stands for its base, which is vanilla, with this prompt.
    """
    name = name or name_with_settings(_folder_name(source), f"template {template}" if template else "", pooling or "")
    learned = PromptResult.found_in(expanded(source))
    chosen: str | Template | None = template
    if learned and learned.method != "ptuning":  # whose folder is a model
        source, chosen, pooling = learned.base, chosen or learned.template, pooling or learned.pooling
    model = RelBERT.from_pretrained(
        source, backend=backend, template=chosen, pooling=pooling, device=device, dtype=dtype
    )
    is_tuned = learned is None and relbert_config(resolve(source)) is not None
    return loaded_system(model, name, _folder_name(source), is_tuned)


def loaded_system(model: RelBERT, name: str = "", base: str = "", is_tuned: bool | None = None) -> System:
    """A RelBERT that is loaded already. Unless it `is_tuned` for certain, its training record says whether it is."""
    vectors = ModelVectors(model, name=name)
    is_tuned = bool(model.training_record) if is_tuned is None else is_tuned
    return vector_system(vectors, model_facts(model, base or model.name, is_tuned))


def model_facts(model: RelBERT, base: str, is_tuned: bool) -> dict[str, Any]:
    """What describes a model in a report; an encoder that was never tuned on relations is `vanilla`."""
    recipe = model.training_record.get("recipe", {})
    dtype = str(getattr(model, "dtype", "float32")).removeprefix("torch.")
    facts = {
        "kind": "relation model" if is_tuned else "vanilla",
        "base": model.language_model or base,
        "template": model.template.text,
        "pooling": model.pooling,
        "data": recipe.get("data"),
        "loss": recipe.get("loss"),
        "seed": recipe.get("seed"),
        "dtype": None if dtype == "float32" else dtype,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _folder_name(source: str) -> str:
    """The last part of a path or hub id, also of `.` and `..`."""
    return Path(source).name.strip(".") or Path(source).resolve().name
