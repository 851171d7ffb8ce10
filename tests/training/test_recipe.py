import json
from pathlib import Path
from typing import Any

import pytest

from relvec import RelvecError
from relvec.training.recipe import Recipe, recipe_record

ROOT = Path(__file__).parents[2]
UNUSUAL: dict[str, Any] = {"lora_rank": 0, "weight_decay": 0.0, "dropout": False, "warmup_steps": 0}


def test_text_becomes_the_type_of_the_setting() -> None:
    recipe = Recipe().changed({"steps": "80", "learning_rate": "1e-5", "dropout": "false", "threshold": "0.5"})
    assert (recipe.steps, recipe.learning_rate, recipe.dropout, recipe.threshold) == (80, 1e-5, False, 0.5)


def test_templates_and_categories_may_be_numbers_and_places_paths() -> None:
    recipe = Recipe().changed({"template": 4, "exclude_categories": [1, "2"], "base": Path("model")})
    assert (recipe.template, recipe.exclude_categories, recipe.base) == ("4", ["1", "2"], "model")


def test_a_loss_has_numbers_and_switches() -> None:
    recipe = Recipe().changed({"loss_settings.temperature": "0.5", "loss_settings.same_category_negatives": "false"})
    assert recipe.loss_settings == {"temperature": 0.5, "same_category_negatives": False}
    assert recipe.changed({"loss_settings.temperature": 0.1}).loss_settings["same_category_negatives"] is False


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rat": 1}, "did you mean 'learning_rate'"),
        ({"steps": "many"}, "steps is 'many'; give a whole number"),
        ({"steps": 0}, "no steps"),
        ({"threshold": float("nan")}, "threshold is nan; give a finite number"),
        ({"loss": "hinge"}, "Unknown loss 'hinge'"),
        ({"loss_settings.margin": 0.5}, "loss contrastive: There is no setting 'margin'; use one of temperature"),
        ({"loss_settings": {"temperature": 0}}, "temperature is 0; use a number above 0"),
        ({"loss_settings.same_category_negatives": 0.5}, "same_category_negatives is 0.5; give true or false"),
        ({"prompt": "found", "base": "mpnet"}, "The learned prompt found decides the base; leave it out"),
        ({"schedule": "cosine"}, "choose linear, constant or cooldown"),
        ({"relations_per_batch": 1}, "relations_per_batch is 1; use 2 or more"),
        ({"learning_rate": 0}, "above 0"),
        ({"seed": 2**32}, "seed is 4294967296; use 4294967295 or less"),
        ({"base_dtype": "bfloat16", "lora_rank": 0}, "base_dtype is bfloat16, too coarse to train; set lora_rank"),
        ({"frozen_layers": 2}, "set lora_rank to 0"),
        ({"parents": True, "loss": "triplet"}, "parents is for losses without triples, unlike triplet; leave it out"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RelvecError, match=message):
        Recipe().changed(settings)


def test_the_learning_rate_follows_the_rank_unless_it_is_given(tmp_path: Path) -> None:
    assert Recipe(lora_rank=8).learning_rate == 1e-3
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


def test_a_recipe_of_the_version_before_is_read() -> None:
    folder = ROOT / "tests/compatibility/written_before"
    stored = json.loads((folder / "adapter/config.json").read_text())["relbert_config"]["training"]["recipe"]
    recipe = Recipe.from_toml(folder / "recipe.toml")
    assert Recipe.checked(stored) == recipe


def test_every_recipe_of_the_documentation_loads() -> None:
    recipes = list((ROOT / "docs" / "recipes").glob("*.toml"))
    assert recipes
    for path in recipes:
        assert Recipe.from_toml(path) != Recipe()


@pytest.mark.parametrize(("content", "message"), [("loss =", "is not TOML"), ("lss = 'x'", "did you mean 'loss'")])
def test_a_broken_recipe_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "my.toml").write_text(content)
    with pytest.raises(RelvecError, match=message) as error:
        Recipe.from_toml(tmp_path / "my.toml")
    assert "my.toml" in str(error.value)


def test_a_setting_of_zero_that_is_not_the_default_is_recorded() -> None:
    record = recipe_record(Recipe().changed(UNUSUAL), 150)
    assert UNUSUAL.items() <= record.items()
    assert not {"epochs", "patience", "threshold", "exclude_categories"} & record.keys()
