from pathlib import Path

import pytest

from relvec import RelvecError
from relvec.learned_prompts.journal import Journal


def test_entries_come_back_and_a_line_that_was_cut_off_does_not(tmp_path: Path) -> None:
    path = tmp_path / "new" / "history.jsonl"
    journal = Journal(path, job="mine")
    for number in range(3):
        journal.add({"number": number, "token": "Ġé"})
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        found = Journal(path, job="mine").entries
        assert found == journal.entries[: max(whole[:length].count(b"\n") - 1, 0)]
        assert whole.startswith(path.read_bytes())
        assert path.read_bytes().endswith(b"\n")


@pytest.mark.parametrize("content", ["my notes", "my notes\nand no end", '{"job": "other"}\n{"loss": 1}\n{"lo'])
def test_a_file_of_another_is_refused_and_left_as_it_is(tmp_path: Path, content: str) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(content)
    with pytest.raises(RelvecError, match="belongs to a search with another base, other settings or other data"):
        Journal(path, job="mine")
    assert path.read_text() == content


def test_a_damaged_line_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    Journal(path, job="mine")
    with path.open("a") as file:
        file.write("nonsense\n")
    with pytest.raises(RelvecError, match=r"history\.jsonl is damaged"):
        Journal(path, job="mine")


def test_an_entry_that_makes_no_sense_is_an_error_too(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "history.jsonl", job="mine")
    journal.add({"loss": 1.0})
    with pytest.raises(RelvecError, match=r"history\.jsonl is damaged .*'step'.*; remove it"), journal.damage_noticed():
        _ = journal.entries[0]["step"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RelvecError, match="choose another output"):
        Journal(tmp_path / "file" / "history.jsonl", job="mine")
