"""relvec train: fine-tune a language model on rated pairs."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import create_model

from relvec.cli.options import DataDir, Json, with_shared_options
from relvec.cli.output import print_json, show
from relvec.errors import RelvecError, needed_for
from relvec.settings import Settings
from relvec.training.recipe import Recipe

_SHOWN = (
    *("data", "base", "template", "pooling", "prompt", "loss", "steps", "lora_rank", "seed"),
    *("exclude_categories", "exclude_relations", "exclude_benchmark_pairs"),
)
_FIELDS: dict[str, Any] = {name: (Recipe.model_fields[name].annotation, Recipe.model_fields[name]) for name in _SHOWN}
Shown = create_model("Shown", __base__=Settings, **_FIELDS)
"""The settings of a recipe that are options of their own; all others go by --set."""


@with_shared_options
def train(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the trained model.")] = Path("my-model"),
    config: Annotated[Path | None, typer.Option(help="A recipe file (TOML); options below change it.")] = None,
    *,
    shown: Shown,  # type: ignore[valid-type]
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any setting of a recipe, as name=value; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    data_dir: DataDir = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and print the size of the run.")] = False,
    json: Json = False,
) -> None:
    """Fine-tune a language model on rated pairs; the same command again resumes an interrupted run."""
    changes: dict[str, Any] = shown.model_dump(exclude_unset=True)  # type: ignore[attr-defined]
    for setting in settings or []:
        name, equals, value = setting.partition("=")
        if not equals:
            raise RelvecError(f"--set {setting} has no value; write --set name=value.")
        changes[name] = value
    recipe = (Recipe.from_toml(config) if config else Recipe()).changed(changes)
    with needed_for("Training", "train"):
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
