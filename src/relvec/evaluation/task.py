"""What a task of the evaluation is, and the one way in which a system is run on its datasets."""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from relvec.errors import RelvecError
from relvec.evaluation.portable import portable_path
from relvec.evaluation.records import Record, TaskName, find_record, save_record
from relvec.evaluation.systems import System
from relvec.model.cached_vectors import PairVectors
from relvec.pairs import Pair

Data = TypeVar("Data")


@dataclass(frozen=True)
class Outcome:
    """What a system scored on a dataset: the numbers, and each prediction. `fingerprint` tells what decided them."""

    metrics: dict[str, Any]
    fingerprint: str
    predictions: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Task(ABC, Generic[Data]):
    """A task with its settings. A subclass loads datasets, runs a system on one, and names the columns to print."""

    name: ClassVar[TaskName]
    part: str = field(default="test", kw_only=True)

    columns: ClassVar[dict[str, Callable[[Record], str]]]
    """What the command prints of a record, by heading."""

    @abstractmethod
    def load(self, datasets: Sequence[str], data_dir: str | Path | None = None) -> dict[str, Data]:
        """Datasets by name or path; all that have a name if none is given."""

    def pairs(self, data: Data) -> Iterable[Pair]:
        """The pairs that a system will be asked for, so that a baseline reads only what it needs."""
        return ()

    def settings(self, system: System, data: Data) -> dict[str, Any]:
        """What a record says of the choices that were made."""
        return {}

    def check(self, system: System, data: Mapping[str, Data]) -> None:
        """Refuse what cannot be done before any work."""

    def unfinished(self, system: System, data: Data) -> tuple[str, str] | None:
        """For slow tasks: the fingerprint and the checksum of the data by which a finished record is found again."""
        return None

    @abstractmethod
    def run(self, system: System, dataset: str, data: Data, work: Path) -> Outcome:
        """The result of a system on a dataset; `work` is a folder for what must survive a kill."""


def run_task(
    task: Task[Data], system: System, data: Mapping[str, Data], runs: str | Path, command: str = ""
) -> Iterator[Record]:
    """Run a system on each dataset; a record is kept as soon as it is there, and slow work is not done twice."""
    task.check(system, data)
    for dataset, each in data.items():
        fingerprint, checksum = task.unfinished(system, each) or ("", "")
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
        work = Path(runs) / "work" / record.key
        finished = find_record(record, runs) if checksum else None
        if finished is None:
            outcome = task.run(system, dataset, each, work)
            finished = record.changed({"metrics": outcome.metrics, "fingerprint": outcome.fingerprint})
            save_record(finished, runs, map(dict, outcome.predictions))
        shutil.rmtree(work, ignore_errors=True)
        yield finished


def vectors_of(system: System) -> PairVectors:
    """The vectors of a system that has some."""
    if system.vectors is None:
        raise RelvecError(f"{system.name} answers questions but has no vectors; choose a model or word vectors.")
    return system.vectors
