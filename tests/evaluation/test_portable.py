"""What leaves the machine: commands, facts and paths without its folders and its user."""

import pytest

from relvec.evaluation.records import portable, portable_facts, portable_path


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (
            "relvec x --data-dir=/d/ --set file=/d/analogy/p.jsonl",
            "relvec x --data-dir DATA --set file=DATA/analogy/p.jsonl",
        ),
        ("relvec x --fallback /home/me/p.jsonl:pmi --runs ../runs", "relvec x --fallback p.jsonl:pmi --runs runs"),
        ("relvec x --model ~/m/tuned/ --name 'a = /b'", "relvec x --model tuned --name 'a = /b'"),
        ("relvec x --template '[h] is to/from [t]' -m a/b", "relvec x --template '[h] is to/from [t]' -m a/b"),
        ("relvec x --set endpoint=http://host:80/v1", "relvec x --set endpoint=http://host:80/v1"),
        (r"relvec x --model 'C:\Users\me\tuned'", "relvec x --model tuned"),
        ("relvec x -m/home/me/tuned --set=vectors=/home/me=you/glove.npz", "relvec x -mtuned --set=vectors=glove.npz"),
        ("relvec x --set endpoint=https://me:secret@host/v1", "relvec x --set endpoint=https://host/v1"),
    ],
)
def test_a_command_keeps_what_a_reader_can_type(typed: str, shown: str) -> None:
    assert portable(typed) == shown


def test_what_is_portable_stays_so() -> None:
    command = portable("relvec x --data-dir /d --model ~/m/tuned --set file=/d/p.jsonl --fallback ../p.jsonl:pmi")
    assert portable(command) == command


def test_a_template_is_no_path() -> None:
    facts = {"template": "~ [h] is to/from [t]", "base": "~/models/mpnet"}
    assert portable_facts(facts) == {"template": "~ [h] is to/from [t]", "base": "mpnet"}


def test_files_of_one_name_in_different_folders_stay_apart() -> None:
    first, second = portable_path("/home/me/mine.jsonl"), portable_path("/home/you/mine.jsonl")
    assert first != second
    assert {first.split("/")[1], second.split("/")[1]} == {"mine.jsonl"}
    assert portable_path("bless") == "bless"
    assert portable_path("../bless/") not in ("bless", "../bless")


@pytest.mark.parametrize("path", ["mine/pairs", "mine/pairs/", "./mine/pairs", "././mine/pairs//"])
def test_a_folder_has_one_name_however_it_is_typed(path: str) -> None:
    assert portable_path(path) == "mine/pairs"
