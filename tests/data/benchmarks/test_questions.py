import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from relvec import RelvecError
from relvec.data.benchmarks.analogy import ANALOGY_DATASETS, Question, load_questions, read_questions

GOOD = {"stem": ["Paris", "France"], "choice": [["cup", "tea"], ["Tokyo", "Japan"]], "answer": 1, "prefix": "capital"}


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RELVEC_DATA", raising=False)


def write(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def test_a_question_is_read_as_it_is_written(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.jsonl", GOOD, "", {**GOOD, "stem": [" ice  cream ", "cold"], "prefix": None})
    first, second = read_questions(path)
    assert first == Question(("Paris", "France"), (("cup", "tea"), ("Tokyo", "Japan")), 1, "capital")
    assert (second.stem, second.kind) == (("ice cream", "cold"), "")
    assert load_questions(str(path)) == [first, second]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({key: value for key, value in GOOD.items() if key != "answer"}, "the answer '' is none of the 2 choices"),
        ({**GOOD, "answer": 2}, "the answer 2 is none of the 2 choices; count them from 0"),
        ({**GOOD, "answer": -1}, "the answer -1 is none of the 2 choices"),
        ({**GOOD, "answer": "1"}, "the answer '1' is none of the 2 choices"),
        ({**GOOD, "choice": []}, "the answer 1 is none of the 0 choices"),
        ({**GOOD, "choice": [["cup", "tea"], ["Tokyo", ""]]}, "choice 1: a word of the pair is empty"),
        ({**GOOD, "choice": [["cup", "tea"], ["Tokyo"]]}, "choice 1: expected a pair"),
        ({**GOOD, "stem": [" ", "France"]}, "stem: a word of the pair is empty"),
        ({**GOOD, "stem": "Paris"}, "no list 'stem'"),
        ({"stem": ["a", "b"]}, "no list 'choice'; write {"),
        ({**GOOD, "prefix": ["capital"]}, "prefix: ['capital'] is not a name; write a string"),
        (["a", "b"], "no list 'choice'"),
        ("{", "not JSON"),
    ],
)
def test_a_bad_question_is_named_by_file_and_line(tmp_path: Path, row: Any, message: str) -> None:
    path = write(tmp_path / "mine.jsonl", GOOD, "", row)
    with pytest.raises(RelvecError) as error:
        read_questions(path)
    assert str(error.value).startswith(f"{path}, line 3: ")
    assert message in str(error.value)


def test_questions_come_from_parquet_too(tmp_path: Path) -> None:
    pd.DataFrame([GOOD]).to_parquet(tmp_path / "mine.parquet")
    assert read_questions(tmp_path / "mine.parquet") == read_questions(write(tmp_path / "mine.jsonl", GOOD))


def test_blanks_around_a_kind_make_no_kind_of_its_own(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.jsonl", GOOD, {**GOOD, "prefix": " capital "}, {**GOOD, "prefix": " "})
    assert [question.kind for question in read_questions(path)] == ["capital", "capital", ""]


def test_a_file_without_questions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match="holds no question"):
        read_questions(write(tmp_path / "empty.jsonl", ""))


def test_the_full_sat_is_both_parts_and_has_none_to_choose_by(tmp_path: Path) -> None:
    write(tmp_path / "analogy/sat/valid.jsonl", {**GOOD, "prefix": "valid"})
    write(tmp_path / "analogy/sat/test.jsonl", {**GOOD, "prefix": "test"})
    for part in ("valid", "test"):
        assert [question.kind for question in load_questions("sat", part, tmp_path)] == [part]
    assert [question.kind for question in load_questions("sat_full", "test", tmp_path)] == ["valid", "test"]
    with pytest.raises(RelvecError, match=r"^sat_full has no validation part: it holds the test .* of sat; use sat\.$"):
        load_questions("sat_full", "valid", tmp_path)


def test_a_missing_dataset_says_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match=rf"no analogy/u2/test\.jsonl below {tmp_path}, .* relbert/analogy_questions"):
        load_questions("u2", data_dir=tmp_path)
    with pytest.raises(RelvecError, match="neither --data-dir nor RELVEC_DATA is set"):
        load_questions("u2")


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(RelvecError, match="no analogy benchmark googel; did you mean 'google'"):
        load_questions("googel")


@pytest.mark.parametrize("dataset", ["sat", "sat_full"])
def test_the_source_of_a_sat_question_is_no_relation(dataset: str) -> None:
    assert ANALOGY_DATASETS[dataset].relation_of('a book ("ice cream" was "icecream")') == ""
    assert ANALOGY_DATASETS["u2"].relation_of("grade4") == "grade4"
