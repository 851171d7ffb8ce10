"""The catalogue of a model, made of a few of the bundled relations."""

from pathlib import Path

import numpy as np
import pytest

from relvec import RelBERT
from relvec.data.sources import load
from relvec.model import catalogues
from relvec.model.catalogues import cached_catalogue, catalogue_in_cache, make_catalogue, taught_catalogue

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


def test_a_catalogue_in_the_cache_is_made_again_of_other_relations(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELVEC_CACHE", str(tmp_path))
    model = RelBERT.from_pretrained(tiny_folder)
    first = cached_catalogue(model)
    again = catalogue_in_cache(model)
    assert again is not None
    assert again.relations == first.relations
    monkeypatch.setattr(catalogues, "load", lambda source: RELATIONS[:6])
    assert catalogue_in_cache(model) is None
    assert len(cached_catalogue(model).relations) == 6
