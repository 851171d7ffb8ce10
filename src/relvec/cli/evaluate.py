"""relvec evaluate: a model or a baseline on the benchmarks."""

import shlex
import sys
from collections.abc import Iterable
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relvec.baselines.registry import chosen_settings
from relvec.cli.options import DataDir, Device, Json, print_json, print_table
from relvec.encoders.catalog import DEFAULT_MODEL
from relvec.errors import RelvecError

if TYPE_CHECKING:
    from relvec.evaluation.records import Record
    from relvec.evaluation.systems import System
    from relvec.pairs import Pair

app = typer.Typer(help="Score a model or a baseline on the benchmarks.", no_args_is_help=True)

Model = Annotated[str | None, typer.Option("--model", "-m", help="A model name, a folder or a hub id.")]
Template = Annotated[str | None, typer.Option(help="Another prompt for the model: 1 to 5, or a text.")]
Pooling = Annotated[str | None, typer.Option(help="Another pooling for the model.")]
Baseline = Annotated[str | None, typer.Option(help="A baseline instead of a model; `relvec baselines` lists them.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="A setting of the baseline, as name=value.", metavar="NAME=VALUE")
]
Name = Annotated[str, typer.Option(help="What tables call this system; seeds of one system share the name.")]
Runs = Annotated[Path, typer.Option(help="The folder in which results are kept, for `relvec report`.")]
Datasets = Annotated[list[str] | None, typer.Option("--dataset", help="A dataset by name or path; default: all.")]


@app.command()
def analogy(
    model: Model = None,
    template: Template = None,
    pooling: Pooling = None,
    baseline: Baseline = None,
    settings: Settings = None,
    dataset: Datasets = None,
    part: Annotated[str, typer.Option(help="test to report, valid to choose by.")] = "test",
    scoring: Annotated[
        list[str] | None, typer.Option(help="forward (default), reverse or bidirectional; may be repeated.")
    ] = None,
    out_of_vocabulary: Annotated[
        str, typer.Option(help="How questions of unknown words count: wrong, chance or fallback.")
    ] = "wrong",
    fallback: Annotated[
        str | None, typer.Option(help="Saved answers for unknown words, as FILE:COLUMN.", metavar="FILE:COLUMN")
    ] = None,
    data_dir: DataDir = None,
    runs: Runs = Path("runs"),
    name: Name = "",
    device: Device = None,
    json: Json = False,
) -> None:
    """Accuracy on analogy questions: SAT, U2, U4, Google, BATS."""
    _check("analogy", (model, template, pooling), baseline, settings)
    from relvec.evaluation.analogy import check_out_of_vocabulary
    from relvec.evaluation.questions import ANALOGY_DATASETS, check_part, load_questions
    from relvec.evaluation.suite import analogy_records
    from relvec.similarity import check_scoring

    ways = [check_scoring(way) for way in scoring or ["forward"]]
    policy = check_out_of_vocabulary(out_of_vocabulary)
    wanted = check_part(part)
    questions = {each: load_questions(each, wanted, data_dir) for each in dataset or ANALOGY_DATASETS}
    fallbacks = None
    if (policy == "fallback") != (fallback is not None):
        raise RelvecError("--out-of-vocabulary fallback and --fallback go together; give both or neither.")
    if fallback is not None:
        from relvec.baselines.saved_predictions import SavedPredictions

        path, _, column = fallback.rpartition(":")
        if not path or not column:
            raise RelvecError(f"--fallback {fallback} names no column; write FILE:COLUMN.")
        fallbacks = {
            each: SavedPredictions(path, column, each, wanted).answers(asked) for each, asked in questions.items()
        }
    pairs = [pair for asked in questions.values() for one in asked for pair in (one.stem, *one.choices)]
    system = _system("analogy", model, template, pooling, baseline, settings, name, device, pairs, data_dir)
    records = [
        record
        for way in ways
        for record in analogy_records(
            system,
            questions,
            wanted,
            runs,
            scoring=way,
            out_of_vocabulary=policy,
            fallbacks=fallbacks,
            command=_command(),
        )
    ]
    if json:
        print_json([_summary(record) for record in records])
        return
    rows = [
        [
            record.dataset,
            str(record.settings["scoring"]),
            f"{record.metrics['accuracy']:.1f}",
            "{:.1f}-{:.1f}".format(*record.metrics["interval"]),
            str(record.metrics["questions"]),
            str(record.metrics["out_of_vocabulary"]),
            str(record.metrics["ties"]),
        ]
        for record in records
    ]
    head = ["dataset", "scoring", "accuracy", "95 %", "questions", "unknown", "ties"]
    print_table(head, rows, title=f"{system.name}, {wanted} part", right=tuple(head[2:]))


@app.command()
def classification(
    model: Model = None,
    template: Template = None,
    pooling: Pooling = None,
    baseline: Baseline = None,
    settings: Settings = None,
    dataset: Datasets = None,
    fine_tune: Annotated[
        bool, typer.Option("--fine-tune", help="Train the encoder with a linear head instead; reported apart.")
    ] = False,
    exclude_label: Annotated[
        list[str] | None, typer.Option(help="A class to leave out, such as EVALution's `part of`; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides the classifier's first weights.")] = 0,
    jobs: Annotated[int | None, typer.Option(help="Classifiers trained at once; default: one a core.")] = None,
    data_dir: DataDir = None,
    runs: Runs = Path("runs"),
    name: Name = "",
    device: Device = None,
    json: Json = False,
) -> None:
    """F1 on lexical relation classification: BLESS, CogALexV, EVALution, K&H+N, ROOT09."""
    if fine_tune and baseline is not None:
        raise RelvecError("A baseline has no encoder to fine-tune; leave out --fine-tune, or give --model.")
    _check("classification", (model, template, pooling), baseline, settings)
    from relvec.evaluation.fine_tuning import FineTuning
    from relvec.evaluation.labelled_pairs import CLASSIFICATION_DATASETS, load_labelled
    from relvec.evaluation.suite import classification_records, fine_tuning_records

    datasets = {each: load_labelled(each, data_dir) for each in dataset or CLASSIFICATION_DATASETS}
    pairs = [pair for parts in datasets.values() for part in parts.values() for pair in part.pairs]
    excluded = exclude_label or ()
    system = _system("classification", model, template, pooling, baseline, settings, name, device, pairs, data_dir)
    if fine_tune:
        found = fine_tuning_records(
            system, datasets, runs, exclude_labels=excluded, recipe=FineTuning(seed=seed), command=_command()
        )
    else:
        found = classification_records(
            system, datasets, runs, exclude_labels=excluded, seed=seed, jobs=jobs, command=_command()
        )
    records = list(found)
    if json:
        print_json([_summary(record) for record in records])
        return
    rows = [
        [
            record.dataset,
            f"{record.metrics['macro_f1']:.1f}",
            f"{record.metrics['micro_f1']:.1f}",
            "{:.1f}-{:.1f}".format(*record.metrics["interval"]),
            str(record.metrics["pairs"]["test"]),
        ]
        for record in records
    ]
    head = ["dataset", "macro F1", "micro F1", "95 % of micro", "test pairs"]
    print_table(head, rows, title=f"{system.name}, test part", right=tuple(head[1:]))


@app.command()
def mapping(
    model: Model = None,
    template: Template = None,
    pooling: Pooling = None,
    baseline: Baseline = None,
    settings: Settings = None,
    dataset: Datasets = None,
    data_dir: DataDir = None,
    runs: Runs = Path("runs"),
    name: Name = "",
    device: Device = None,
    json: Json = False,
) -> None:
    """Accuracy on relation mapping: which term of one domain stands for which of another?"""
    _check("mapping", (model, template, pooling), baseline, settings)
    from relvec.evaluation.mapping import DEFAULT_DATASET, load_problems
    from relvec.evaluation.suite import mapping_records

    problems = {each: load_problems(each, data_dir) for each in dataset or [DEFAULT_DATASET]}
    domains = [terms for several in problems.values() for one in several for terms in (one.source, one.target)]
    pairs = [pair for terms in domains for pair in permutations(terms, 2)]
    system = _system("mapping", model, template, pooling, baseline, settings, name, device, pairs, data_dir)
    records = list(mapping_records(system, problems, runs, command=_command()))
    if json:
        print_json([_summary(record) for record in records])
        return
    rows = [
        [record.dataset, f"{record.metrics['accuracy']:.1f}", f"{record.metrics['solved']:.1f}"] for record in records
    ]
    print_table(["dataset", "terms right", "problems right"], rows, title=system.name)


@app.command()
def loss(
    model: Annotated[str, typer.Option("--model", "-m", help="A model name, a folder or a hub id.")] = DEFAULT_MODEL,
    template: Template = None,
    pooling: Pooling = None,
    data: Annotated[str, typer.Option(help="Training data by name, file, folder or hub id.")] = "semeval2012",
    loss: Annotated[str, typer.Option(help="The loss, by name.")] = "triplet",
    data_dir: DataDir = None,
    runs: Runs = Path("runs"),
    name: Name = "",
    device: Device = None,
    json: Json = False,
) -> None:
    """Loss on the held-out pairs of training data, to choose prompts and recipes by."""
    from relvec.data.sources import load
    from relvec.evaluation.suite import loss_record

    relations = load(data, data_dir=data_dir)
    system = _system("loss", model, template, pooling, None, None, name, device, [], data_dir)
    record = loss_record(system, data, relations, runs, loss=loss, command=_command())
    if json:
        print_json(_summary(record))
    else:
        rows = [[key, f"{value:.4f}"] for key, value in record.metrics.items() if isinstance(value, float)]
        print_table(["measure", "value"], rows, title=f"{system.name} on {data}", right=("value",))


def _system(
    task: str,
    model: str | None,
    template: str | None,
    pooling: str | None,
    baseline: str | None,
    settings: list[str] | None,
    name: str,
    device: str | None,
    pairs: Iterable["Pair"],
    data_dir: Path | None,
) -> "System":
    """The model or the baseline that was asked for."""
    if baseline is None:
        from relvec.evaluation.systems import model_system

        source = model or DEFAULT_MODEL
        return model_system(source, template=template, pooling=pooling, name=name, device=device)
    from relvec.baselines.build import baseline_system

    chosen = chosen_settings(baseline, settings or [], task)
    return baseline_system(baseline, chosen, pairs, task=task, name=name, data_dir=data_dir, device=device)


def _check(task: str, model_options: Iterable[str | None], baseline: str | None, settings: list[str] | None) -> None:
    """Refuse what does not fit together before anything is read."""
    if baseline is None and settings:
        raise RelvecError("--set is for baselines; add --baseline, or leave it out.")
    if baseline is not None:
        if any(option is not None for option in model_options):
            raise RelvecError("--baseline stands alone; leave out --model, --template and --pooling.")
        chosen_settings(baseline, settings or [], task)


def _command() -> str:
    """The command as it was typed, to stand beside its numbers."""
    return shlex.join(["relvec", *sys.argv[1:]])


def _summary(record: "Record") -> dict[str, object]:
    return {
        "system": record.system,
        "dataset": record.dataset,
        "part": record.part,
        **record.settings,
        **record.metrics,
    }
