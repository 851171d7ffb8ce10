from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relvec import RelvecError, __version__
from relvec.evaluation.records import (
    Record,
    find_record,
    load_predictions,
    load_records,
    of_task,
    save_record,
)
from relvec.io.files import written_whole

RECORD = Record(
    task="analogy",
    system="GloVe: 50d",
    dataset="sat",
    part="test",
    fingerprint="0123456789abcdef",
    settings={"scoring": "forward", "seed": 0},
    metrics={"accuracy": 43.5, "interval": [40.0, 47.0], "by_category": {}},
    facts={"base": "GloVe"},
)


def test_a_record_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"index": 0, "predicted": None}, {"index": 1, "predicted": 2, "kind": "東京"}]
    path = save_record(RECORD, tmp_path, rows)
    assert path.is_file()
    assert load_records(tmp_path) == [RECORD]
    assert RECORD.version == __version__
    assert load_predictions(RECORD, tmp_path) == rows
    assert load_predictions(replace(RECORD, dataset="u2"), tmp_path) == []


def test_a_record_is_found_only_with_equal_settings_and_fingerprint(tmp_path: Path) -> None:
    assert find_record(RECORD, tmp_path) is None
    save_record(RECORD, tmp_path)
    assert find_record(replace(RECORD, metrics={}), tmp_path) == RECORD
    different = (
        replace(RECORD, settings={**RECORD.settings, "seed": 1}),
        replace(RECORD, settings={**RECORD.settings, "grid": [1, 2]}),
        replace(RECORD, settings={**RECORD.settings, "scoring": "reverse"}),
        replace(RECORD, fingerprint="01234567 and another end"),
        replace(RECORD, fingerprint="fedcba9876543210"),
        replace(RECORD, dataset="u2"),
        replace(RECORD, part="valid"),
        replace(RECORD, system="FastText"),
        replace(RECORD, task="mapping"),
        replace(RECORD, data="another dataset of this name"),
        replace(RECORD, system="GloVe 50d"),  # has the same file name
    )
    assert [find_record(other, tmp_path) for other in different] == [None] * len(different)


@pytest.mark.parametrize(
    "other",
    [
        replace(RECORD, settings={"scoring": "reverse", "seed": 0}),
        replace(RECORD, settings={"scoring": "forward", "seed": 1}),
        replace(RECORD, fingerprint="fedcba9876543210"),
    ],
    ids=["scoring", "seed", "model"],
)
def test_records_of_other_settings_lie_side_by_side(tmp_path: Path, other: Record) -> None:
    save_record(RECORD, tmp_path)
    save_record(other, tmp_path)
    assert find_record(RECORD, tmp_path) == RECORD
    assert find_record(other, tmp_path) == other
    assert len(load_records(tmp_path)) == 2


def test_datasets_of_like_paths_lie_side_by_side(tmp_path: Path) -> None:
    for dataset in ("mine/sat.jsonl", "mine_sat.jsonl", "mine sat.jsonl"):
        save_record(replace(RECORD, dataset=dataset), tmp_path)
    assert len(load_records(tmp_path)) == 3


def test_saving_again_replaces_the_record(tmp_path: Path) -> None:
    save_record(RECORD, tmp_path)
    newer = replace(RECORD, metrics={"accuracy": 50.0})
    save_record(newer, tmp_path)
    assert load_records(tmp_path) == [newer]


def test_records_of_one_task_are_picked(tmp_path: Path) -> None:
    mapping = replace(RECORD, task="mapping")
    assert of_task([RECORD, mapping], "mapping") == [mapping]


def test_a_missing_folder_and_a_broken_record_are_named(tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match=r"no folder .*; run `relvec evaluate`"):
        load_records(tmp_path / "runs")
    for content in (b"{", b"[1]", b'"\xff"'):
        save_record(RECORD, tmp_path).write_bytes(content)
        with pytest.raises(RelvecError, match=r"is no result of relvec \(.*\); remove it"):
            load_records(tmp_path)


def test_a_folder_in_the_place_of_a_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "system/record.json").mkdir(parents=True)
    with pytest.raises(RelvecError, match=r"Cannot read .*record\.json: Is a directory; mend or remove it"):
        load_records(tmp_path)


def test_a_saved_record_tells_nothing_of_the_machine(tmp_path: Path) -> None:
    command = "relvec evaluate analogy -m /home/me/tuned --data-dir /home/me/data --fallback /home/me/data/p.jsonl:pmi"
    facts = {"base": "/home/me/mpnet", "data": ["/home/me/pairs.jsonl"], "template": "[h] and/or [t]", "seed": 1}
    path = save_record(replace(RECORD, command=command, facts=facts), tmp_path)
    assert "home" not in path.read_text()
    (saved,) = load_records(tmp_path)
    assert saved.command == "relvec evaluate analogy -m tuned --data-dir DATA --fallback DATA/p.jsonl:pmi"
    assert saved.facts == {"base": "mpnet", "data": ["pairs.jsonl"], "template": "[h] and/or [t]", "seed": 1}


def test_predictions_that_are_broken_are_named(tmp_path: Path) -> None:
    path = save_record(RECORD, tmp_path, [{"index": 0}])
    path.with_suffix(".predictions.jsonl").write_text('{"index": 0}\n{"index"')
    with pytest.raises(RelvecError, match=r"predictions\.jsonl holds no predictions of relvec .*; remove it"):
        load_predictions(RECORD, tmp_path)


def test_a_runs_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RelvecError, match=r"Cannot write .*; choose another runs folder"):
        save_record(RECORD, tmp_path / "file")


@pytest.mark.parametrize("system", ["..", ".", "★", "x" * 300, "東" * 100])
def test_any_name_has_a_folder_of_its_own_below_the_runs(tmp_path: Path, system: str) -> None:
    runs = tmp_path / "runs"
    for name in (system, system + system[-1]):
        save_record(replace(RECORD, system=name), runs, [{"index": 0}])
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert {record.system for record in load_records(runs)} == {system, system + system[-1]}


def test_predictions_may_hold_odd_line_ends(tmp_path: Path) -> None:
    rows = [{"relation": "a\u2028b"}, {"relation": "c"}]
    save_record(RECORD, tmp_path, rows)
    assert load_predictions(RECORD, tmp_path) == rows


def test_a_record_that_is_being_written_is_no_record_yet(tmp_path: Path) -> None:
    path = save_record(RECORD, tmp_path)
    with written_whole(path) as partial:
        partial.write_text("{")
        assert load_records(tmp_path) == [RECORD]
        partial.write_text(path.read_text())
