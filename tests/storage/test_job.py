from pathlib import Path

import numpy as np
import pytest

from relvec import RelBERT, RelvecError
from relvec.index import build_index
from relvec.io.vectors import FORMATS
from relvec.model.cached_vectors import ModelVectors, embed_to_file

PAIRS = [("Paris", "France"), ("cup", "tea")]


def test_embedding_again_leaves_the_file_and_spares_that_of_other_pairs(tiny_folder: Path, tmp_path: Path) -> None:
    model, output = RelBERT.from_pretrained(tiny_folder), tmp_path / "v.npz"
    embed_to_file(model, PAIRS, output)
    before = output.read_bytes()
    assert embed_to_file(model, PAIRS, output) == (0, 2)
    for other in (PAIRS[:1], [*PAIRS, ("new", "pair")]):
        with pytest.raises(RelvecError, match="belongs to a run with another base, other settings or other data"):
            embed_to_file(model, other, output)
    assert output.read_bytes() == before


@pytest.mark.parametrize("ending", FORMATS)
def test_a_file_is_known_again_without_the_cache(
    ending: str, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, output, pairs = RelBERT.from_pretrained(tiny_folder), tmp_path / f"v{ending}", [*PAIRS, PAIRS[0]]
    embed_to_file(model, pairs, output, normalize=True)
    before = output.read_bytes()
    monkeypatch.setenv("RELVEC_CACHE", str(tmp_path / "empty"))
    assert embed_to_file(model, pairs, output, normalize=True) == (2, 0)
    monkeypatch.setenv("RELVEC_CACHE", str(tmp_path / "empty too"))
    with pytest.raises(RelvecError, match="belongs to a run with another base"):
        embed_to_file(model, pairs, output)
    assert output.read_bytes() == before


@pytest.mark.parametrize("ending", [ending for ending in FORMATS if ending != ".npy"])
def test_a_file_of_another_model_or_of_other_pairs_is_refused_before_all_is_encoded(
    ending: str, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, output = RelBERT.from_pretrained(tiny_folder), tmp_path / f"v{ending}"
    embed_to_file(model, PAIRS, output)
    monkeypatch.setattr(ModelVectors, "prepare", lambda *_, **__: pytest.fail("encoded in vain"))
    monkeypatch.setenv("RELVEC_CACHE", str(tmp_path / "empty"))
    for other, pairs in ((model, [("new", "pair")]), (RelBERT.from_pretrained(tiny_folder, pooling="mask"), PAIRS)):
        with pytest.raises(RelvecError, match="belongs to a run with another base"):
            embed_to_file(other, pairs, output)
    output.write_text("mine")
    with pytest.raises(RelvecError, match="belongs to a run with another base"):
        embed_to_file(model, PAIRS, output)


def test_building_again_leaves_the_index_and_spares_that_of_other_pairs(tiny_folder: Path, tmp_path: Path) -> None:
    model, folder = RelBERT.from_pretrained(tiny_folder), tmp_path / "index"
    build_index(model, PAIRS, folder)
    before = (folder / "meta.json").read_bytes()
    assert build_index(model, PAIRS, folder) == (0, 2)
    for other in ({"pairs": PAIRS[:1]}, {"pairs": PAIRS, "kind": "hnsw"}, {"pairs": PAIRS, "relations": ["a", "b"]}):
        with pytest.raises(RelvecError, match="belongs to a run with another base"):
            build_index(model, folder=folder, **other)
    assert (folder / "meta.json").read_bytes() == before


def test_embedding_keeps_the_other_columns(tiny_folder: Path, tmp_path: Path) -> None:
    model = RelBERT.from_pretrained(tiny_folder)
    embed_to_file(model, PAIRS, tmp_path / "v.npz", columns={"id": [7, 8], "predicate": ["in", "of"]})
    with np.load(tmp_path / "v.npz") as file:
        assert (file["id"].tolist(), file["predicate"].tolist()) == ([7, 8], ["in", "of"])
