from pathlib import Path
from typing import Any

import pytest

from relvec.errors import RelvecError
from relvec.hub.datasets import benchmark_file


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the hub is asked for; it has one file."""
    calls: list[dict[str, Any]] = []
    (tmp_path / "snapshot/dataset/u2").mkdir(parents=True)
    (tmp_path / "snapshot/dataset/u2/test.jsonl").write_text("{}")

    def snapshot_download(dataset: str, **options: Any) -> str:
        calls.append({"dataset": dataset, **options})
        return str(tmp_path / "snapshot")

    monkeypatch.delenv("RELVEC_DATA", raising=False)
    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    monkeypatch.setattr("relvec.hub.network.hub_answers", lambda: True)
    return calls


def test_only_the_wanted_file_is_fetched(asked: list[dict[str, Any]]) -> None:
    file = benchmark_file("analogy/u2/test.jsonl", "owner/questions", "dataset/u2/test.jsonl")
    assert file.read_text() == "{}"
    (call,) = asked
    assert call["dataset"] == "owner/questions"
    assert call["allow_patterns"] == ["dataset/u2/test.jsonl"]


def test_the_data_folder_comes_before_the_hub(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text("mine")
    assert benchmark_file("mine.jsonl", "owner/questions", "data.jsonl", tmp_path).read_text() == "mine"
    assert not asked


def test_a_file_that_the_hub_has_not_says_where_to_put_it(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match=r"no analogy/u4/test\.jsonl below .*; get the dataset owner/questions"):
        benchmark_file("analogy/u4/test.jsonl", "owner/questions", "dataset/u4/test.jsonl", tmp_path)
