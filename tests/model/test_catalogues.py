"""The catalogue of a model, made of a few of the bundled relations."""

from pathlib import Path

import pytest

from relvec import RelBERT
from relvec.data.sources import load
from relvec.model import catalogues
from relvec.model.catalogues import CATALOGUE_COSINE, existing_catalogue, make_catalogue, own_catalogue
from relvec.model.model_check import PROBE_PAIRS, median_cosine

RELATIONS = load("bundled")[:8]


@pytest.fixture(autouse=True)
def few_relations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogues, "load", lambda source: RELATIONS)
    monkeypatch.setattr(catalogues, "bundled_groups", tuple)


def test_a_new_catalogue_knows_its_model_by_its_probes(tiny_folder: Path) -> None:
    model, other = (RelBERT.from_pretrained(tiny_folder, template=f"[h] {word} [t]") for word in ("is", "has"))
    probes = make_catalogue(model).probes
    assert median_cosine(model, PROBE_PAIRS, probes) >= CATALOGUE_COSINE > median_cosine(other, PROBE_PAIRS, probes)


def test_a_catalogue_in_the_cache_is_made_again_of_other_relations(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELVEC_CACHE", str(tmp_path))
    model = RelBERT.from_pretrained(tiny_folder)
    first = own_catalogue(model)
    again = existing_catalogue(model)
    assert again is not None
    assert again.relations == first.relations
    monkeypatch.setattr(catalogues, "load", lambda source: RELATIONS[:6])
    assert existing_catalogue(model) is None
    assert len(own_catalogue(model).relations) == 6
