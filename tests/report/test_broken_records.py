"""Records that people edited or merged by hand: a table, or one sentence that names the file and the key."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from relvec.errors import RelvecError
from relvec.evaluation.records import Record, load_records
from relvec.report.formats import as_csv, latex, markdown, plain_rows
from relvec.report.page import tables

Save = Callable[..., Record]
Place = tuple[str, ...]

GONE = "gone"
WRONG: tuple[Any, ...] = (GONE, None, "x", 7, -1.5, True, [], [1], ["a", "b"], {}, {"a": None}, {"a": {"b": "c"}})


def places(value: Any, start: Place = ()) -> Iterator[Place]:
    """Every key of a record; of many like rows in a break-down, the first will do."""
    if isinstance(value, dict):
        for name in list(value)[:1] if start and start[-1].startswith("by_") else value:
            yield (*start, name)
            yield from places(value[name], (*start, name))


def edited(record: dict[str, Any], place: Place, wrong: Any) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(record))
    parent = changed
    for name in place[:-1]:
        parent = parent[name]
    if wrong == GONE:
        del parent[place[-1]]
    else:
        parent[place[-1]] = wrong
    return changed


@pytest.mark.parametrize("task", ["analogy", "classification", "mapping", "loss"])
def test_no_edit_of_a_record_leads_to_a_traceback(
    runs: Path, save: Save, save_analogy: Save, save_classification: Save, task: str
) -> None:
    if task == "analogy":
        save_analogy("a", "bats", 0.5, facts={"kind": "vanilla", "base": "b"}, size=20)
    elif task == "classification":
        save_classification("a", "bless", 0.5, size=20)
    else:
        metrics = {"accuracy": 50.0, "solved": 0.0, "interval": [0.0, 9.0], "pairs": 6, "out_of_vocabulary": 1}
        metrics |= {"loss": 0.5, "in_order": 50.0, "relations": 2, "by_type": {"science": {"accuracy": 50.0}}}
        save(Record(task, "a", "x", "test", "f", {"loss": "triplet"}, metrics, {"kind": "vanilla"}, "relvec x", "d"))
    (file,) = runs.rglob("*.json")
    right = json.loads(file.read_text())
    refused = 0
    for place in places(right):
        for wrong in WRONG:
            file.write_text(json.dumps(edited(right, place, wrong)))
            try:
                for table in tables(load_records(runs)):
                    for shown in (as_csv, latex, markdown, plain_rows):
                        shown(table)
            except RelvecError as error:
                refused += 1
                message = str(error)
                assert message.startswith(str(file))
                assert any(f'"{".".join(place[:depth])}"' in message for depth in (1, 2)), message
                assert message.endswith(".")
    assert refused > 50


@pytest.mark.parametrize(
    ("place", "wrong", "message"),
    [
        (("settings",), None, '"settings" is null, not an object; mend it, or remove the file.'),
        (("settings",), GONE, 'has no "settings"; write it, or remove the file.'),
        (("system",), 3, '"system" is 3, not a text; mend it, or remove the file.'),
        (("metrics", "accuracy"), "50 %", '"metrics.accuracy" is "50 %", not a number; mend it, or remove the file.'),
        (("metrics", "interval"), [1], '"metrics.interval" is [1], not a list of two numbers'),
        (("metrics", "by_relation"), {"x": None}, '"metrics.by_relation" is {"x": null}, not an object of objects'),
        (("facts", "kind"), ["vanilla"], '"facts.kind" is ["vanilla"], not a text'),
        (("note",), "mine", 'has "note", which no result of relvec has; remove the key, or the file.'),
    ],
)
def test_the_file_and_the_key_are_named(runs: Path, save_analogy: Save, place: Place, wrong: Any, message: str) -> None:
    save_analogy("a", "sat", 0.5, facts={"kind": "vanilla"})
    (file,) = runs.rglob("*.json")
    file.write_text(json.dumps(edited(json.loads(file.read_text()), place, wrong)))
    with pytest.raises(RelvecError) as error:
        load_records(runs)
    assert str(error.value).startswith(str(file))
    assert message in str(error.value)


def test_a_long_wrong_value_is_cut(runs: Path, save_analogy: Save) -> None:
    save_analogy("a", "sat", 0.5)
    (file,) = runs.rglob("*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "facts": ["many words"] * 99}))
    with pytest.raises(RelvecError) as error:
        load_records(runs)
    assert '"facts" is ["many words", "many words", "many wo..., not an object' in str(error.value)


def test_a_number_that_could_not_be_computed_is_no_mistake(runs: Path, save: Save) -> None:
    save(Record("loss", "a", "x", "valid", "f", {}, {"loss": float("nan"), "in_order": None}))
    assert len(load_records(runs)) == 1
    assert tables(load_records(runs)) == []
