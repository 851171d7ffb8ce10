import json
from pathlib import Path
from typing import Any

import pytest

from relvec import RelvecError, __version__
from relvec.evaluation.records import RECORDS_NAME, Record, find_record, load_predictions, load_records, save_record

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
OTHERS = [
    RECORD.changed(values)
    for values in (
        {"settings": {"scoring": "forward", "seed": 1}},
        {"settings": {"scoring": "forward", "seed": 0, "grid": [1, 2]}},
        {"settings": {"scoring": "reverse", "seed": 0}},
        {"fingerprint": "01234567 and another end"},
        {"dataset": "mine/sat.jsonl"},
        {"dataset": "mine_sat.jsonl"},
        {"part": "valid"},
        {"system": "FastText"},
        {"system": "GloVe 50d"},  # has the same file name
        {"task": "mapping"},
    )
]


def test_a_record_and_its_predictions_come_back_as_they_were_saved(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"index": 0, "predicted": None}, {"index": 1, "predicted": 2, "kind": "東\u2028京"}]
    save_record(RECORD, tmp_path, rows)
    assert load_records(tmp_path) == [RECORD]
    assert RECORD.version == __version__
    assert load_predictions(RECORD, tmp_path) == rows
    assert load_predictions(OTHERS[0], tmp_path) == []


def test_a_record_replaces_that_of_the_same_system_dataset_and_settings_alone(tmp_path: Path) -> None:
    for record in (RECORD, *OTHERS):
        assert find_record(record, tmp_path) is None
        save_record(record, tmp_path, [{"part": record.part}])
    newer = RECORD.changed({"metrics": {"accuracy": 50.0}})
    save_record(newer, tmp_path)
    assert load_records(tmp_path) == [newer, *OTHERS]
    assert [find_record(record.changed({"metrics": {}}), tmp_path) for record in OTHERS] == OTHERS
    assert find_record(RECORD.changed({"data": "another dataset of this name"}), tmp_path) is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"line 2: not a record \(.*\); fix or remove the line"),
        ("[1]", r"line 2: not a record"),
        ('{"task": "analogy"}', "line 2: system is missing"),
        ('{"task": "analogy", "checksum": "0"}', r"line 2: not a record \(its checksum does not match\)"),
        ("ANOTHER_TASK", "line 2: task is 'cooking'; choose analogy, classification, mapping or loss"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    save_record(RECORD, tmp_path)
    path = tmp_path / RECORDS_NAME
    good = path.read_text()
    other = json.dumps({**RECORD.as_dict(), "task": "cooking"})
    path.write_text(good + line.replace("ANOTHER_TASK", other))
    with pytest.raises(RelvecError, match=message):
        load_records(tmp_path)


def test_a_folder_without_records_and_one_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match=r"There is no .*records\.jsonl; run `relvec evaluate` with --runs"):
        load_records(tmp_path / "runs")
    (tmp_path / "file").write_text("")
    with pytest.raises(RelvecError, match=str(tmp_path / "file")):
        save_record(RECORD, tmp_path / "file")


def test_a_saved_record_tells_nothing_of_the_machine(tmp_path: Path) -> None:
    command = "relvec evaluate analogy -m /home/me/tuned --data-dir /home/me/data --fallback /home/me/data/p.jsonl:pmi"
    facts = {"base": "/home/me/mpnet", "data": ["/home/me/pairs.jsonl"], "template": "[h] and/or [t]", "seed": 1}
    save_record(RECORD.changed({"command": command, "facts": facts}), tmp_path)
    assert "home" not in (tmp_path / RECORDS_NAME).read_text()
    (saved,) = load_records(tmp_path)
    assert saved.command == "relvec evaluate analogy -m tuned --data-dir DATA --fallback DATA/p.jsonl:pmi"
    assert saved.facts == {"base": "mpnet", "data": ["pairs.jsonl"], "template": "[h] and/or [t]", "seed": 1}


@pytest.mark.parametrize("system", ["..", ".", "★", "x" * 300, "東" * 100])
def test_predictions_of_any_name_lie_below_the_runs(tmp_path: Path, system: str) -> None:
    runs = tmp_path / "runs"
    named = [RECORD.changed({"system": name}) for name in (system, system + system[-1])]
    for number, record in enumerate(named):
        save_record(record, runs, [{"index": number}])
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert [load_predictions(record, runs) for record in named] == [[{"index": 0}], [{"index": 1}]]
