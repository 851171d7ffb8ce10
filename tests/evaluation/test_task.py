"""A system on several datasets: what each record holds, when it is saved, and what need not be done again."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relvec import RelBERT
from relvec.data.benchmarks.analogy import Question
from relvec.data.benchmarks.classification import LabelledPairs
from relvec.data.benchmarks.mapping import MappingProblem
from relvec.data.sources import load
from relvec.errors import RelvecError
from relvec.evaluation import evaluate, mlp_grid
from relvec.evaluation import task as task_module
from relvec.evaluation.analogy import AnalogyTask, Fallback
from relvec.evaluation.classification import ClassificationTask, Parts
from relvec.evaluation.fine_tuning import FineTuning
from relvec.evaluation.mapping import MappingTask
from relvec.evaluation.records import RECORDS_NAME, Record, load_predictions, load_records
from relvec.evaluation.systems import Scores, System, vector_system
from relvec.evaluation.task import Task, percent_interval, run_task
from relvec.evaluation.validation_loss import LossTask
from relvec.model import cached_vectors
from relvec.model.cached_vectors import ModelVectors
from relvec.pairs import Pair

Datasets = dict[str, Parts]

QUESTIONS = [
    Question(("Paris", "France"), (("cup", "tea"), ("Paris", "France")), 1, "gram1"),
    Question(("hot", "cold"), (("hot", "cold"), ("big", "bigger")), 0, "capital"),
]
PAIRS = LabelledPairs((("cat", "animal"), ("hot", "cold"), ("rose", "flower")), ("hypernym", "antonym", "hypernym"))
THREE = LabelledPairs((*PAIRS.pairs, ("a", "b")), (*PAIRS.labels, "synonym"))
OTHERS = LabelledPairs((("hot", "cold"), ("cold", "hot"), ("oak", "tree")), ("antonym", "antonym", "hypernym"))
ONE: Datasets = {"one": {"train": PAIRS, "test": PAIRS}}
PROBLEM = MappingProblem(("cat", "oak"), ("animal", "tree"), (0, 1))


class Knowing:
    """Answers the first question right and knows no word of the others; its configuration is the dataset's name."""

    name = "knowing"
    fingerprint = "knowing"

    def __init__(self, dataset: str) -> None:
        self.configuration = {"tuned_on": dataset}

    def scores(self, questions: Sequence[Question]) -> list[Scores]:
        known = np.eye(2)[questions[0].answer]
        return [known, *(np.full(len(question.choices), np.nan) for question in questions[1:])]


class Table:
    """Vectors without a model."""

    name = "table"
    has_direction = False
    fingerprint = "table"

    def vectors(self, pairs: Sequence[Pair]) -> Any:
        return np.zeros((len(pairs), 2), dtype=np.float32), np.ones(len(pairs), dtype=bool)


def knowing(**more: Any) -> System:
    return System("knowing", lambda dataset, part, questions, scoring: Knowing(dataset), **more)


@pytest.fixture
def model(tiny: RelBERT, tmp_path: Path) -> System:
    return vector_system(ModelVectors(tiny, tmp_path / "cache", name="tiny"), {"kind": "relation model"})


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def _always(answer: int) -> Callable[..., list[int | None]]:
    return lambda dataset, part, questions, scoring: [answer] * len(questions)


def records(task: Task[Any], system: System, data: dict[str, Any], runs: Path) -> list[Record]:
    return list(run_task(task, system, data, runs))


def test_each_dataset_is_saved_before_the_next_begins(model: System, runs: Path) -> None:
    found = run_task(AnalogyTask(), model, {"u2": QUESTIONS, "u4": QUESTIONS}, runs, command="relvec x")
    first = next(found)
    assert [record.dataset for record in load_records(runs)] == ["u2"]
    second = next(found)
    assert load_records(runs) == [first, second]
    assert [row["predicted"] for row in load_predictions(second, runs)] == [1, 0]
    assert (first.system, first.part, first.command, first.facts) == ("tiny", "test", "relvec x", model.facts)
    assert first.settings == {"scoring": "forward", "out_of_vocabulary": "wrong"}


def test_what_a_solver_was_tuned_to_is_in_each_record(model: System, runs: Path) -> None:
    tuned = records(AnalogyTask(), knowing(), {"u2": QUESTIONS, "u4": QUESTIONS}, runs)
    assert [record.metrics["configuration"]["tuned_on"] for record in tuned] == ["u2", "u4"]
    (plain,) = records(AnalogyTask(), model, {"u2": QUESTIONS}, runs)
    assert "configuration" not in plain.metrics


def test_the_fallback_is_named_in_the_record_and_gives_the_answers(runs: Path) -> None:
    for name, answer, accuracy in (("saved.jsonl:pmi", 0, 100.0), ("PMI", 1, 50.0)):
        task = AnalogyTask(out_of_vocabulary="fallback", fallback=Fallback(name, _always(answer)))
        (record,) = records(task, knowing(), {"u2": QUESTIONS}, runs)
        assert record.settings["fallback"] == name
        assert record.metrics["accuracy"] == accuracy
    assert len(load_records(runs)) == 2  # another fallback is another result
    with pytest.raises(RelvecError, match="--out-of-vocabulary fallback and --fallback go together; give both"):
        AnalogyTask(out_of_vocabulary="fallback")


def test_a_system_can_decide_how_unknown_words_count_and_then_has_no_fallback(runs: Path) -> None:
    chance = knowing(out_of_vocabulary="chance")
    (record,) = records(AnalogyTask(out_of_vocabulary="wrong"), chance, {"u2": QUESTIONS}, runs)
    assert record.settings == {"scoring": "forward", "out_of_vocabulary": "chance"}
    assert record.metrics["accuracy"] == 75
    task = AnalogyTask(out_of_vocabulary="fallback", fallback=Fallback("PMI", _always(0)))
    with pytest.raises(RelvecError, match=r"^knowing has no unknown words for the answers of PMI"):
        records(task, chance, {"u2": QUESTIONS}, runs)


def test_no_word_of_a_benchmark_and_no_folder_is_in_a_record(model: System, runs: Path) -> None:
    records(AnalogyTask(), model, {"sat": QUESTIONS, "/home/me/mine.jsonl": QUESTIONS}, runs)
    records(ClassificationTask(jobs=1), model, {"../root09": ONE["one"]}, runs)
    records(MappingTask(), model, {"~/problems.jsonl": [PROBLEM]}, runs)
    text = (runs / RECORDS_NAME).read_text()
    words = {word for pair in (*PAIRS.pairs, *(choice for q in QUESTIONS for choice in q.choices)) for word in pair}
    assert words.isdisjoint(re.findall(r"\w+", text))
    assert not any(folder in text for folder in ("home", "../", "~"))
    datasets = sorted(record.dataset.rpartition("/")[2] for record in load_records(runs))
    assert datasets == ["mine.jsonl", "problems.jsonl", "root09", "sat"]


def test_a_classification_that_has_its_record_is_not_done_again(
    model: System, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = records(ClassificationTask(jobs=1), model, ONE, runs)

    def evaluated(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ClassificationTask, "run", evaluated)
    assert records(ClassificationTask(jobs=1), model, ONE, runs) == first
    with pytest.raises(KeyboardInterrupt):
        records(ClassificationTask(jobs=1, seed=1), model, ONE, runs)
    with pytest.raises(KeyboardInterrupt):
        records(ClassificationTask(jobs=1), model, {"one": {"train": PAIRS, "test": OTHERS}}, runs)


def test_a_kill_loses_no_more_than_one_step_of_encoding(
    model: System, tiny: RelBERT, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[list[Pair]] = []
    encode, most = tiny.encode, 2

    def killed(pairs: Sequence[Pair], **settings: Any) -> Any:
        if len(encoded) == most:
            raise KeyboardInterrupt
        encoded.append(list(pairs))
        return encode(pairs, **settings)

    monkeypatch.setattr(cached_vectors, "PAIRS_PER_STEP", 2)
    monkeypatch.setattr(tiny, "encode", killed)
    datasets: Datasets = {"one": {"train": PAIRS, "test": OTHERS}}
    with pytest.raises(KeyboardInterrupt):
        records(ClassificationTask(jobs=1), model, datasets, runs)
    most = 99
    records(ClassificationTask(jobs=1), model, datasets, runs)
    pairs = [pair for step in encoded for pair in step]
    assert len(pairs) == len(set(pairs)) == 8


def test_fine_tuning_is_told_apart_from_frozen_vectors(model: System, runs: Path) -> None:
    (frozen,) = records(ClassificationTask(jobs=1), model, ONE, runs)
    (tuned,) = records(ClassificationTask(fine_tuning=FineTuning(epochs=1)), model, ONE, runs)
    assert (frozen.settings["classifier"], tuned.settings["classifier"]) == ("mlp", "fine-tuned")
    assert load_records(runs) == [frozen, tuned]
    assert not list((runs / "work").glob("*"))


def test_a_label_is_excluded_from_the_datasets_that_have_it(model: System, runs: Path) -> None:
    datasets: Datasets = {**ONE, "three": {"train": THREE, "test": THREE}}
    found = records(ClassificationTask(jobs=1, exclude_labels=["synonym", "synonym"]), model, datasets, runs)
    assert [record.settings.get("without") for record in found] == [None, "synonym"]
    assert found[1].metrics["pairs"] == {"train": 3, "test": 3}


def test_a_dataset_that_cannot_be_classified_is_named_before_any_work(model: System, runs: Path) -> None:
    same = LabelledPairs(PAIRS.pairs, ("synonym",) * len(PAIRS.pairs))
    datasets: Datasets = {**ONE, "bad": {"train": same, "test": same}}
    with pytest.raises(RelvecError, match=r"^bad: All training pairs have the same label"):
        records(ClassificationTask(), model, datasets, runs)
    with pytest.raises(RelvecError, match=r"^Unknown label 'synonyms'; did you mean 'synonym'"):
        records(ClassificationTask(exclude_labels=["synonyms"]), model, datasets, runs)
    assert not runs.exists()


def test_unfinished_work_is_no_record_and_is_not_done_again(
    model: System, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(task_module, "save_record", kill)
        with pytest.raises(KeyboardInterrupt):
            records(ClassificationTask(jobs=1), model, ONE, runs)
    assert not runs.exists()
    monkeypatch.setattr(mlp_grid, "_fit", kill)
    records(ClassificationTask(jobs=1), model, ONE, runs)
    assert len(load_records(runs)) == 1


def test_mapping_and_loss_have_records(model: System, runs: Path) -> None:
    (mapped,) = records(MappingTask(), model, {"mine": [PROBLEM]}, runs)
    assert (mapped.metrics["pairs"], mapped.metrics["out_of_vocabulary"]) == (4, 0)
    assert load_predictions(mapped, runs)[0]["source"] == ["cat", "oak"]
    relations = load("bundled")[:10]
    lost, _ = records(LossTask(), model, {"bundled": relations, "/home/me/bundled": relations}, runs)
    assert (lost.dataset, lost.part, lost.settings) == ("bundled", "valid", {"loss": "triplet"})
    assert [record.task for record in load_records(runs)] == ["mapping", "loss", "loss"]


@pytest.mark.parametrize(
    ("task", "system", "message"),
    [
        (AnalogyTask(scoring="reverse"), knowing(), "knowing compares no vectors, so reverse scoring means nothing"),
        (ClassificationTask(), knowing(), "knowing answers questions but has no vectors; choose a model"),
        (MappingTask(), knowing(), "knowing answers questions but has no vectors; choose a model"),
        (ClassificationTask(fine_tuning=FineTuning()), vector_system(Table(), {}), "table has no encoder to fine-tune"),
        (LossTask(), vector_system(Table(), {}), "table is not a model and has no loss; choose a model"),
    ],
)
def test_what_a_system_cannot_do_is_refused(task: Task[Any], system: System, message: str, runs: Path) -> None:
    with pytest.raises(RelvecError, match=f"^{message}"):
        records(task, system, ONE, runs)


def test_one_call_evaluates_a_model_by_name_or_a_system(tiny_folder: Path, model: System, tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text('{"stem": ["a", "b"], "choice": [["c", "d"], ["a", "b"]], "answer": 1}')
    asked: dict[str, Any] = {"datasets": [str(tmp_path / "mine.jsonl")], "scoring": "bidirectional"}
    (by_name,) = evaluate(tiny_folder, **asked)
    (kept,) = evaluate(model, **asked, runs=tmp_path / "runs")
    assert by_name.metrics == kept.metrics
    assert load_records(tmp_path / "runs") == [kept]
    with pytest.raises(RelvecError, match="did you mean 'analogy'"):
        evaluate(model, "analogie")


@pytest.mark.parametrize(
    ("task", "settings", "message"),
    [
        ("classification", {"part": "valid"}, "Unknown setting of classification 'part'; choose one of exclude_labels"),
        ("loss", {"part": "test"}, "Unknown setting of loss 'part'; choose one of loss"),
        ("mapping", {"part": "valid"}, "Unknown setting of mapping 'part'; there is none"),
        ("analogy", {"scorings": "forward"}, "Unknown setting of analogy 'scorings'; did you mean 'scoring'"),
    ],
)
def test_a_setting_that_a_task_has_not_is_refused(
    model: System, task: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(RelvecError, match=f"^{message}"):
        evaluate(model, task, **settings)


def test_the_interval_is_that_of_drawing_the_values_one_by_one() -> None:
    values = np.random.default_rng(1).choice([0.0, 0.25, 1.0], size=80)
    drawn = np.random.default_rng(2).choice(values, size=(20_000, 80)).mean(axis=1)
    assert percent_interval(values) == pytest.approx(100 * np.quantile(drawn, [0.025, 0.975]), abs=1)
    assert percent_interval(np.ones(5)) == [100.0, 100.0]


def test_a_loaded_model_is_described_by_its_own_prompt(tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text('{"stem": ["a", "b"], "choice": [["c", "d"], ["a", "b"]], "answer": 1}\n')
    for template in ("[h] <mask> [t]", "[t] of [h] <mask>"):
        model = RelBERT.from_pretrained(tiny_folder, template=template)
        (record,) = evaluate(model, "analogy", datasets=tmp_path / "mine.jsonl")
        assert record.facts["template"] == template
