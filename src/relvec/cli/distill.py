"""relvec distill: a small encoder learns the vectors of a large one."""

from pathlib import Path
from typing import Annotated

import typer

from relvec.cli.options import BackendOption, DataDir, Device, Json, with_shared_options
from relvec.cli.output import print_json, show
from relvec.cli.train import plan_rows
from relvec.distillation.settings import DistillationSettings
from relvec.hub.catalogue import DEFAULT_MODEL


@with_shared_options
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
    one_direction: Annotated[bool, typer.Option("--one-direction", help="Do not add the reversed pairs.")] = False,
    exclude_benchmark_pairs: Annotated[
        bool, typer.Option("--exclude-benchmark-pairs", help="Leave out what the benchmarks of --data-dir have.")
    ] = False,
    *,
    settings: DistillationSettings,
    data_dir: DataDir = None,
    device: Device = None,
    backend: BackendOption = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and print the size of the run.")] = False,
    json: Json = False,
) -> None:
    """Teach a small encoder the vectors of a large one; the same command again resumes an interrupted run."""
    from relvec.data.overlap import benchmark_folder
    from relvec.data.sources import DEFAULT_SOURCE

    benchmarks = benchmark_folder(data_dir) if exclude_benchmark_pairs else None
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
    distiller = make_distiller(
        teacher, student, output, sources, settings, template=template, pooling=pooling, device=device, backend=backend
    )
    if dry_run:
        plan = make_plan(distiller)
        show(json, plan, ["what", "how much"], plan_rows(plan))
        return
    course = distiller.fit()
    before, after = course.first, course.best
    if json:
        scores = {"correlation_before": before["correlation"], "correlation": after["correlation"]}
        scores |= {"cosine_before": before["cosine"], "cosine": after["cosine"]}
        print_json({"output": str(output), **scores, "step": course.best_step})
        return
    typer.echo(
        f"correlation with the teacher's cosines {before['correlation']:.4f} -> {after['correlation']:.4f}, cosine to "
        f"its vectors {before['cosine']:.4f} -> {after['cosine']:.4f} at step {course.best_step} -> {output}",
        err=True,
    )
