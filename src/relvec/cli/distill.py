"""relvec distill: a small encoder learns the vectors of a large one."""

from pathlib import Path
from typing import Annotated, Any

import typer

from relvec.cli.options import BackendOption, DryRun, Dtype, Run, output_option, with_shared_options
from relvec.cli.output import plan_table, show
from relvec.distillation.pool import Sources
from relvec.distillation.settings import DistillationSettings
from relvec.hub.catalogue import DEFAULT_MODEL


@with_shared_options
def distill(
    output: Annotated[Path, output_option("The folder of the student.")],
    teacher: Annotated[str, typer.Option(help="The model to learn from: a name, a folder or a hub id.")] = (
        DEFAULT_MODEL
    ),
    student: Annotated[
        str, typer.Option(help="The encoder to start from: a name, a folder or a hub id; or static, for none.")
    ] = "minilm",
    word_vectors: Annotated[
        Path | None, typer.Option(help="A word2vec or GloVe file that a static student starts from.")
    ] = None,
    template: Annotated[str | None, typer.Option(help="The student's template; by default the teacher's.")] = None,
    pooling: Annotated[str | None, typer.Option(help="The student's pooling; by default the teacher's.")] = None,
    *,
    sources: Sources,
    one_direction: Annotated[bool, typer.Option("--one-direction", help="Do not add the reversed pairs.")] = False,
    exclude_benchmark_pairs: Annotated[
        bool, typer.Option("--exclude-benchmark-pairs", help="Leave out what the benchmarks of --data-dir have.")
    ] = False,
    settings: DistillationSettings,
    backend: BackendOption = "auto",
    dtype: Dtype = "float32",
    dry_run: DryRun = False,
    run: Run,
) -> None:
    """Train a small encoder on the vectors of a large one. The same command again resumes an interrupted run."""
    changes: dict[str, Any] = {"data_dir": run.data_dir, "both_directions": not one_direction}
    if exclude_benchmark_pairs:
        from relvec.data.overlap import benchmark_folder

        changes["benchmarks"] = benchmark_folder(run.data_dir)
    from relvec.distillation.distiller import make_distiller

    of_student: dict[str, Any] = {"template": template, "pooling": pooling, "word_vectors": word_vectors}
    of_teacher: dict[str, Any] = {"backend": backend, "dtype": dtype, "device": run.device}
    distiller = make_distiller(teacher, student, output, sources.changed(changes), settings, **of_student, **of_teacher)
    if dry_run:
        plan = distiller.plan()
        show(run.json, plan, plan_table(plan))
        return
    course = distiller.fit()
    before, after = course.first, course.best
    scores = {"correlation_before": before["correlation"], "correlation": after["correlation"]}
    scores |= {"cosine_before": before["cosine"], "cosine": after["cosine"]}
    known = " (finished before)" if course.was_finished else ""
    note = (
        f"correlation with the teacher's cosines {before['correlation']:.4f} -> {after['correlation']:.4f}, cosine to "
        f"its vectors {before['cosine']:.4f} -> {after['cosine']:.4f} at step {course.best_step}{known} -> {output}"
    )
    show(run.json, {"output": str(output), **scores, "step": course.best_step}, note=note)
