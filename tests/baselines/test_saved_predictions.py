import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relvec.baselines.saved_predictions import SavedPredictions, answers_of_run
from relvec.data.benchmarks.analogy import Question, load_questions
from relvec.errors import RelvecError
from relvec.evaluation.analogy import metrics, predict
from relvec.evaluation.records import Record, save_record

DATA = os.environ.get("RELVEC_DATA")
with_paper_data = pytest.mark.skipif(
    not DATA or not (Path(DATA) / "analogy/baseline_predictions.jsonl").is_file(),
    reason="RELVEC_DATA does not hold the paper's predictions",
)

CHOICES = (("c", "d"), ("e", "f"), ("g", "h"))
QUESTIONS = [Question(("a", "b"), CHOICES, answer) for answer in (2, 0)]
ROWS: list[dict[str, Any]] = [
    {"dataset": "sat", "split": "test", "index": 1, "answer": 0, "glove": None, "pmi": 1},
    {"dataset": "sat", "split": "test", "index": 0, "answer": 2, "glove": 2, "pmi": 0},
    {"dataset": "sat", "split": "valid", "index": 0, "answer": 1, "glove": 1, "pmi": 1},
    {"dataset": "u2", "split": "test", "index": 0, "answer": 1, "glove": 0, "pmi": 0},
]


def saved(folder: Path, rows: list[dict[str, Any]], column: str = "glove", dataset: str = "sat") -> SavedPredictions:
    (folder / "saved.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return SavedPredictions(folder / "saved.jsonl", column, dataset, "test")


def test_the_choice_that_was_made_wins_and_none_is_out_of_vocabulary(tmp_path: Path) -> None:
    first, second = saved(tmp_path, ROWS).scores(QUESTIONS)
    assert first.tolist() == [0, 0, 1]
    assert np.isnan(second).all()


def test_answers_serve_as_fallback(tmp_path: Path) -> None:
    pmi = saved(tmp_path, ROWS, "pmi").answers(QUESTIONS)
    assert pmi == [0, 1]
    found = predict(QUESTIONS, saved(tmp_path, ROWS).scores(QUESTIONS), "fallback", [0, 0])
    assert [prediction.credit for prediction in found] == [1, 1]


def test_the_full_sat_set_is_the_validation_part_then_the_test_part(tmp_path: Path) -> None:
    questions = [Question(("a", "b"), CHOICES, answer=1), *QUESTIONS]
    assert saved(tmp_path, ROWS, dataset="sat_full").answers(questions) == [1, 2, None]


def test_a_dataset_of_the_users_is_named_as_in_the_file(tmp_path: Path) -> None:
    rows = [{**row, "dataset": "mine.jsonl"} for row in ROWS[:2]]
    assert saved(tmp_path, rows, dataset="mine.jsonl").answers(QUESTIONS) == [2, None]


def test_the_fingerprint_tells_files_and_columns_apart(tmp_path: Path) -> None:
    made = [saved(tmp_path, ROWS), saved(tmp_path, ROWS, "pmi"), saved(tmp_path, ROWS[:3])]
    assert len({predictions.fingerprint for predictions in made}) == 3
    assert saved(tmp_path, ROWS, dataset="u2").fingerprint == made[0].fingerprint


@pytest.mark.parametrize(
    ("questions", "dataset", "message"),
    [
        (QUESTIONS[::-1], "sat", "are not those of sat, test part; give the file that was made for these questions"),
        (QUESTIONS[:1], "sat", "are not those of sat"),
        (QUESTIONS, "google", "has no prediction for google, test part"),
    ],
)
def test_predictions_of_other_questions_are_refused(
    questions: list[Question], dataset: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(RelvecError, match=message):
        saved(tmp_path, ROWS, dataset=dataset).scores(questions)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"glove": 3}, "line 1: 3 is none of the 3 choices"),
        ({"glove": "x"}, "line 1: predicted is 'x'; give a whole number"),
        ({"answer": None}, "line 1: answer is None; give a whole number"),
        ({"index": 0}, "line 2: a second row of this question"),
    ],
)
def test_a_broken_row_is_named(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match=message):
        saved(tmp_path, [{**ROWS[0], **change}, *ROWS[1:]]).scores(QUESTIONS)


def test_missing_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match="line 1: Unknown system 'golve'; did you mean 'glove'"):
        saved(tmp_path, ROWS, "golve")
    with pytest.raises(RelvecError, match="line 1: dataset is missing"):
        saved(tmp_path, [{"glove": 1}])


@with_paper_data
@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ("pmi", [23.3, 23.1, 32.9, 39.1, 57.4, 42.7]),
        ("glove", [48.9, 47.8, 46.5, 39.8, 96.0, 68.7]),
        ("fasttext", [49.7, 47.8, 43.0, 40.7, 96.6, 72.0]),
    ],
)
def test_the_papers_rows_come_out(system: str, expected: list[float]) -> None:
    found = []
    for dataset in ("sat_full", "sat", "u2", "u4", "google", "bats"):
        questions = load_questions(dataset, "test", DATA)
        fallback = paper_predictions("pmi", dataset).answers(questions)
        scores = paper_predictions(system, dataset).scores(questions)
        found.append(round(metrics(dataset, predict(questions, scores, "fallback", fallback))["accuracy"], 1))
    assert found == expected


@with_paper_data
@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("google", {"Morphological": 95.4, "Semantic": 98.1}),
        ("bats", {"Morphological": 90.4, "Semantic": 71.1, "Lexical": 33.8}),
    ],
)
def test_the_papers_break_down_comes_out(dataset: str, expected: dict[str, float]) -> None:
    questions = load_questions(dataset, "test", DATA)
    found = metrics(dataset, predict(questions, paper_predictions("fasttext", dataset).scores(questions), "wrong"))
    by_category = {category: round(value["accuracy"], 1) for category, value in found["by_category"].items()}
    assert by_category == expected


def paper_predictions(system: str, dataset: str) -> SavedPredictions:
    assert DATA is not None
    return SavedPredictions(Path(DATA) / "analogy/baseline_predictions.jsonl", system, dataset, "test")


RUN = Record(
    task="analogy",
    system="GloVe",
    dataset="sat",
    part="test",
    fingerprint="0a1b2c3d",
    settings={"scoring": "forward", "out_of_vocabulary": "wrong"},
    metrics={},
)


def saved_run(runs: Path, predicted: tuple[int | None, int | None], scoring: str = "forward", **changes: Any) -> None:
    rows = [
        {"index": index, "kind": "", "answer": question.answer, "predicted": choice}
        for index, (question, choice) in enumerate(zip(QUESTIONS, predicted, strict=True))
    ]
    settings = {**RUN.settings, "scoring": scoring}
    save_record(RUN.changed({"settings": settings, **changes}), runs, rows)


def test_an_evaluated_system_gives_its_answers_by_dataset_and_part(tmp_path: Path) -> None:
    saved_run(tmp_path, (1, None))
    saved_run(tmp_path, (0, 0), part="valid")
    saved_run(tmp_path, (2, 2), dataset="sat_full")
    saved_run(tmp_path, (0, 1), system="PMI")
    saved_run(tmp_path, (1, None), settings={**RUN.settings, "out_of_vocabulary": "chance"})  # the same answers
    assert answers_of_run(tmp_path, "GloVe", "sat", "test", QUESTIONS) == [1, None]
    assert answers_of_run(tmp_path, "GloVe", "sat_full", "test", QUESTIONS) == [2, 2]
    assert answers_of_run(tmp_path, "PMI", "sat", "test", QUESTIONS) == [0, 1]
    with pytest.raises(RelvecError, match="has no predictions of GloVe for u2, test part; evaluate it first"):
        answers_of_run(tmp_path, "GloVe", "u2", "test", QUESTIONS)
    with pytest.raises(RelvecError, match=r"Unknown system 'Glove'; did you mean 'GloVe'"):
        answers_of_run(tmp_path, "Glove", "sat", "test", QUESTIONS)
    with pytest.raises(RelvecError, match="are not those of sat, test part"):
        answers_of_run(tmp_path, "GloVe", "sat", "test", QUESTIONS[::-1])


def test_the_answers_of_the_same_scoring_are_taken_if_there_are_any(tmp_path: Path) -> None:
    saved_run(tmp_path, (1, None))
    assert answers_of_run(tmp_path, "GloVe", "sat", "test", QUESTIONS, "bidirectional") == [1, None]
    saved_run(tmp_path, (2, None), scoring="bidirectional")
    assert answers_of_run(tmp_path, "GloVe", "sat", "test", QUESTIONS) == [1, None]
    assert answers_of_run(tmp_path, "GloVe", "sat", "test", QUESTIONS, "bidirectional") == [2, None]


def test_different_answers_of_an_evaluated_system_are_refused(tmp_path: Path) -> None:
    saved_run(tmp_path, (1, None))
    saved_run(tmp_path, (0, None), fingerprint="another seed")
    with pytest.raises(RelvecError, match=r"records of GloVe in .* differ in their answers; keep one of them"):
        answers_of_run(tmp_path, "GloVe", "sat", "test", QUESTIONS)
