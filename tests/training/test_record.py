from typing import Any

import pytest

from relvec.training.recipe import Recipe
from relvec.training.record import is_recipe_of, recipe_record

UNUSUAL: dict[str, Any] = {"lora_rank": 0, "weight_decay": 0.0, "dropout": False, "warmup_steps": 0}


def test_a_setting_of_zero_that_is_not_the_default_is_recorded() -> None:
    record = recipe_record(Recipe().changed(UNUSUAL), 150)
    assert UNUSUAL.items() <= record.items()
    assert not {"epochs", "patience", "threshold", "exclude_categories"} & record.keys()


@pytest.mark.parametrize("changes", [{}, UNUSUAL, {"epochs": 2.0}, {"threshold": 0.0}, {"seed": 3}])
def test_a_recipe_knows_the_models_it_made(changes: dict[str, Any]) -> None:
    recipe = Recipe().changed(changes)
    record = recipe_record(recipe, 900 if recipe.epochs else recipe.steps)
    assert is_recipe_of(recipe, record)
    older = {name: value for name, value in record.items() if value or name == "seed"}
    assert is_recipe_of(recipe, older)
    for other in ({"lora_rank": 2}, {"weight_decay": 0.5}, {"steps": 7}, {"seed": 9}, {"parents": True}):
        assert not is_recipe_of(recipe.changed(other), record)
        assert not is_recipe_of(recipe.changed(other), older)


def test_no_recipe_made_a_model_without_a_record() -> None:
    assert not is_recipe_of(Recipe(), {})
