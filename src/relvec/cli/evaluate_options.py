"""What the commands of `relvec evaluate` share: their options, the system these choose, and how results are shown."""

import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relvec.cli.options import BackendOption, DataDir, Device, Json
from relvec.cli.output import show
from relvec.errors import RelvecError
from relvec.hub.catalogue import DEFAULT_MODEL

if TYPE_CHECKING:
    from relvec.evaluation.records import Record
    from relvec.evaluation.systems import System
    from relvec.evaluation.task import Task
    from relvec.pairs import Pair

Template = Annotated[str | None, typer.Option(help="Another prompt for the model: 1 to 5, or a text.")]
Pooling = Annotated[str | None, typer.Option(help="Another pooling for the model: average, average_no_mask or mask.")]
Runs = Annotated[Path, typer.Option(help="The folder in which results are kept, for `relvec report`.")]
Datasets = Annotated[
    list[str] | None, typer.Option("--dataset", help="A dataset by name or path, by default all; may be repeated.")
]


@dataclass(frozen=True)
class Chosen:
    """What is evaluated: a model, perhaps with another prompt, or a baseline with its settings."""

    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help=f"A model name (by default {DEFAULT_MODEL}), a folder or a hub id."),
    ] = None
    template: Template = None
    pooling: Pooling = None
    dtype: Annotated[
        str | None, typer.Option(help="How the model computes: float32 (by default) or, often faster, bfloat16.")
    ] = None
    baseline: Annotated[
        str | None, typer.Option(help="A baseline instead of a model; `relvec baselines` lists them.")
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the baseline, as name=value; may be repeated.", metavar="NAME=VALUE"),
    ] = None

    def check(self, task: str) -> None:
        """Refuse what does not fit together before anything is read."""
        if self.baseline is None and self.settings:
            raise RelvecError("--set is for baselines; add --baseline, or leave it out.")
        if self.baseline is not None:
            if any(option is not None for option in (self.model, self.template, self.pooling, self.dtype)):
                raise RelvecError("--baseline stands alone; leave out --model, --template, --pooling and --dtype.")
            from relvec.baselines.registry import chosen_settings

            chosen_settings(self.baseline, self.settings or [], task)

    def system(self, task: str, run: "Run", pairs: Iterable["Pair"] = ()) -> "System":
        """The model or the baseline that was asked for; `pairs` are all that it will be asked."""
        if self.baseline is None:
            from relvec.evaluation.systems import model_system

            source = self.model or DEFAULT_MODEL
            return model_system(
                source,
                template=self.template,
                pooling=self.pooling,
                dtype=self.dtype or "float32",
                name=run.name,
                device=run.device,
                backend=run.backend,
            )
        from relvec.baselines.baseline import Context
        from relvec.baselines.registry import BASELINES, chosen_settings

        settings = chosen_settings(self.baseline, self.settings or [], task)
        context = Context(list(pairs), task, run.name, run.data_dir, run.device)
        return BASELINES[self.baseline].build(settings, context)


@dataclass(frozen=True)
class Run:
    """Where data comes from and results go, and how they are shown."""

    data_dir: DataDir = None
    runs: Runs = Path("runs")
    name: Annotated[str, typer.Option(help="What tables call this system; seeds of one system share the name.")] = ""
    device: Device = None
    backend: BackendOption = "auto"
    json: Json = False

    def evaluate(self, tasks: "Sequence[Task[Any]]", chosen: Chosen, datasets: Sequence[str]) -> None:
        """Run the chosen system on the datasets of tasks of one kind, and print a row for each record."""
        from relvec.evaluation.task import run_task

        data = tasks[0].load(datasets, self.data_dir)
        pairs = [pair for each in data.values() for pair in tasks[0].pairs(each)]
        system = chosen.system(tasks[0].name, self, pairs)
        command = typed_command()
        records = [record for task in tasks for record in run_task(task, system, data, self.runs, command)]
        columns = tasks[0].columns
        rows = [[cell(record) for cell in columns.values()] for record in records]
        show(
            self.json,
            [summary(record) for record in records],
            list(columns),
            rows,
            f"{system.name}, {tasks[0].part} part",
        )


def typed_command() -> str:
    """The command as it was typed, to stand beside its numbers."""
    return shlex.join(["relvec", *sys.argv[1:]])


def summary(record: "Record") -> dict[str, object]:
    """What a machine wants to know of a record."""
    return {
        "system": record.system,
        "dataset": record.dataset,
        "part": record.part,
        "settings": record.settings,
        **record.metrics,
    }
