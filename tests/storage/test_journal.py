from pathlib import Path

import pytest

from relvec import RelvecError
from relvec.storage.journal import Journal, check_own


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
        assert path.read_bytes() == whole[: whole[:length].rfind(b"\n") + 1]


def test_there_is_no_file_before_there_is_an_entry(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    Journal(path, job="mine")
    Journal(path, job="other").add({"loss": 1.0})
    with pytest.raises(RelvecError, match="other settings"):
        Journal(path, job="mine")


def test_files_without_the_journal_that_made_them_are_not_written_over(tmp_path: Path) -> None:
    check_own(tmp_path, "history.jsonl", ["prompt.json"])
    (tmp_path / "prompt.json").touch()
    with pytest.raises(RelvecError, match=r"has a prompt\.json without the history\.jsonl .*; choose another output"):
        check_own(tmp_path, "history.jsonl", ["prompt.json"])
    Journal(tmp_path / "history.jsonl", job="mine").add({})
    check_own(tmp_path, "history.jsonl", ["prompt.json"])


@pytest.mark.parametrize("content", ["my notes", "my notes\nand no end", '{"job": "other"}\n{"loss": 1}\n{"lo'])
def test_a_file_of_another_is_refused_and_left_as_it_is(tmp_path: Path, content: str) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(content)
    with pytest.raises(RelvecError, match="belongs to a run with another base, other settings or other data"):
        Journal(path, job="mine")
    assert path.read_text() == content


def test_a_damaged_line_and_an_entry_that_makes_no_sense_are_errors(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "history.jsonl", job="mine")
    journal.add({"loss": 1.0})
    with pytest.raises(RelvecError, match=r"history\.jsonl is damaged .*'step'.*; remove it"), journal.damage_noticed():
        _ = journal.entries[0]["step"]
    with journal.path.open("a") as file:
        file.write("nonsense\n")
    with pytest.raises(RelvecError, match=r"history\.jsonl is damaged"):
        Journal(journal.path, job="mine")
