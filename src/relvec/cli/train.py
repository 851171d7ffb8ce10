"""relvec train: fine-tune a language model on rated pairs."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from relvec.cli.options import LOSS_NAMES, DataDir, Json
from relvec.cli.output import print_json, show
from relvec.errors import RelvecError, needed_for


def train(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the trained model.")] = Path("my-model"),
    config: Annotated[Path | None, typer.Option(help="A recipe file (TOML); options below change it.")] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(help="bundled (the default), semeval2012, a file, a folder or a hub dataset; may be repeated."),
    ] = None,
    base: Annotated[
        str | None, typer.Option(help="The encoder to start from: a name (by default mpnet), a folder or a hub id.")
    ] = None,
    template: Annotated[
        str | None, typer.Option(help=r"1 to 5 for the paper's, or a text; by default `\[h] <mask> \[t]`.")
    ] = None,
    pooling: Annotated[str | None, typer.Option(help="average, average_no_mask or mask (the default).")] = None,
    prompt: Annotated[str | None, typer.Option(help="The folder of a learned prompt (`relvec prompt`).")] = None,
    loss: Annotated[str | None, typer.Option(help=f"{LOSS_NAMES}; by default contrastive.")] = None,
    steps: Annotated[int | None, typer.Option(help="How many steps to train; by default 150.")] = None,
    lora: Annotated[
        int | None,
        typer.Option(
            help="The rank of the adapter, by default 16; 0 trains all weights, with a learning rate to suit."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Decides every random choice; by default 0.")] = None,
    exclude_category: Annotated[
        list[str] | None, typer.Option(help="A category to leave out; may be repeated.")
    ] = None,
    exclude_relation: Annotated[
        list[str] | None, typer.Option(help="A relation to leave out; may be repeated.")
    ] = None,
    exclude_benchmark_pairs: Annotated[
        bool, typer.Option("--exclude-benchmark-pairs", help="Leave out what the benchmarks of --data-dir have.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any setting of a recipe, as name=value; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    data_dir: DataDir = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and print the size of the run.")] = False,
    json: Json = False,
) -> None:
    """Fine-tune a language model on rated pairs; the same command again resumes an interrupted run."""
    changes: dict[str, Any] = {
        "data": data,
        "base": base,
        "template": template,
        "pooling": pooling,
        "prompt": prompt,
        "loss": loss,
        "steps": steps,
        "lora_rank": lora,
        "seed": seed,
        "exclude_categories": exclude_category,
        "exclude_relations": exclude_relation,
        "exclude_benchmark_pairs": exclude_benchmark_pairs or None,  # a recipe may say so itself
    }
    for setting in settings or []:
        name, equals, value = setting.partition("=")
        if not equals:
            raise RelvecError(f"--set {setting} has no value; write --set name=value.")
        changes[name] = value
    from relvec.training.recipe import Recipe

    recipe = (Recipe.from_toml(config) if config else Recipe()).changed(
        {name: value for name, value in changes.items() if value is not None}
    )
    with needed_for("Training"):
        from relvec.training import run
    if dry_run:
        plan = run.plan_training(recipe, output, data_dir)
        run.leave_processes()
        if not _speaks():
            return
        show(json, plan, ["what", "how much"], plan_rows(plan))
        return
    course = run.train(recipe, output, data_dir)
    run.leave_processes()
    if not _speaks():
        return
    before, after, step = course.first["valid loss"], course.best["valid loss"], course.best_step
    if json:
        print_json({"output": str(output), "validation_loss_before": before, "validation_loss": after, "step": step})
    else:
        typer.echo(f"validation loss {before:.4f} -> {after:.4f} at step {step} -> {output}", err=True)


def plan_rows(plan: dict[str, float]) -> list[list[str]]:
    """The size of a run as a table.

    >>> plan_rows({"train_pairs": 1264, "seconds": 71.3})
    [['train pairs', '1,264'], ['seconds', '71']]
    """
    return [[name.replace("_", " "), f"{round(value):,}"] for name, value in plan.items()]


def _speaks() -> bool:
    """Of several processes that share a run, one prints."""
    return os.environ.get("RANK", "0") == "0"
