"""`relvec models` shows what is known of each model, and no more."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from relvec.hub.catalogue import BASE_MODELS, BUNDLED_MODELS, Measured

Relvec = Callable[..., Any]


def test_models_show_what_was_measured(relvec: Relvec, monkeypatch: pytest.MonkeyPatch) -> None:
    name = next(iter(BUNDLED_MODELS))
    measured = Measured(speed=1, analogy_accuracy=76.54, scoring="bidirectional")
    monkeypatch.setitem(BUNDLED_MODELS, name, replace(BUNDLED_MODELS[name], measured=measured))
    monkeypatch.setitem(BASE_MODELS, "minilm", replace(BASE_MODELS["minilm"], measured=Measured()))
    head, *lines = (line.split("\t") for line in relvec("models").out.splitlines())
    shown = {row["name"]: row for row in (dict(zip(head, line, strict=True)) for line in lines)}
    assert (shown[name]["speed"], shown[name]["analogies (%)"]) == ("1x", "76.5 (bidirectional)")
    assert (shown["minilm"]["speed"], shown["minilm"]["analogies (%)"]) == ("-", "-")
    rows = {row["name"]: row for row in json.loads(relvec("models", "--json").out)}
    assert [rows[name][key] for key in ("speed", "analogy_accuracy", "scoring")] == [1, 76.54, "bidirectional"]
    assert [rows["minilm"][key] for key in ("speed", "analogy_accuracy", "scoring")] == [None, None, None]
