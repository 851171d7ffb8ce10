"""relvec evaluate: a model or a baseline on the benchmarks."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relvec.cli.options import BackendOption, Jobs, Model, Run, SeedOption, with_shared_options
from relvec.cli.output import Table, show
from relvec.data.rated import BOTTOM, TOP
from relvec.errors import RelvecError
from relvec.hub.catalogue import DEFAULT_MODEL

if TYPE_CHECKING:
    from relvec.baselines.baseline import Context
    from relvec.evaluation.records import Record
    from relvec.evaluation.systems import System
    from relvec.evaluation.task import Task
    from relvec.settings import Settings

app = typer.Typer(help="Score a model or a baseline on the benchmarks.", no_args_is_help=True)

TemplateOption = Annotated[str | None, typer.Option(help="Another prompt for the model: 1 to 5, or a text.")]
PoolingOption = Annotated[str | None, typer.Option(help="Another pooling: average, average_no_mask, mask or last.")]
DtypeOption = Annotated[
    str | None, typer.Option(help="How the model computes: float32 (by default) or, faster, bfloat16 or int8.")
]
GridOption = Annotated[
    bool,
    typer.Option(help="Choose the perceptron's settings on the validation part; --no-grid takes scikit-learn's own."),
]
Runs = Annotated[Path, typer.Option(help="The folder in which results are kept, for `relvec report`.")]
Datasets = Annotated[
    list[str] | None, typer.Option("--dataset", help="A dataset by name or path, by default all; may be repeated.")
]


@dataclass(frozen=True)
class SystemOptions:
    """What is evaluated: a model, perhaps with another prompt, or a baseline with its settings."""

    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help=f"A model name (by default {DEFAULT_MODEL}), a folder or a hub id."),
    ] = None
    template: TemplateOption = None
    pooling: PoolingOption = None
    dtype: DtypeOption = None
    baseline: Annotated[
        str | None, typer.Option(help="A baseline instead of a model; `relvec baselines` lists them.")
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the baseline, as name=value; may be repeated.", metavar="NAME=VALUE"),
    ] = None

    def baseline_settings(self, task: str) -> "Settings | None":
        """Those of the baseline, None for a model; what does not fit together is refused before anything is read."""
        if self.baseline is None:
            if self.settings:
                raise RelvecError("--set is for baselines; add --baseline, or leave it out.")
            return None
        if any(option is not None for option in (self.model, self.template, self.pooling, self.dtype)):
            raise RelvecError("--baseline stands alone; leave out --model, --template, --pooling and --dtype.")
        from relvec.baselines.registry import chosen_settings

        return chosen_settings(self.baseline, self.settings or [], task)

    def system(self, settings: "Settings | None", context: "Context", backend: str) -> "System":
        """The model, or the baseline with its settings, that was asked for."""
        if self.baseline is not None:
            from relvec.baselines.registry import BASELINES

            return BASELINES[self.baseline].build(settings, context)
        from relvec.evaluation.systems import model_system

        return model_system(
            self.model or DEFAULT_MODEL,
            template=self.template,
            pooling=self.pooling,
            dtype=self.dtype or "float32",
            name=context.name,
            device=context.device,
            backend=backend,
        )


@dataclass(frozen=True)
class EvaluationRun(Run):
    """Where data comes from and results go, and how they are shown."""

    backend: BackendOption = "auto"
    runs: Runs = Path("runs")
    name: Annotated[str, typer.Option(help="What tables call this system; seeds of one system share the name.")] = ""

    def evaluate(self, tasks: "Sequence[Task[Any]]", chosen: SystemOptions, datasets: Sequence[str]) -> None:
        """Run the chosen system on the datasets of tasks of one kind, and print a row for each record."""
        from relvec.baselines.baseline import Context
        from relvec.evaluation.task import run_task

        task, command = tasks[0], typed_command()
        settings = chosen.baseline_settings(task.name)
        data = task.load(datasets, self.data_dir)
        pairs = [pair for each in data.values() for pair in task.pairs(each)]
        context = Context(pairs, task.name, self.name, self.data_dir, self.device)
        system = chosen.system(settings, context, self.backend)
        records = [record for each in tasks for record in run_task(each, system, data, self.runs, command)]
        facts = [
            {**record.model_dump(include={"system", "dataset", "part", "settings"}), **record.metrics}
            for record in records
        ]
        rows = [[cell(record) for cell in task.columns.values()] for record in records]
        typed = [_distractor_table(record) for record in records if "by_distractor" in record.metrics]
        show(self.json, facts, Table(list(task.columns), rows, f"{system.name}, {task.part} part"), *typed)


def _distractor_table(record: "Record") -> Table:
    """How often the right answer scores above the wrong choices of each type, and how often these are picked."""
    rows = [
        [kind, f"{found['accuracy']:.1f}", "{:.1f}-{:.1f}".format(*found["interval"]), f"{found['picked']:.1f}"]
        for kind, found in record.metrics["by_distractor"].items()
    ]
    title = f"{record.dataset}, {record.settings['scoring']}: the right answer above a wrong choice"
    return Table(["wrong choice", "accuracy", "95 %", "picked"], rows, title)


def typed_command() -> str:
    """The command as it was typed, to stand beside its numbers."""
    return shlex.join(["relvec", *sys.argv[1:]])


@app.command()
@with_shared_options
def analogy(
    chosen: SystemOptions,
    *,
    dataset: Datasets = None,
    part: Annotated[str, typer.Option(help="test to report, valid to choose by.")] = "test",
    scoring: Annotated[
        list[str] | None, typer.Option(help="forward (default), reverse or bidirectional; may be repeated.")
    ] = None,
    out_of_vocabulary: Annotated[
        str, typer.Option(help="How questions of unknown words count: wrong, chance or fallback.")
    ] = "wrong",
    fallback: Annotated[
        str | None,
        typer.Option(
            help="Answers for unknown words: a system in --runs, or FILE:COLUMN.", metavar="SYSTEM|FILE:COLUMN"
        ),
    ] = None,
    run: EvaluationRun,
) -> None:
    """Accuracy on analogy questions. Datasets: SAT, U2, U4, Google, BATS, and `bundled`, the project's own."""
    from relvec.evaluation.analogy import AnalogyTask

    other = None
    if fallback:
        from relvec.baselines import saved_predictions

        other = saved_predictions.fallback(fallback, run.runs)
    tasks = [
        AnalogyTask(
            part=part,  # type: ignore[arg-type]  # the task checks it
            scoring=way,  # type: ignore[arg-type]
            out_of_vocabulary=out_of_vocabulary,  # type: ignore[arg-type]
            fallback=other,
        )
        for way in dict.fromkeys(scoring or ["forward"])
    ]
    run.evaluate(tasks, chosen, dataset or [])


@app.command()
@with_shared_options
def classification(
    chosen: SystemOptions,
    *,
    dataset: Datasets = None,
    fine_tune: Annotated[
        bool, typer.Option("--fine-tune", help="Train the encoder with a linear head instead; reported apart.")
    ] = False,
    lora: Annotated[
        int, typer.Option(min=0, help="With --fine-tune: the rank of an adapter to train; 0 trains all weights.")
    ] = 0,
    exclude_label: Annotated[
        list[str] | None, typer.Option(help="A class to leave out, such as EVALution's `part of`; may be repeated.")
    ] = None,
    grid: GridOption = True,
    seed: SeedOption = 0,
    jobs: Jobs = None,
    run: EvaluationRun,
) -> None:
    """F1 on lexical relation classification. Datasets: BLESS, CogALexV, EVALution, K&H+N, ROOT09."""
    if fine_tune and chosen.baseline is not None:
        raise RelvecError("A baseline has no encoder to fine-tune; leave out --fine-tune, or give --model.")
    if lora and not fine_tune:
        raise RelvecError("--lora is for --fine-tune; add it, or leave out --lora.")
    if fine_tune and not grid:
        raise RelvecError("--no-grid is for the perceptron on frozen vectors; leave it out, or leave out --fine-tune.")
    from relvec.evaluation.classification import ClassificationTask

    fine_tuning = None
    if fine_tune:
        from relvec.evaluation.fine_tuning import FineTuning

        fine_tuning = FineTuning(lora_rank=lora, seed=seed)
    task = ClassificationTask(
        exclude_labels=exclude_label or (), grid=grid, seed=seed, jobs=jobs, fine_tuning=fine_tuning
    )
    run.evaluate([task], chosen, dataset or [])


@app.command()
@with_shared_options
def mapping(chosen: SystemOptions, *, dataset: Datasets = None, run: EvaluationRun) -> None:
    """Accuracy on relation mapping between two domains of terms."""
    from relvec.evaluation.mapping import MappingTask

    run.evaluate([MappingTask()], chosen, dataset or [])


@app.command()
@with_shared_options
def loss(
    *,
    model: Model = DEFAULT_MODEL,
    template: TemplateOption = None,
    pooling: PoolingOption = None,
    data: Annotated[str, typer.Option(help="Training data by name, file, folder or hub id.")] = "semeval2012",
    loss: Annotated[str, typer.Option(help="triplet, infonce, infoloob or contrastive.")] = "triplet",
    top: Annotated[int, typer.Option(min=2, help="How many of the best pairs of a relation are positives.")] = TOP,
    bottom: Annotated[int, typer.Option(min=0, help="How many of the worst are negatives.")] = BOTTOM,
    threshold: Annotated[float | None, typer.Option(help="Instead of these: the lowest score of a positive.")] = None,
    exclude_benchmark_pairs: Annotated[
        bool, typer.Option("--exclude-benchmark-pairs", help="Leave out pairs of the benchmarks in --data-dir.")
    ] = False,
    train_on_held_out: Annotated[
        bool, typer.Option("--train-on-held-out", help="Keep pairs that are kept for the project's own questions.")
    ] = False,
    run: EvaluationRun,
) -> None:
    """Loss on held-out pairs, for choosing prompts and recipes.

    Select positives and negatives as the model's recipe does, so that the same pairs are held out.
    """
    from relvec.evaluation.validation_loss import LossTask

    task = LossTask(loss, top, bottom, threshold, exclude_benchmark_pairs, train_on_held_out)
    run.evaluate([task], SystemOptions(model, template, pooling), [data])
