"""The catalogue of a model, made of a few of the bundled relations."""

from pathlib import Path

import numpy as np
import pytest

from relvec import RelBERT
from relvec.data.sources import load
from relvec.model import catalogues
from relvec.model.catalogues import make_catalogue, taught_catalogue

RELATIONS = load("bundled")[:8]


@pytest.fixture(autouse=True)
def few_relations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogues, "load", lambda source: RELATIONS)
    monkeypatch.setattr(catalogues, "bundled_groups", tuple)


def test_prototypes_of_a_catalogue_learn_from_the_teacher_that_is_given(tiny_folder: Path) -> None:
    model, other = (RelBERT.from_pretrained(tiny_folder, template=f"[h] {word} [t]") for word in ("is", "has"))
    other.catalogue = make_catalogue(other)
    made, alone, taught = make_catalogue(model), taught_catalogue(model, model), taught_catalogue(model, other)
    assert made.relations == alone.relations == taught.relations
    means = [each.prototypes.means for each in (made, alone, taught)]
    assert not np.array_equal(means[0], means[1])
    assert not np.array_equal(means[1], means[2])
    assert alone.probes.shape == (len(made.probes), model.dim)
