from pathlib import Path
from typing import Any

import pytest

from relvec import RelvecError
from relvec.training.recipe import Recipe


def test_text_becomes_the_type_of_the_setting() -> None:
    recipe = Recipe().changed({"steps": "80", "learning_rate": "1e-5", "dropout": "false", "threshold": "0.5"})
    assert (recipe.steps, recipe.learning_rate, recipe.dropout, recipe.threshold) == (80, 1e-5, False, 0.5)


def test_a_text_stays_a_text_whatever_it_says() -> None:
    assert Recipe().changed({"prompt": "true"}).prompt == "true"


def test_templates_and_categories_may_be_numbers_and_places_paths() -> None:
    recipe = Recipe().changed({"template": 4, "exclude_categories": [1, "2"], "base": Path("model")})
    assert (recipe.template, recipe.exclude_categories, recipe.base) == ("4", ["1", "2"], "model")


def test_a_loss_has_numbers_and_switches() -> None:
    recipe = Recipe().changed({"loss_settings.margin": "0.5", "loss_settings.same_category_negatives": "false"})
    assert recipe.loss_settings == {"margin": 0.5, "same_category_negatives": False}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rat": 1}, "did you mean 'learning_rate'"),
        ({"steps": "many"}, "steps cannot be 'many'"),
        ({"steps": 2.5}, "steps cannot be 2.5"),
        ({"steps": "inf"}, "steps cannot be 'inf'"),
        ({"steps": 0}, "no steps"),
        ({"epochs": "nan"}, "epochs cannot be 'nan'; give a finite number"),
        ({"learning_rate": float("inf")}, "learning_rate cannot be inf; give a finite number"),
        ({"threshold": float("nan")}, "threshold cannot be nan; give a finite number"),
        ({"threshold": True}, "threshold cannot be True; give a finite number"),
        ({"base": ["a", "b"]}, r"base cannot be \['a', 'b'\]; give a text"),
        ({"base": 3}, "base cannot be 3; give a text"),
        ({"loss": {"a": 1}}, "loss cannot be {'a': 1}; give a text"),
        ({"data": {"a": 1}}, "data cannot be {'a': 1}; give a list"),
        ({"data": [["a"]]}, r"data cannot be \[\['a'\]\]; give a list"),
        ({"loss_settings.margin": True}, "loss_settings.margin cannot be True; give a finite number"),
        ({"loss_settings": {"temperature": float("inf")}}, "loss_settings.temperature cannot be inf"),
        ({"loss_settings.same_category_negatives": 0.5}, "cannot be 0.5; give true or false"),
        ({"prompt": "found", "base": "mpnet"}, "The learned prompt found decides the base; leave it out"),
        ({"schedule": "cosine"}, "choose one of linear, constant"),
        ({"dropout": "maybe"}, "dropout cannot be"),
        ({"relations_per_batch": 1}, "at least 2 relations"),
        ({"evaluate_every": 0}, "evaluate_every is 0; use 1 or more"),
        ({"loss_settings.margin": "wide"}, "loss_settings.margin cannot be 'wide'"),
        ({"loss_settings": "x", "loss_settings.margin": 1}, "loss_settings cannot be 'x'; give numbers by name"),
        ({"learning_rate": 0}, "above 0"),
        ({"steps": "true"}, "steps cannot be 'true'; give a whole number"),
        ({"steps": True}, "steps cannot be True; give a whole number"),
        ({"template": True}, "template cannot be True; give a text"),
        ({"seed": 2**32}, "seed is 4294967296; use 4294967295 or less"),
        ({"frozen_layers": 2}, "set lora_rank to 0"),
        ({"mixed_precision": "fp16"}, "choose one of no, bf16"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RelvecError, match=message):
        Recipe().changed(settings)


def test_the_learning_rate_follows_the_rank_unless_it_is_given(tmp_path: Path) -> None:
    assert Recipe().changed({"lora_rank": 8}).learning_rate == 1e-3
    assert Recipe().changed({"lora_rank": "0"}).learning_rate == 3e-5
    assert Recipe().changed({"lora_rank": 0}).changed({"lora_rank": 8}).learning_rate == 1e-3
    assert Recipe().changed({"lora_rank": 0, "learning_rate": 1e-3}).learning_rate == 1e-3
    (tmp_path / "my.toml").write_text("learning_rate = 2e-5")
    assert Recipe.from_toml(tmp_path / "my.toml").changed({"lora_rank": 0}).learning_rate == 2e-5
    (tmp_path / "full.toml").write_text("lora_rank = 0")
    assert Recipe.from_toml(tmp_path / "full.toml").changed({"steps": 3}).learning_rate == 3e-5


@pytest.mark.parametrize("setting", ["base", "template", "pooling"])
def test_what_the_prompt_of_a_recipe_decides_cannot_be_changed_later(setting: str) -> None:
    with pytest.raises(RelvecError, match=f"The learned prompt found decides the {setting}; leave it out"):
        Recipe(prompt="found").changed({setting: "average"})
    assert Recipe(prompt="found").changed({"prompt": "", "base": "minilm"}).base == "minilm"


def test_every_recipe_of_the_documentation_loads() -> None:
    recipes = list((Path(__file__).parents[2] / "docs" / "recipes").glob("*.toml"))
    assert recipes
    for path in recipes:
        assert Recipe.from_toml(path) != Recipe()


@pytest.mark.parametrize(("content", "message"), [("loss =", "is not TOML"), ("lss = 'x'", "did you mean 'loss'")])
def test_a_broken_recipe_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "my.toml").write_text(content)
    with pytest.raises(RelvecError, match=message) as error:
        Recipe.from_toml(tmp_path / "my.toml")
    assert "my.toml" in str(error.value)
