"""relvec evaluate: a model or a baseline on the benchmarks."""

from typing import Annotated

import typer

from relvec.cli.evaluate_options import Chosen, Datasets, Pooling, Run, Template
from relvec.cli.options import Model, SeedOption, with_shared_options
from relvec.errors import RelvecError
from relvec.hub.catalogue import DEFAULT_MODEL

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
            help="Answers for unknown words: a system in --runs, or FILE:COLUMN.", metavar="SYSTEM|FILE:COLUMN"
        ),
    ] = None,
    run: Run,
) -> None:
    """Accuracy on analogy questions: SAT, U2, U4, Google, BATS."""
    chosen.check("analogy")
    from relvec.evaluation.analogy import Analogy

    other = None
    if fallback:
        from relvec.baselines import saved_predictions

        other = saved_predictions.fallback(fallback, run.runs)
    tasks = [
        Analogy(
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
    chosen: Chosen,
    *,
    dataset: Datasets = None,
    fine_tune: Annotated[
        bool, typer.Option("--fine-tune", help="Train the encoder with a linear head instead; reported apart.")
    ] = False,
    exclude_label: Annotated[
        list[str] | None, typer.Option(help="A class to leave out, such as EVALution's `part of`; may be repeated.")
    ] = None,
    seed: SeedOption = 0,
    jobs: Annotated[int | None, typer.Option(min=1, help="Classifiers trained at once; by default one a core.")] = None,
    run: Run,
) -> None:
    """F1 on lexical relation classification: BLESS, CogALexV, EVALution, K&H+N, ROOT09."""
    if fine_tune and chosen.baseline is not None:
        raise RelvecError("A baseline has no encoder to fine-tune; leave out --fine-tune, or give --model.")
    chosen.check("classification")
    from relvec.evaluation.classification import Classification

    fine_tuning = None
    if fine_tune:
        from relvec.evaluation.fine_tuning import FineTuning

        fine_tuning = FineTuning(seed=seed)
    task = Classification(exclude_labels=exclude_label or (), seed=seed, jobs=jobs, fine_tuning=fine_tuning)
    run.evaluate([task], chosen, dataset or [])


@app.command()
@with_shared_options
def mapping(chosen: Chosen, *, dataset: Datasets = None, run: Run) -> None:
    """Accuracy on relation mapping: which term of one domain stands for which of another?"""
    chosen.check("mapping")
    from relvec.evaluation.mapping import RelationMapping

    run.evaluate([RelationMapping()], chosen, dataset or [])


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
    from relvec.evaluation.validation_loss import ValidationLoss

    run.evaluate([ValidationLoss(loss=loss)], Chosen(model, template, pooling), [data])
