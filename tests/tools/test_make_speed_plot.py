"""Speeds on the pages, in the plot and in the catalogue are those that were measured."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from relvec.hub.catalogue import BUNDLED_MODELS, DEFAULT_MODEL

ROOT = Path(__file__).parents[2]


@pytest.fixture
def plot(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("make_speed_plot")


def test_the_plot_is_that_of_the_measurements(plot: Any, tmp_path: Path) -> None:
    plot.draw(plot.measured(), tmp_path / "speed.svg")
    assert (tmp_path / "speed.svg").read_text() == plot.PICTURE.read_text(), "run `make tables`"


def test_the_plot_names_every_model_and_way(plot: Any) -> None:
    text = plot.PICTURE.read_text()
    assert all(f">{row['model']}<" in text and row["way"] in text for row in plot.measured())


def test_speeds_of_the_catalogue_are_those_measured(plot: Any) -> None:
    pairs_per_second = {row["model"]: row["pairs_per_second"] for row in reversed(plot.measured())}
    exact = {row["model"]: row["pairs_per_second"] for row in plot.measured() if row["way"] == "torch float32"}
    pairs_per_second |= exact
    for name, speed in pairs_per_second.items():
        ratio = speed / pairs_per_second[DEFAULT_MODEL]
        assert BUNDLED_MODELS[name].measured.speed == pytest.approx(ratio, rel=0.25), name
