"""A system on several datasets: what each record holds, when it is saved, and what need not be done again."""

import json
import re
from collections.abc import Sequence
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
from relvec.evaluation import mlp_grid
from relvec.evaluation import runner as suite
from relvec.evaluation.analogy import Scores
from relvec.evaluation.classification import Parts
from relvec.evaluation.fine_tuning import FineTuning
from relvec.evaluation.records import load_predictions, load_records
from relvec.evaluation.runner import (
    Fallback,
    analogy_records,
    classification_records,
    fine_tuning_records,
    loss_record,
    mapping_records,
)
from relvec.evaluation.systems import System, vector_system
from relvec.model import cached_vectors as vectors
from relvec.model.cached_vectors import ModelVectors
from relvec.pairs import Pair

Datasets = dict[str, Parts]

QUESTIONS = [
    Question(("Paris", "France"), (("cup", "tea"), ("Paris", "France")), 1, "gram1"),
    Question(("hot", "cold"), (("hot", "cold"), ("big", "bigger")), 0, "capital"),
]
PAIRS = LabelledPairs((("cat", "animal"), ("hot", "cold"), ("rose", "flower")), ("hypernym", "antonym", "hypernym"))
OTHERS = LabelledPairs((("hot", "cold"), ("cold", "hot"), ("oak", "tree")), ("antonym", "antonym", "hypernym"))


class Knowing:
    """Answers the first question right and knows no word of the others; its configuration is the dataset's name."""

    name = "knowing"
    fingerprint = "knowing"

    def __init__(self, dataset: str) -> None:
        self.configuration = {"tuned_on": dataset}

    def scores(self, questions: Sequence[Question]) -> list[Scores]:
        known = np.eye(2)[questions[0].answer]
        return [known, *(np.full(len(question.choices), np.nan) for question in questions[1:])]


def knowing(**more: Any) -> System:
    return System("knowing", lambda dataset, part, questions, scoring: Knowing(dataset), **more)


@pytest.fixture
def model(tiny: RelBERT, tmp_path: Path) -> System:
    return vector_system(ModelVectors(tiny, tmp_path / "cache", name="tiny"), {"kind": "relation model"})


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def test_each_dataset_is_saved_before_the_next_begins(model: System, runs: Path) -> None:
    found = analogy_records(model, {"u2": QUESTIONS, "u4": QUESTIONS}, "test", runs, command="relvec x")
    first = next(found)
    assert [record.dataset for record in load_records(runs)] == ["u2"]
    second = next(found)
    assert load_records(runs) == [first, second]
    assert [row["predicted"] for row in load_predictions(second, runs)] == [1, 0]
    assert (first.system, first.part, first.command, first.facts) == ("tiny", "test", "relvec x", model.facts)
    assert first.settings == {"scoring": "forward", "out_of_vocabulary": "wrong"}


def test_what_a_solver_was_tuned_to_is_in_each_record(model: System, runs: Path) -> None:
    records = analogy_records(knowing(), {"u2": QUESTIONS, "u4": QUESTIONS}, "test", runs)
    assert [record.metrics["configuration"]["tuned_on"] for record in records] == ["u2", "u4"]
    (plain,) = analogy_records(model, {"u2": QUESTIONS}, "test", runs)
    assert "configuration" not in plain.metrics


def test_the_fallback_is_named_in_the_record_and_gives_the_answers(runs: Path) -> None:
    for name, answer, accuracy in (("saved.jsonl:pmi", 0, 100.0), ("saved.jsonl:other", 1, 50.0)):
        fallback = Fallback(name, {"u2": [None, answer]})
        asked = analogy_records(
            knowing(), {"u2": QUESTIONS}, "test", runs, out_of_vocabulary="fallback", fallback=fallback
        )
        (record,) = asked
        assert record.settings["fallback"] == name
        assert record.metrics["accuracy"] == accuracy
    assert len(load_records(runs)) == 2  # another fallback is another result


def test_a_system_can_decide_how_unknown_words_count_and_then_has_no_fallback(runs: Path) -> None:
    chance = knowing(out_of_vocabulary="chance")
    (record,) = analogy_records(chance, {"u2": QUESTIONS}, "test", runs, out_of_vocabulary="wrong")
    assert record.settings == {"scoring": "forward", "out_of_vocabulary": "chance"}
    assert record.metrics["accuracy"] == 75
    fallback = Fallback("saved.jsonl:pmi", {"u2": [None, 0]})
    with pytest.raises(RelvecError, match=r"^knowing has no unknown words for the answers of saved.jsonl:pmi"):
        list(analogy_records(chance, {"u2": QUESTIONS}, "test", runs, out_of_vocabulary="fallback", fallback=fallback))


def test_no_word_of_a_benchmark_and_no_folder_is_in_a_record(model: System, runs: Path) -> None:
    list(analogy_records(model, {"sat": QUESTIONS, "/home/me/mine.jsonl": QUESTIONS}, "test", runs))
    list(classification_records(model, {"../root09": {"train": PAIRS, "test": PAIRS}}, runs, jobs=1))
    problem = MappingProblem(("cat", "oak"), ("animal", "tree"), (0, 1))
    list(mapping_records(model, {"~/problems.jsonl": [problem]}, runs))
    files = list(runs.glob("*/*.json"))
    assert len(files) == 4
    words = {word for pair in (*PAIRS.pairs, *(choice for q in QUESTIONS for choice in q.choices)) for word in pair}
    for file in files:
        text = f"{file.name} {file.read_text()}"
        assert words.isdisjoint(re.findall(r"\w+", text))
        assert not any(folder in text for folder in ("home", "../", "~"))
    datasets = sorted(record.dataset.rpartition("/")[2] for record in load_records(runs))
    assert datasets == ["mine.jsonl", "problems.jsonl", "root09", "sat"]


def test_a_classification_that_has_its_record_is_not_done_again(
    model: System, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets: Datasets = {"one": {"train": PAIRS, "test": PAIRS}}
    (first,) = classification_records(model, datasets, runs, jobs=1)
    fits: list[int] = []
    monkeypatch.setattr(suite, "evaluate_classification", lambda *_, **__: fits.append(1))
    assert list(classification_records(model, datasets, runs, jobs=1)) == [first]
    assert fits == []
    with pytest.raises(AttributeError):  # evaluated, by what does nothing here
        list(classification_records(model, datasets, runs, jobs=1, seed=1))


def test_both_directions_of_all_parts_are_encoded_once_over_all_datasets(
    model: System, tiny: RelBERT, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[Pair] = []
    encode = tiny._encode_distinct

    def counting(pairs: list[Pair], *settings: object) -> object:
        encoded.extend(pairs)
        return encode(pairs, *settings)  # type: ignore[arg-type]

    monkeypatch.setattr(tiny, "_encode_distinct", counting)
    monkeypatch.setattr(mlp_grid, "GRID", mlp_grid.GRID[:1])
    datasets: Datasets = {
        "one": {"train": PAIRS, "valid": OTHERS, "test": PAIRS},
        "two": {"train": OTHERS, "test": PAIRS},
    }
    list(classification_records(model, datasets, runs, jobs=1))
    distinct = {way for head, tail in (*PAIRS.pairs, *OTHERS.pairs) for way in ((head, tail), (tail, head))}
    assert sorted(encoded) == sorted(distinct)


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

    monkeypatch.setattr(vectors, "PAIRS_PER_STEP", 2)
    monkeypatch.setattr(tiny, "encode", killed)
    datasets: Datasets = {"one": {"train": PAIRS, "test": OTHERS}}
    with pytest.raises(KeyboardInterrupt):
        list(classification_records(model, datasets, runs, jobs=1))
    most = 99
    list(classification_records(model, datasets, runs, jobs=1))
    pairs = [pair for step in encoded for pair in step]
    assert len(pairs) == len(set(pairs)) == 8


def test_fine_tuning_is_told_apart_from_frozen_vectors(model: System, runs: Path) -> None:
    datasets: Datasets = {"one": {"train": PAIRS, "test": PAIRS}}
    (frozen,) = classification_records(model, datasets, runs, jobs=1, exclude_labels=())
    (tuned,) = fine_tuning_records(model, datasets, runs, recipe=FineTuning(epochs=1))
    assert (frozen.settings["classifier"], tuned.settings["classifier"]) == ("mlp", "fine-tuned")
    assert len(load_records(runs)) == 2


def test_excluded_labels_are_in_the_settings(model: System, runs: Path) -> None:
    three = LabelledPairs((*PAIRS.pairs, ("a", "b")), (*PAIRS.labels, "synonym"))
    datasets: Datasets = {"one": {"train": three, "test": three}}
    (record,) = classification_records(model, datasets, runs, jobs=1, exclude_labels=["synonym"])
    assert record.settings["without"] == "synonym"
    assert record.metrics["pairs"] == {"train": 3, "test": 3}


def test_a_label_is_excluded_from_the_datasets_that_have_it(model: System, runs: Path) -> None:
    three = LabelledPairs((*PAIRS.pairs, ("a", "b")), (*PAIRS.labels, "synonym"))
    datasets: Datasets = {"two": {"train": PAIRS, "test": PAIRS}, "three": {"train": three, "test": three}}
    found = classification_records(model, datasets, runs, jobs=1, exclude_labels=["synonym", "synonym"])
    assert [record.settings.get("without") for record in found] == [None, "synonym"]


def test_a_dataset_that_cannot_be_classified_is_named_before_any_work(model: System, runs: Path) -> None:
    same = LabelledPairs(PAIRS.pairs, ("synonym",) * len(PAIRS.pairs))
    datasets: Datasets = {"good": {"train": PAIRS, "test": PAIRS}, "bad": {"train": same, "test": same}}
    with pytest.raises(RelvecError, match=r"^bad: All training pairs have the same label"):
        list(classification_records(model, datasets, runs, jobs=1))
    with pytest.raises(RelvecError, match=r"^There is no label 'synonyms' to exclude; did you mean 'synonym'"):
        list(classification_records(model, datasets, runs, jobs=1, exclude_labels=["synonyms"]))
    assert not list(runs.glob("*"))


def test_unfinished_work_is_no_record_and_is_not_done_again(
    model: System, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets: Datasets = {"one": {"train": PAIRS, "test": PAIRS}}

    def kill(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(suite, "save_record", kill)
        with pytest.raises(KeyboardInterrupt):
            list(classification_records(model, datasets, runs, jobs=1))
    assert not runs.exists()
    monkeypatch.setattr(mlp_grid, "_fit", kill)
    list(classification_records(model, datasets, runs, jobs=1))
    assert len(load_records(runs)) == 1


def test_mapping_and_loss_have_records(model: System, runs: Path) -> None:
    problem = MappingProblem(("cat", "oak"), ("animal", "tree"), (0, 1))
    (mapped,) = mapping_records(model, {"mine": [problem]}, runs)
    assert (mapped.metrics["pairs"], mapped.metrics["out_of_vocabulary"]) == (4, 0)
    relations = load("bundled")[:10]
    lost, _ = (loss_record(model, data, relations, runs, loss="triplet") for data in ("bundled", "/home/me/bundled"))
    assert (lost.dataset, lost.settings) == ("bundled", {"loss": "triplet"})
    assert len(load_records(runs)) == 3
    assert {record.task for record in load_records(runs)} == {"mapping", "loss"}
    assert json.loads((runs / mapped.path).with_suffix(".predictions.jsonl").read_text())["source"] == ["cat", "oak"]


def test_what_a_system_cannot_do_is_refused(model: System, runs: Path) -> None:
    datasets: Datasets = {"one": {"train": PAIRS, "test": PAIRS}}
    answers = knowing()
    with pytest.raises(RelvecError, match=r"^knowing compares no vectors, so reverse scoring means nothing"):
        list(analogy_records(answers, {"u2": QUESTIONS}, "test", runs, scoring="reverse"))
    with pytest.raises(RelvecError, match=r"^knowing answers questions but has no vectors; choose a model"):
        list(classification_records(answers, datasets, runs))
    with pytest.raises(RelvecError, match="no vectors"):
        list(mapping_records(answers, {}, runs))

    class Table:
        name = "table"
        has_direction = False
        fingerprint = "table"

        def vectors(self, pairs: Sequence[Pair]) -> Any:
            return np.zeros((len(pairs), 2), dtype=np.float32), np.ones(len(pairs), dtype=bool)

    table = vector_system(Table(), {})
    with pytest.raises(RelvecError, match=r"^table has no encoder to fine-tune; choose a model"):
        list(fine_tuning_records(table, datasets, runs))
    with pytest.raises(RelvecError, match=r"^table is no model and has no loss; choose a model"):
        loss_record(table, "bundled", [], runs, loss="triplet")
