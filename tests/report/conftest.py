"""Results as `relvec evaluate` would have saved them, small enough to check by hand."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relvec.data.benchmarks.analogy import ANALOGY_DATASETS, Question
from relvec.data.benchmarks.classification import CLASSIFICATION_DATASETS, LabelledPairs
from relvec.evaluation.analogy import metrics, predict
from relvec.evaluation.classification import classification_outcome
from relvec.evaluation.records import Record, save_record

KINDS = {
    "bats": ("I01 [noun - plural_reg]", "D03 [un+adj_reg]", "E01 [country - capital]", "L09 [antonyms - gradable]"),
    "google": ("gram3-comparative", "capital-common-countries"),
}


def analogy(
    system: str,
    dataset: str,
    right: float,
    *,
    fingerprint: str = "f0",
    scoring: str = "forward",
    policy: str = "wrong",
    facts: dict[str, Any] | None = None,
    size: int | None = None,
    part: str = "test",
    unknown: int = 0,
    **more: Any,
) -> Record:
    """A record of a system that is right on a share of the questions, with the metrics that evaluation computes."""
    known = ANALOGY_DATASETS[dataset]
    size = size or (sum(known.counts.values()) if known.is_whole else known.counts[part])
    kinds = KINDS.get(dataset, ("",))
    questions = [Question(("a", "b"), (("c", "d"), ("e", "f")), 0, kinds[n % len(kinds)]) for n in range(size)]
    scores = [np.array([1.0, 0.0] if n < round(right * size) else [0.0, 1.0]) for n in range(size)]
    scores[size - unknown :] = [np.array([np.nan, np.nan])] * unknown
    found = metrics(dataset, predict(questions, scores))
    settings = {"scoring": scoring, "out_of_vocabulary": policy}
    return Record(
        task="analogy",
        system=system,
        dataset=dataset,
        part=part,
        fingerprint=fingerprint,
        settings=settings,
        metrics={**found, **more},
        facts=facts or {},
        command=f"relvec evaluate analogy --name {system} --scoring {scoring}",
    )


def classification(
    system: str,
    dataset: str,
    right: float,
    *,
    fingerprint: str = "f0",
    seed: int = 0,
    size: int | None = None,
    facts: dict[str, Any] | None = None,
    **settings: Any,
) -> Record:
    """A record of a classifier that is right on a share of the test pairs."""
    known = CLASSIFICATION_DATASETS[dataset]
    labels = list(dict.fromkeys(known.classes.values()))
    parts: dict[Any, LabelledPairs] = {
        part: _pairs(labels, count) for part, count in {**known.counts, "test": size or 300}.items()
    }
    test = parts["test"].labels
    wrong = {label: labels[place - 1] for place, label in enumerate(labels)}
    predicted = [label if n < round(right * len(test)) else wrong[label] for n, label in enumerate(test)]
    found = dict(classification_outcome(parts, predicted, fingerprint).metrics)
    if size is None:
        found["pairs"] = dict(known.counts)  # a small test part is faster; its size is not the point
    return Record(
        task="classification",
        system=system,
        dataset=dataset,
        part="test",
        fingerprint=fingerprint,
        settings={"classifier": "mlp", "seed": seed, **settings},
        metrics=found,
        facts={"kind": "relation model", **(facts or {})},
    )


def _pairs(labels: Sequence[str], count: int) -> LabelledPairs:
    return LabelledPairs((("a", "b"),) * count, tuple(labels[n % len(labels)] for n in range(count)))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """An empty runs folder."""
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


@pytest.fixture
def save(runs: Path) -> Callable[..., None]:
    """Save a record in the runs folder."""

    def saved(task: str, dataset: str, metrics: dict[str, Any], system: str = "a", **fields: Any) -> None:
        usual = {"part": "test", "fingerprint": "f", "settings": {}}
        record = Record(**{**usual, "task": task, "dataset": dataset, "metrics": metrics, "system": system, **fields})
        save_record(record, runs)

    return saved


@pytest.fixture
def save_analogy(runs: Path) -> Callable[..., None]:
    """Save the record of a system that is right on a share of a dataset's questions."""
    return lambda *arguments, **more: save_record(analogy(*arguments, **more), runs)


@pytest.fixture
def save_classification(runs: Path) -> Callable[..., None]:
    """Save the record of a classifier that is right on a share of a dataset's test pairs."""
    return lambda *arguments, **more: save_record(classification(*arguments, **more), runs)
