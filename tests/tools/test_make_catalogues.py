"""The catalogue of a model, made of a few of the bundled relations and taught by another model."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relvec import RelBERT
from relvec.data.sources import load
from relvec.model import catalogues

RELATIONS = load("bundled")[:8]


@pytest.fixture
def make_catalogues(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "tools")
    tool = importlib.import_module("make_catalogues")
    for module in (tool, catalogues):
        monkeypatch.setattr(module, "load", lambda source: RELATIONS)
        monkeypatch.setattr(module, "bundled_groups", tuple)
    return tool


def test_prototypes_of_a_catalogue_learn_from_the_teacher_that_is_given(
    make_catalogues: Any, tiny_folder: Path
) -> None:
    model, other = (RelBERT.from_pretrained(tiny_folder, template=f"[h] {word} [t]") for word in ("is", "has"))
    other.catalogue = catalogues.make_catalogue(other)
    made = catalogues.make_catalogue(model)
    alone, taught = (make_catalogues.taught_catalogue(model, teacher) for teacher in (model, other))
    assert made.relations == alone.relations == taught.relations
    means = [each.prototypes.means for each in (made, alone, taught)]
    assert not np.array_equal(means[0], means[1])
    assert not np.array_equal(means[1], means[2])
