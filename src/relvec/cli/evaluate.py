"""relvec evaluate: a model or a baseline on the benchmarks."""

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Annotated

import typer

from relvec.cli.evaluate_options import (
    Chosen,
    Datasets,
    Pooling,
    Run,
    Template,
    summary,
    typed_command,
)
from relvec.cli.options import Model, with_shared_options
from relvec.cli.output import print_json, print_table
from relvec.errors import RelvecError
from relvec.hub.catalogue import DEFAULT_MODEL
from relvec.io.paths import expanded
from relvec.training.limits import LARGEST_SEED

if TYPE_CHECKING:
    from relvec.data.benchmarks.analogy import Part, Question
    from relvec.evaluation.runner import Fallback
    from relvec.similarity import Scoring

app = typer.Typer(help="Score a model or a baseline on the benchmarks.", no_args_is_help=True)


@app.command()
@with_shared_options
def analogy(
    chosen: Chosen,
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
            help="Answers for unknown words: a system's folder below --runs, or FILE:COLUMN.",
            metavar="FOLDER|FILE:COLUMN",
        ),
    ] = None,
    run: Run,
) -> None:
    """Accuracy on analogy questions: SAT, U2, U4, Google, BATS."""
    chosen.check("analogy")
    from relvec.data.benchmarks.analogy import check_part, datasets_with, load_questions
    from relvec.evaluation.analogy import check_out_of_vocabulary
    from relvec.evaluation.runner import analogy_records
    from relvec.similarity import check_scoring

    ways = [check_scoring(way) for way in dict.fromkeys(scoring or ["forward"])]
    policy = check_out_of_vocabulary(out_of_vocabulary)
    wanted = check_part(part)
    questions = {each: load_questions(each, wanted, run.data_dir) for each in dataset or datasets_with(wanted)}
    if (policy == "fallback") != (fallback is not None):
        raise RelvecError("--out-of-vocabulary fallback and --fallback go together; give both or neither.")
    answers = {way: None if fallback is None else _fallback(fallback, questions, wanted, way) for way in ways}
    pairs = [pair for asked in questions.values() for one in asked for pair in (one.stem, *one.choices)]
    system = chosen.system("analogy", run, pairs)
    records = [
        record
        for way in ways
        for record in analogy_records(
            system,
            questions,
            wanted,
            run.runs,
            scoring=way,
            out_of_vocabulary=policy,
            fallback=answers[way],
            command=typed_command(),
        )
    ]
    run.show(
        records,
        f"{system.name}, {wanted} part",
        {
            "dataset": lambda record: record.dataset,
            "scoring": lambda record: str(record.settings["scoring"]),
            "accuracy": lambda record: f"{record.metrics['accuracy']:.1f}",
            "95 %": lambda record: "{:.1f}-{:.1f}".format(*record.metrics["interval"]),
            "questions": lambda record: str(record.metrics["questions"]),
            "unknown": lambda record: str(record.metrics["out_of_vocabulary"]),
            "ties": lambda record: str(record.metrics["ties"]),
        },
    )


@app.command()
@with_shared_options
def classification(
    chosen: Chosen,
    *,
    dataset: Datasets = None,
    fine_tune: Annotated[
        bool, typer.Option("--fine-tune", help="Train the encoder with a linear head instead; reported apart.")
    ] = False,
    exclude_label: Annotated[
        list[str] | None, typer.Option(help="A class to leave out, such as EVALution's `part of`; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Decides the classifier's first weights.")] = 0,
    jobs: Annotated[int | None, typer.Option(min=1, help="Classifiers trained at once; by default one a core.")] = None,
    run: Run,
) -> None:
    """F1 on lexical relation classification: BLESS, CogALexV, EVALution, K&H+N, ROOT09."""
    if fine_tune and chosen.baseline is not None:
        raise RelvecError("A baseline has no encoder to fine-tune; leave out --fine-tune, or give --model.")
    chosen.check("classification")
    from relvec.data.benchmarks.classification import CLASSIFICATION_DATASETS, load_labelled
    from relvec.evaluation.fine_tuning import FineTuning
    from relvec.evaluation.runner import classification_records, fine_tuning_records

    datasets = {each: load_labelled(each, run.data_dir) for each in dataset or CLASSIFICATION_DATASETS}
    pairs = [pair for parts in datasets.values() for part in parts.values() for pair in part.pairs]
    excluded, command = exclude_label or (), typed_command()
    system = chosen.system("classification", run, pairs)
    if fine_tune:
        recipe = FineTuning(seed=seed)
        found = fine_tuning_records(system, datasets, run.runs, exclude_labels=excluded, recipe=recipe, command=command)
    else:
        found = classification_records(
            system, datasets, run.runs, exclude_labels=excluded, seed=seed, jobs=jobs, command=command
        )
    run.show(
        list(found),
        f"{system.name}, test part",
        {
            "dataset": lambda record: record.dataset,
            "macro F1": lambda record: f"{record.metrics['macro_f1']:.1f}",
            "micro F1": lambda record: f"{record.metrics['micro_f1']:.1f}",
            "95 % of micro": lambda record: "{:.1f}-{:.1f}".format(*record.metrics["interval"]),
            "test pairs": lambda record: str(record.metrics["pairs"]["test"]),
        },
    )


@app.command()
@with_shared_options
def mapping(chosen: Chosen, *, dataset: Datasets = None, run: Run) -> None:
    """Accuracy on relation mapping: which term of one domain stands for which of another?"""
    chosen.check("mapping")
    from relvec.data.benchmarks.mapping import DEFAULT_DATASET, load_problems
    from relvec.evaluation.runner import mapping_records

    problems = {each: load_problems(each, run.data_dir) for each in dataset or [DEFAULT_DATASET]}
    domains = [terms for several in problems.values() for one in several for terms in (one.source, one.target)]
    system = chosen.system("mapping", run, [pair for terms in domains for pair in permutations(terms, 2)])
    run.show(
        list(mapping_records(system, problems, run.runs, command=typed_command())),
        system.name,
        {
            "dataset": lambda record: record.dataset,
            "terms right": lambda record: f"{record.metrics['accuracy']:.1f}",
            "problems right": lambda record: f"{record.metrics['solved']:.1f}",
            "pairs": lambda record: str(record.metrics["pairs"]),
            "unknown": lambda record: str(record.metrics["out_of_vocabulary"]),
        },
    )


@app.command()
@with_shared_options
def loss(
    *,
    model: Model = DEFAULT_MODEL,
    template: Template = None,
    pooling: Pooling = None,
    data: Annotated[str, typer.Option(help="Training data by name, file, folder or hub id.")] = "semeval2012",
    loss: Annotated[str, typer.Option(help="triplet, infonce, infoloob or contrastive.")] = "triplet",
    run: Run,
) -> None:
    """Loss on the held-out pairs of training data, to choose prompts and recipes by."""
    from relvec.data.sources import load
    from relvec.evaluation.runner import loss_record

    relations = load(data, data_dir=run.data_dir)
    system = Chosen(model, template, pooling).system("loss", run)
    record = loss_record(system, data, relations, run.runs, loss=loss, command=typed_command())
    if run.json:
        print_json(summary(record))
    else:
        rows = [[key, f"{value:.4f}"] for key, value in record.metrics.items() if isinstance(value, float)]
        print_table(["measure", "value"], rows, title=f"{system.name} on {data}")


def _fallback(
    given: str, questions: Mapping[str, Sequence["Question"]], part: "Part", scoring: "Scoring"
) -> "Fallback":
    """The answers of a system's folder below the runs, or of a column of a file."""
    from relvec.baselines.saved_predictions import SavedPredictions, answers_of_run
    from relvec.evaluation.portable import last_part
    from relvec.evaluation.runner import Fallback

    folder = expanded(given)
    if folder.is_dir():
        found = {each: answers_of_run(folder, each, part, asked, scoring) for each, asked in questions.items()}
        return Fallback(folder.resolve().name, found)
    path, _, column = given.rpartition(":")
    if not path or not column:
        fix = "write FILE:COLUMN, or a system's folder below --runs"
        raise RelvecError(f"--fallback {given} is no folder and names no column; {fix}.")
    found = {each: SavedPredictions(path, column, each, part).answers(asked) for each, asked in questions.items()}
    return Fallback(last_part(given), found)
