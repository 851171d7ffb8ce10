"""The tables of the pages are made from the code, column by column."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from relvec.training.recipe import Recipe

ROOT = Path(__file__).parents[2]


@pytest.fixture
def make_tables(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("make_tables")


def test_every_setting_of_a_recipe_says_what_it_is(make_tables: Any) -> None:
    head, *rows = make_tables.settings()
    assert [row[0] for row in rows] == [f"`{name}`" for name in Recipe.model_fields]
    assert all(len(row) == len(head) and row[2] for row in rows)


def test_every_loss_lists_its_settings(make_tables: Any) -> None:
    settings = {row[0]: row[2] for row in make_tables.losses()[1:]}
    assert settings["`triplet`"] == "`margin` (1.0)"
    assert settings["`classification`"] == "-"
    assert settings["`contrastive`"] == "`temperature` (0.05), `same_category_negatives` (True)"
