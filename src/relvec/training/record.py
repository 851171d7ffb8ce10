"""The recipe as a saved model tells it, and whether that is the recipe of a run."""

from pathlib import Path
from typing import Any

from relvec.model.stored import relbert_config
from relvec.training.recipe import Recipe


def recipe_record(recipe: Recipe, steps: int) -> dict[str, Any]:
    """The settings of a recipe, without those that say nothing, as they do by default; and the steps of the run.

    >>> record = recipe_record(Recipe().changed({"lora_rank": 0}), steps=150)
    >>> record["lora_rank"], record["seed"], "patience" in record
    (0, 0, False)
    """
    usual = Recipe().as_dict()
    settings = {name: value for name, value in recipe.as_dict().items() if value or value != usual[name]}
    return settings | {"steps": steps, "seed": recipe.seed}


def saved_recipe(folder: Path) -> dict[str, Any]:
    """The recipe that the model of a folder tells; empty where there is no model, or none with a record."""
    if not (folder / "config.json").is_file():
        return {}
    recipe: dict[str, Any] = relbert_config(folder).get("training", {}).get("recipe", {})
    return recipe


def is_recipe_of(recipe: Recipe, saved: dict[str, Any]) -> bool:
    """Whether a model that tells `saved` was trained by this recipe.

    >>> is_recipe_of(Recipe(), recipe_record(Recipe(), 150)), is_recipe_of(Recipe(), recipe_record(Recipe(), 9))
    (True, False)
    """
    steps = recipe.steps if recipe.epochs <= 0 else saved.get("steps", 0)
    wanted = recipe_record(recipe, steps)
    # Older records left out whatever is 0 or false.
    return saved == {name: value for name, value in wanted.items() if value or name in saved}
