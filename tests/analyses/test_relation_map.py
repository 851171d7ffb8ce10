import csv
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from typer.testing import CliRunner

from relvec import RelvecError
from relvec.analyses.relation_map import METHODS, Method, RelationMap, draw_map, load_groups, relation_map
from relvec.cli import analyse
from relvec.pairs import Pair
from relvec.similarity import Vectors, normalized

GROUPS: dict[str, list[Pair]] = {
    name: [(f"{name}{number}", f"tail{number}") for number in range(8)] for name in ("capital", "maker", "opposite")
}


class PlantedVectors:
    """The first letter of the head decides the vector, up to noise; heads with a z are unknown."""

    name = "planted"
    has_direction = True
    fingerprint = "planted"

    def vectors(self, pairs: Sequence[Pair]) -> tuple[Vectors, NDArray[np.bool_]]:
        rows = []
        for head, tail in pairs:
            middle = np.random.default_rng(ord(head[0])).normal(size=10)
            noise = np.random.default_rng([ord(letter) for letter in head + tail]).normal(size=10)
            rows.append(middle + 0.3 * noise)
        known = np.array(["z" not in head for head, _ in pairs])
        return (np.array(rows) * known[:, None]).astype(np.float32), known


def spread(found: RelationMap) -> float:
    """How far apart pairs of one relation lie, as a part of how far apart all lie."""
    of_relation = np.array(found.relations)
    parts = [found.coordinates[of_relation == name] for name in GROUPS]
    return float(np.mean([part.std(axis=0) for part in parts]) / found.coordinates.std(axis=0).mean())


@pytest.mark.parametrize("method", METHODS)
def test_pairs_of_one_relation_lie_together(method: Method) -> None:
    found = relation_map(PlantedVectors(), GROUPS, method)
    assert found.coordinates.shape == (24, 2)
    assert spread(found) < 0.5
    again = relation_map(PlantedVectors(), GROUPS, method)
    np.testing.assert_array_equal(found.coordinates, again.coordinates)


def test_pca_is_that_of_scikit_learn_up_to_the_direction() -> None:
    found = relation_map(PlantedVectors(), GROUPS)
    rows = normalized(PlantedVectors().vectors(found.pairs)[0])
    expected = PCA(2, svd_solver="full").fit_transform(rows.astype(np.float64))
    np.testing.assert_allclose(np.abs(found.coordinates), np.abs(expected), atol=1e-6)


def test_unknown_pairs_are_left_out() -> None:
    found = relation_map(PlantedVectors(), {**GROUPS, "zoo": [("zebra", "stripes")]})
    assert "zoo" not in found.relations
    with pytest.raises(RelvecError, match="planted knows 2 of the pairs, a map needs 3"):
        relation_map(PlantedVectors(), {"zoo": [("zebra", "stripes"), ("a", "b"), ("c", "d")]})


@pytest.mark.parametrize("ending", [".svg", ".png"])
def test_the_same_map_gives_the_same_picture(tmp_path: Path, ending: str) -> None:
    many = {f"{letter} $\\relation$": [(f"{letter}{n}", f"tail{n}") for n in range(5)] for letter in "abcdefghijk"}
    found = relation_map(PlantedVectors(), many)
    for name in ("one", "two"):
        draw_map(found, tmp_path / f"{name}{ending}")
    first, second = (tmp_path / f"{name}{ending}" for name in ("one", "two"))
    assert first.read_bytes() == second.read_bytes()
    assert len(first.read_bytes()) > 10_000


def test_a_picture_of_another_kind_is_refused(tmp_path: Path) -> None:
    found = relation_map(PlantedVectors(), GROUPS)
    with pytest.raises(RelvecError, match=r"Cannot draw to .*map\.pdf; give a file that ends in \.svg or \.png"):
        draw_map(found, tmp_path / "map.pdf")


def test_a_missing_library_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = relation_map(PlantedVectors(), GROUPS)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(RelvecError, match=r"needs matplotlib; run pip install 'relvec\[evaluate\]'"):
        draw_map(found, tmp_path / "map.svg")
    monkeypatch.setitem(sys.modules, "sklearn.manifold", None)
    with pytest.raises(RelvecError, match=r"needs sklearn; run pip install 'relvec\[sklearn\]'"):
        relation_map(PlantedVectors(), GROUPS, "tsne")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    rows = [f"{name},{head},{tail}" for name, pairs in GROUPS.items() for head, tail in pairs]
    path.write_text("\n".join(["relation,head,tail", *rows]))
    return path


def test_relations_are_chosen_by_name_and_thinned_evenly(data: Path) -> None:
    assert load_groups(str(data)) == GROUPS
    chosen = load_groups(str(data), ["opposite", "maker"], limit=4)
    assert list(chosen) == ["opposite", "maker"]
    assert chosen["maker"] == GROUPS["maker"][::2]


def test_a_classification_dataset_gives_the_pairs_of_its_test_part(tmp_path: Path) -> None:
    folder = tmp_path / "lexrel/root09"
    folder.mkdir(parents=True)
    for part, head in (("train", "cat"), ("valid", "cat"), ("test", "oak")):
        (folder / f"{part}.jsonl").write_text(f'{{"head": "{head}", "tail": "tree", "relation": "HYPER"}}\n' * 2)
    assert load_groups("root09", data_dir=tmp_path) == {"hypernym": [("oak", "tree")]}


def test_relations_that_cannot_be_drawn_are_refused(data: Path) -> None:
    with pytest.raises(RelvecError, match="Unknown relation 'makr'; did you mean 'maker'"):
        load_groups(str(data), ["makr"])
    with pytest.raises(RelvecError, match="relations are too many for a map; choose up to 24 of bundled"):
        load_groups("bundled")
    with pytest.raises(RelvecError, match="Unknown method 'umap'; choose one of pca, tsne"):
        CliRunner().invoke(analyse.app, ["map", "-o", "map.svg", "--method", "umap"], catch_exceptions=False)


def test_the_command_writes_picture_and_coordinates(
    tiny_folder: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELVEC_CACHE", str(tmp_path / "cache"))
    words = ["map", "--model", tiny_folder, "--data", data, "--relation", "maker", "-o", tmp_path / "map.svg"]
    result = CliRunner().invoke(analyse.app, [*map(str, words), "--json"], catch_exceptions=False)
    assert "8 pairs of 1 relation " in result.stderr
    assert "</svg>" in (tmp_path / "map.svg").read_text()
    with (tmp_path / "map.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert (len(rows), rows[0]["head"], rows[0]["relation"]) == (8, "maker0", "maker")
    assert float(rows[0]["x"])
    told = json.loads(result.stdout)
    assert (told["system"], told["method"], len(told["points"])) == (tiny_folder.name, "pca", 8)
    first = told["points"][0]
    assert (first["pair"][0], first["relation"], str(first["x"])) == ("maker0", "maker", rows[0]["x"])


@pytest.mark.parametrize("content", [None, "head,tail,relation,x,y\na,b,c,1,2\n", "head,tail\na,b\n", ""])
def test_coordinates_never_take_the_place_of_data(
    tiny_folder: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    monkeypatch.setenv("RELVEC_CACHE", str(tmp_path / "cache"))
    words = ["map", "--model", str(tiny_folder), "--data", str(data), "-o"]
    before = data.read_text()
    with pytest.raises(RelvecError, match=r"would take the place of .*pairs\.csv; give the picture another name"):
        CliRunner().invoke(analyse.app, [*words, str(data.with_suffix(".svg"))], catch_exceptions=False)
    assert data.read_text() == before
    if content is not None:
        (tmp_path / "map.csv").write_text(content)
    if content is None or "x,y" in content:
        CliRunner().invoke(analyse.app, [*words, str(tmp_path / "map.svg")], catch_exceptions=False)
        assert len((tmp_path / "map.csv").read_text().splitlines()) == 25
    else:
        with pytest.raises(RelvecError, match=r"would take the place of .*map\.csv"):
            CliRunner().invoke(analyse.app, [*words, str(tmp_path / "map.svg")], catch_exceptions=False)
        assert not (tmp_path / "map.svg").exists()


@pytest.mark.parametrize("command", [["map"], ["unseen-category", "--category", "1"]], ids=lambda words: words[0])
def test_a_negative_seed_is_refused_before_any_work(command: list[str], tmp_path: Path) -> None:
    result = CliRunner().invoke(analyse.app, [*command, "-o", str(tmp_path / "map.svg"), "--seed", "-1"])
    assert result.exit_code == 2
    assert "'--seed'" in result.stderr


def test_the_maps_on_the_page_can_be_drawn() -> None:
    page = (Path(__file__).parents[2] / "docs/evaluation.md").read_text(encoding="utf-8")
    names = dict.fromkeys(re.findall(r"--relation (\S+)", page))
    assert list(load_groups("bundled", list(names))) == list(names)
    assert len(names) == 8
