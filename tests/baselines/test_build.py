"""From a baseline's name and settings to a system: every name of the registry, and what each is told."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

from relvec.baselines import proportion_tuning
from relvec.baselines.build import _BUILDERS, baseline_system
from relvec.baselines.proportion_tuning import Grid
from relvec.baselines.registry import BASELINES
from relvec.data.benchmarks.analogy import Question
from relvec.errors import RelvecError
from relvec.evaluation.classification import pair_features
from relvec.evaluation.runner import analogy_records
from relvec.evaluation.systems import System

QUESTIONS = [
    Question(("Paris", "France"), (("cup", "tea"), ("Tokyo", "Japan")), 1),
    Question(("hot", "cold"), (("big", "small"), ("cup", "tea")), 0),
]
PAIRS = [pair for question in QUESTIONS for pair in (question.stem, *question.choices)]
WORDS = sorted({word for pair in PAIRS for word in pair})


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    for name, keys in (("glove.txt", WORDS), ("relative.txt", [f"{head}__{tail}" for head, tail in PAIRS])):
        rows = random.normal(size=(len(keys), 4)).round(3).tolist()
        Path(name).write_text(
            "".join(f"{key} {' '.join(map(str, row))}\n" for key, row in zip(keys, rows, strict=True))
        )
    Path("corpus.txt").write_text("Paris is in France, Tokyo in Japan. A cup of tea.\nhot or cold, big or small\n")
    given = [{"dataset": "u2", "split": "test", "index": n, "answer": q.answer} for n, q in enumerate(QUESTIONS)]
    Path("saved.jsonl").write_text("\n".join(json.dumps({**row, "mine": row["answer"]}) for row in given))
    Path("data/analogy/u2").mkdir(parents=True)
    lines = [json.dumps({"stem": q.stem, "choice": q.choices, "answer": q.answer}) for q in QUESTIONS]
    Path("data/analogy/u2/valid.jsonl").write_text("\n".join(lines))


@pytest.fixture
def gpt(tiny_folder: Path) -> str:
    """The folder of a tiny causal language model."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_folder)
    sizes: dict[str, Any] = {"n_positions": 64, "n_embd": 16, "n_layer": 1, "n_head": 2}
    GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), bos_token_id=0, eos_token_id=2, **sizes)).save_pretrained(
        "gpt"
    )
    tokenizer.save_pretrained("gpt")
    return "gpt"


def build(baseline: str, settings: dict[str, str] | None = None, task: str = "analogy", name: str = "") -> System:
    return baseline_system(baseline, settings or {}, PAIRS, task=task, name=name, data_dir=Path("data"))


def accuracy(system: System, asked: Sequence[Question] = QUESTIONS) -> float:
    (record,) = analogy_records(system, {"u2": asked}, "test", "runs")
    return float(record.metrics["accuracy"])


def test_every_baseline_of_the_registry_can_be_built() -> None:
    assert _BUILDERS.keys() == BASELINES.keys()


@pytest.mark.parametrize(
    ("baseline", "settings", "name"),
    [
        ("random", {}, "Random"),
        ("pmi", {"corpus": "corpus.txt"}, "PMI"),
        ("pmi", {"corpus": "corpus.txt", "window": "10"}, "PMI"),
        ("pmi", {"corpus": "corpus.txt", "window": "2"}, "PMI (window 2)"),
        ("word-vectors", {"vectors": "glove.txt"}, "glove: diff"),
        ("word-vectors", {"vectors": "glove.txt", "features": "cat+dot"}, "glove: cat+dot"),
        ("word-vectors", {"vectors": "glove.txt", "pairs": "relative.txt"}, "glove: diff+relative"),
        ("pair-vectors", {"pairs": "relative.txt"}, "relative"),
        ("predictions", {"file": "saved.jsonl", "column": "mine"}, "mine"),
    ],
)
def test_a_baseline_has_a_name_of_its_own_or_the_users(baseline: str, settings: dict[str, str], name: str) -> None:
    system = build(baseline, settings)
    assert system.name == name
    assert system.facts == {"kind": "baseline"}
    assert build(baseline, settings, name="mine").name == "mine"
    assert 0 <= accuracy(system) <= 100


def test_random_choice_counts_as_chance() -> None:
    assert build("random").out_of_vocabulary == "chance"
    assert accuracy(build("random")) == 50


def test_saved_answers_are_taken() -> None:
    assert accuracy(build("predictions", {"file": "saved.jsonl", "column": "mine"})) == 100


def test_only_vectors_can_be_classified() -> None:
    assert build("word-vectors", {"vectors": "glove.txt"}).vectors is not None
    assert build("pair-vectors", {"pairs": "relative.txt"}).vectors is not None
    assert build("pmi", {"corpus": "corpus.txt"}).vectors is None


@pytest.mark.parametrize(
    ("features", "pairs", "columns"),
    [("diff", "", 4), ("cat", "", 8), ("diff+dot", "", 8), ("cat+dot", "", 12), ("cat+dot", "relative.txt", 20)],
)
def test_a_classifier_sees_the_papers_features(features: str, pairs: str, columns: int) -> None:
    settings = {"vectors": "glove.txt", "features": features, **({"pairs": pairs} if pairs else {})}
    system = build("word-vectors", settings, task="classification")
    assert system.vectors is not None
    found, known = pair_features(system.vectors, PAIRS)
    assert found.shape == (len(PAIRS), columns)
    assert known.all()


def test_pair_vectors_are_joined_in_both_directions_only_for_classification() -> None:
    settings = {"vectors": "glove.txt", "pairs": "relative.txt"}
    analogy, classification = (build("word-vectors", settings, task=task) for task in ("analogy", "classification"))
    assert analogy.vectors is not None
    assert classification.vectors is not None
    assert analogy.vectors.vectors(PAIRS)[0].shape[1] == 8
    assert classification.vectors.vectors(PAIRS)[0].shape[1] == 12


def test_the_settings_of_a_tuned_proportion_are_in_the_record(gpt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small = Grid(templates=("to-as", "what-to"), betas=(0.0,), positive=("index-0", "mean"))
    monkeypatch.setattr(proportion_tuning, "Grid", lambda: small)
    system = build("proportion", {"lm": gpt, "tuned": "true"})
    (record,) = analogy_records(system, {"u2": QUESTIONS}, "test", "runs")
    found = record.metrics["configuration"]
    assert found["template"] in small.templates
    assert found.keys() >= {"score", "positive", "negative", "beta", "valid_accuracy", "ties"}
    assert system.name == "gpt, analogical proportion (tuned)"


def test_the_settings_of_a_fixed_proportion_are_in_the_record(gpt: str) -> None:
    system = build("proportion", {"lm": gpt, "template": "what-to"})
    (record,) = analogy_records(system, {"u2": QUESTIONS}, "test", "runs")
    assert record.metrics["configuration"]["template"] == "what-to"
    assert "valid_accuracy" not in record.metrics["configuration"]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "gpt, analogical proportion"),
        ({"template": "to-as"}, "gpt, analogical proportion"),
        ({"template": "rel-same"}, "gpt, analogical proportion (template rel-same)"),
        ({"template": "rel-same", "kind": "causal"}, "gpt, analogical proportion (causal, template rel-same)"),
    ],
)
def test_a_proportion_is_called_by_its_unusual_settings(gpt: str, settings: dict[str, str], name: str) -> None:
    assert build("proportion", {"lm": gpt, **settings}).name == name


def test_shots_come_from_the_validation_part(gpt: str) -> None:
    zero, one = (build("few-shot", {"lm": gpt, "shots": shots}) for shots in ("0", "1"))
    assert (zero.name, one.name) == ("gpt (zero-shot)", "gpt (1-shot)")
    prints = {system.solver_for("u2", "test", QUESTIONS, "forward").fingerprint for system in (zero, one)}
    assert len(prints) == 2
    assert build("few-shot", {"lm": gpt, "shots": "1", "seed": "3"}).facts == {"kind": "baseline", "seed": 3}
    (record,) = analogy_records(one, {"u2": QUESTIONS}, "test", "runs")
    assert record.metrics["configuration"] == {"shots": 1}
    with pytest.raises(RelvecError, match=r"mine\.jsonl has no validation part to learn from; choose a dataset"):
        one.solver_for("mine.jsonl", "test", QUESTIONS, "forward")


@pytest.mark.parametrize(
    ("baseline", "settings", "message"),
    [
        ("pmi", {"corpus": "corpus.txt", "window": "ten"}, "window cannot be 'ten'; give a whole number."),
        ("pmi", {"corpus": "corpus.txt", "window": "9" * 5000}, "window cannot have 5,000 digits; give a smaller"),
        ("proportion", {"lm": "gpt", "tuned": "yes"}, "tuned cannot be 'yes'; give true or false."),
        ("proportion", {"lm": "gpt", "kind": "casual"}, "kind cannot be 'casual'; give causal or masked."),
        ("proportion", {"lm": "gpt", "tuned": "true", "template": "to-as"}, "leave out template."),
        ("word-vectors", {"vectors": "glove.txt", "features": "dif"}, "did you mean 'diff'"),
        ("word-vectors", {"vectors": "none.txt"}, "none.txt"),
        ("pair-vectors", {"pairs": "glove.txt"}, "holds no pair vectors"),
    ],
)
def test_a_setting_that_does_not_fit_is_refused(baseline: str, settings: dict[str, str], message: str) -> None:
    with pytest.raises(RelvecError) as error:
        build(baseline, settings)
    assert message in str(error.value)
