"""relvec distill: a small encoder learns the vectors of a large one."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from relvec.cli.options import DataDir, Device, Json
from relvec.cli.output import print_json, print_table
from relvec.errors import RelvecError
from relvec.hub.catalogue import DEFAULT_MODEL
from relvec.training.limits import LARGEST_SEED


def distill(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the student.")],
    teacher: Annotated[str, typer.Option(help="The model to learn from: a name, a folder or a hub id.")] = (
        DEFAULT_MODEL
    ),
    student: Annotated[str, typer.Option(help="The encoder to start from: a name, a folder or a hub id.")] = "minilm",
    template: Annotated[str | None, typer.Option(help="The student's template; by default the teacher's.")] = None,
    pooling: Annotated[str | None, typer.Option(help="The student's pooling; by default the teacher's.")] = None,
    pairs: Annotated[list[str] | None, typer.Option(help="A file of pairs; may be repeated.")] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(help="Relations whose pairs are taken, as in `relvec train`; bundled if there are no --pairs."),
    ] = None,
    wordnet: Annotated[Path | None, typer.Option(help="A folder with data.noun and its like: adds WordNet.")] = None,
    limit: Annotated[
        int, typer.Option(help="How many pairs at most; WordNet gives what the rest leaves free.")
    ] = 100_000,
    shuffled: Annotated[float, typer.Option(help="Random pairs of their words to add, as a share.")] = 0.2,
    one_direction: Annotated[bool, typer.Option("--one-direction", help="Do not add the pairs turned round.")] = False,
    exclude_benchmark_pairs: Annotated[
        bool, typer.Option("--exclude-benchmark-pairs", help="Leave out what the benchmarks of --data-dir have.")
    ] = False,
    steps: Annotated[int | None, typer.Option(help="How many steps to train, in place of epochs.")] = None,
    epochs: Annotated[float | None, typer.Option(help="How often each pair is met; by default 5.")] = None,
    batch_size: Annotated[int, typer.Option(help="Pairs in a step.")] = 128,
    lora: Annotated[int, typer.Option(help="Train an adapter of this rank; 0 for all weights.")] = 0,
    learning_rate: Annotated[
        float | None, typer.Option(help="The highest learning rate; by default 1e-4, or 1e-3 for an adapter.")
    ] = None,
    similarity_weight: Annotated[
        float, typer.Option(help="How much the similarities between pairs count beside the vectors.")
    ] = 10.0,
    evaluate_every: Annotated[int, typer.Option(help="Steps between two evaluations on held-out pairs.")] = 200,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Decides every random choice.")] = 0,
    data_dir: DataDir = None,
    device: Device = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and print the size of the run.")] = False,
    json: Json = False,
) -> None:
    """Teach a small encoder the vectors of a large one; the same command again goes on after an interruption."""
    if steps is not None and epochs is not None:
        raise RelvecError("--steps and --epochs both say how long to train; give one of them.")
    if steps is not None and steps < 1:
        raise RelvecError(f"--steps is {steps}; use 1 or more.")
    from relvec.data.overlap import benchmark_folder
    from relvec.data.sources import DEFAULT_SOURCE

    benchmarks = benchmark_folder(data_dir) if exclude_benchmark_pairs else None
    from relvec.distillation.distiller import Settings
    from relvec.distillation.pool import Sources
    from relvec.distillation.run import make_distiller, make_plan

    sources = Sources(
        files=tuple(pairs or ()),
        data=tuple(data or (() if pairs else (DEFAULT_SOURCE,))),
        wordnet=wordnet,
        data_dir=data_dir,
        limit=limit,
        shuffled=shuffled,
        both_directions=not one_direction,
        benchmarks=benchmarks,
    )
    settings = Settings(
        steps=steps or 0,
        epochs=5.0 if epochs is None else epochs,
        batch_size=batch_size,
        learning_rate=(1e-3 if lora else 1e-4) if learning_rate is None else learning_rate,
        lora_rank=lora,
        similarity_weight=similarity_weight,
        evaluate_every=evaluate_every,
        seed=seed,
    )
    distiller = make_distiller(
        teacher, student, output, sources, settings, template=template, pooling=pooling, device=device
    )
    if dry_run:
        plan = make_plan(distiller)
        if json:
            counts = {name.replace(" ", "_"): count for name, count in plan.counts.items()}
            print_json({**counts, **{name: value for name, value in asdict(plan).items() if name != "counts"}})
        else:
            print_table(["what", "how much"], plan.rows())
        return
    progress = distiller.fit()
    before, after = progress.held_out[0], progress.held_out[progress.best_step]
    if json:
        scores = {"correlation_before": before.correlation, "correlation": after.correlation}
        scores |= {"cosine_before": before.cosine, "cosine": after.cosine}
        print_json({"output": str(output), **scores, "step": progress.best_step})
        return
    typer.echo(
        f"correlation with the teacher's cosines {before.correlation:.4f} -> {after.correlation:.4f}, "
        f"cosine to its vectors {before.cosine:.4f} -> {after.cosine:.4f} at step {progress.best_step} -> {output}",
        err=True,
    )
