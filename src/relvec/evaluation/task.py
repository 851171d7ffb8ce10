"""A task of the evaluation, and how a system is run on its datasets."""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from relvec.errors import RelvecError, one_of
from relvec.evaluation.records import Record, TaskName, find_record, portable_path, save_record
from relvec.evaluation.systems import System, loaded_system, model_system
from relvec.io.files import expanded
from relvec.model.cached_vectors import PairVectors
from relvec.model.relation_model import RelBERT
from relvec.pairs import Pair

Data = TypeVar("Data")

RESAMPLES = 10_000

TASKS = {
    "analogy": "relvec.evaluation.analogy:AnalogyTask",
    "classification": "relvec.evaluation.classification:ClassificationTask",
    "mapping": "relvec.evaluation.mapping:MappingTask",
    "loss": "relvec.evaluation.validation_loss:LossTask",
}
"""The tasks by name; each is imported when it is used."""


@dataclass(frozen=True)
class Outcome:
    """A system's numbers and predictions on a dataset, and a checksum of what decided them."""

    metrics: dict[str, Any]
    fingerprint: str
    predictions: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Task(ABC, Generic[Data]):
    """A task with its settings. A subclass loads datasets, evaluates a system on one, and names the printed columns."""

    name: ClassVar[TaskName]
    part = "test"

    columns: ClassVar[dict[str, Callable[[Record], str]]]
    """What the command prints of a record, by column title."""

    @abstractmethod
    def load(self, datasets: Sequence[str], data_dir: str | Path | None = None) -> dict[str, Data]:
        """Datasets by name or path; by default all that have a name."""

    def pairs(self, data: Data) -> Iterable[Pair]:
        """The pairs that a system will be asked for, so that a baseline reads only what it needs."""
        return ()

    def settings(self, system: System, data: Data) -> dict[str, Any]:
        """The settings in a record."""
        return {}

    def check(self, system: System, data: Mapping[str, Data]) -> None:
        """Raise an error about what cannot be done, before any work."""

    def identity(self, system: System, data: Data) -> tuple[str, str] | None:
        """For slow tasks: checksums of system and data. A record that has both is not computed again."""
        return None

    @abstractmethod
    def run(self, system: System, dataset: str, data: Data, work: Path) -> Outcome:
        """Evaluate a system on a dataset; `work` is a folder for checkpoints."""


def run_task(
    task: Task[Data], system: System, data: Mapping[str, Data], runs: str | Path, command: str = ""
) -> Iterator[Record]:
    """Evaluate a system on each dataset, and save each record at once. Slow work is not done twice."""
    task.check(system, data)
    for dataset, each in data.items():
        fingerprint, checksum = task.identity(system, each) or ("", "")
        record = Record(
            task=task.name,
            system=system.name,
            dataset=portable_path(dataset),
            part=task.part,
            fingerprint=fingerprint,
            settings=task.settings(system, each),
            metrics={},
            facts=system.facts,
            command=command,
            data=checksum,
        )
        work = expanded(runs) / "work" / record.key
        finished = find_record(record, runs) if checksum else None
        if finished is None:
            outcome = task.run(system, dataset, each, work)
            finished = record.changed({"metrics": outcome.metrics, "fingerprint": outcome.fingerprint})
            save_record(finished, runs, map(dict, outcome.predictions))
        shutil.rmtree(work, ignore_errors=True)
        yield finished


def evaluate(
    model: str | Path | RelBERT | System,
    task: str = "analogy",
    *,
    datasets: str | Path | Sequence[str | Path] = (),
    data_dir: str | Path | None = None,
    runs: str | Path | None = None,
    **settings: Any,
) -> list[Record]:
    """Score a model (or a system such as a baseline) on a task: one record for each dataset.

    `datasets` is a name or a path, or several, by default all that the task has. `settings` are those of the task,
    such as `scoring="bidirectional"` for analogy questions or `seed=1` for classification. Records are kept in the
    folder `runs` if one is given.

    >>> _ = Path("mine.jsonl").write_text('{"stem": ["a", "b"], "choice": [["c", "d"], ["a", "b"]], "answer": 1}')
    >>> (record,) = evaluate(tiny_model, "analogy", datasets="mine.jsonl", scoring="bidirectional")
    >>> record.metrics["accuracy"]
    100.0
    """
    module, _, name = TASKS[one_of("task", task, TASKS)].partition(":")
    kind = getattr(import_module(module), name)
    for each in settings:
        one_of(f"setting of {task}", each, [field.name for field in fields(kind)])
    chosen = kind(**settings)
    listed = [datasets] if isinstance(datasets, str | Path) else datasets
    data = chosen.load(list(map(str, listed)), data_dir)
    if isinstance(model, str | Path):
        system = model_system(str(model))
    else:
        system = model if isinstance(model, System) else loaded_system(model)
    if runs is not None:
        return list(run_task(chosen, system, data, runs))
    with TemporaryDirectory() as folder:
        return list(run_task(chosen, system, data, folder))


def vectors_of(system: System) -> PairVectors:
    """The vectors of a system that has some."""
    if system.vectors is None:
        raise RelvecError(f"{system.name} answers questions but has no vectors; choose a model or word vectors.")
    return system.vectors


def percent_interval(values: NDArray[np.floating]) -> list[float]:
    """The 95 % percentile bootstrap interval of the mean of `values`, in per cent.

    >>> [round(bound) for bound in percent_interval(np.array([1.0, 0.0] * 50))]
    [40, 60]
    """
    distinct, counts = np.unique(values, return_counts=True)
    # A resample is how often each distinct value is drawn: one multinomial draw, whatever the number of values.
    drawn = np.random.default_rng(0).multinomial(len(values), counts / len(values), size=RESAMPLES)
    means = drawn @ distinct / len(values)
    return [100 * float(bound) for bound in np.quantile(means, [0.025, 0.975])]
