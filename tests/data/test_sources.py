import json
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

from relvec.data.sources import SOURCES, load
from relvec.errors import RelvecError

ROWS = [{"relation": "1a", "category": "1", "head": f"h{n}", "tail": "t", "score": n} for n in range(6)]
GROUP = {"relation_type": "8d", "positives": [["a", "b"], ["c", "d"]], "negatives": [["b", "a"]]}


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RELVEC_DATA", raising=False)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    (tmp_path / "semeval2012").mkdir()
    (tmp_path / "semeval2012/pairs.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    return tmp_path


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A hub that has one dataset; what it is asked for is noted."""
    asked: list[dict[str, Any]] = []

    def snapshot_download(dataset: str, **options: Any) -> str:
        asked.append({"dataset": dataset, **options})
        if options["local_files_only"]:
            raise LocalEntryNotFoundError("not cached")
        if dataset.startswith("nobody/"):
            raise HFValidationError("nobody")
        folder = tmp_path / "snapshot/data"
        folder.mkdir(parents=True)
        (folder / "train.jsonl").write_text(json.dumps(GROUP))
        return str(tmp_path / "snapshot")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    monkeypatch.setattr("relvec.hub.network.hub_answers", lambda: True)
    return asked


def test_semeval_is_found_below_the_data_folder(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (relation,) = load("semeval2012", data_dir=data_dir, top=2, bottom=1)
    assert (relation.positives, relation.negatives) == ((("h4", "t"), ("h5", "t")), (("h0", "t"),))
    monkeypatch.setenv("RELVEC_DATA", str(data_dir))
    assert load("semeval2012", top=2, bottom=1) == [relation]
    assert load(data_dir / "semeval2012/pairs.jsonl", top=2, bottom=1) == [relation]


def test_semeval_else_comes_from_the_hub(hub: list[dict[str, Any]]) -> None:
    (relation,) = load("semeval2012")
    assert (relation.name, relation.category) == ("8d", "8")
    assert hub[0]["dataset"] == SOURCES["semeval2012"].hub_id
    assert hub[0]["repo_type"] == "dataset"


def test_another_dataset_of_the_hub_is_read(hub: list[dict[str, Any]]) -> None:
    assert load("owner/name")[0].name == "8d"
    assert hub[0]["dataset"] == "owner/name"


def test_without_the_hub_the_error_says_where_to_get_semeval() -> None:
    with pytest.raises(RelvecError, match=r"get it from https://.*semeval2012/pairs\.jsonl below \$RELVEC_DATA"):
        load("semeval2012")


def test_a_dataset_that_is_not_to_be_had_is_named(hub: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RelvecError, match="the hub has no dataset nobody/none"):
        load("nobody/none")
    monkeypatch.setattr("relvec.hub.network.hub_answers", lambda: False)
    with pytest.raises(RelvecError, match=r"no data owner/name here .*the network is switched off"):
        load("owner/name")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bundeld", "no data bundeld; did you mean 'bundled'"),
        ("nowhere/my.csv", "no data nowhere/my.csv; check the path"),
        ("./nowhere", "no data ./nowhere; check the path"),
    ],
)
def test_an_unknown_name_is_refused(name: str, message: str) -> None:
    with pytest.raises(RelvecError, match=message):
        load(name)


def test_the_registry_is_keyed_by_name() -> None:
    assert all(source.name == name for name, source in SOURCES.items())
