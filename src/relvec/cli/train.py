"""relvec train: fine-tune a language model on rated pairs."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import create_model

from relvec.cli.options import DataDir, DryRun, Json, output_option, with_shared_options
from relvec.cli.output import Table, plan_table, show
from relvec.errors import needed_for
from relvec.settings import Settings, named_values
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
    output: Annotated[Path, output_option("The folder of the trained model.")] = Path("my-model"),
    config: Annotated[Path | None, typer.Option(help="A recipe file (TOML); options below change it.")] = None,
    *,
    shown: Shown,  # type: ignore[valid-type]
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any setting of a recipe, as name=value; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    data_dir: DataDir = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Fine-tune a language model on rated pairs. The same command again resumes an interrupted run."""
    changes: dict[str, Any] = shown.model_dump(exclude_unset=True)  # type: ignore[attr-defined]
    changes |= named_values(settings or [])
    recipe = (Recipe.from_toml(config) if config else Recipe()).changed(changes)
    with needed_for("Training", "train"):
        from relvec.training import run
    found: dict[str, Any]
    tables: list[Table] = []
    note = ""
    if dry_run:
        found = run.plan_training(recipe, output, data_dir)
        tables = [plan_table(found)]
    else:
        course = run.train(recipe, output, data_dir)
        before, after, step = course.first["valid loss"], course.best["valid loss"], course.best_step
        found = {"output": str(output), "validation_loss_before": before, "validation_loss": after, "step": step}
        known = " (finished before)" if course.was_finished else ""
        lowered = f"{before:.4f} -> {after:.4f} at step {step}" if step else f"{before:.4f}, not lowered by training"
        note = f"validation loss {lowered}{known} -> {output}"
    run.leave_processes()
    if os.environ.get("RANK", "0") == "0":  # of several processes that share a run, one prints
        show(json, found, *tables, note=note)
