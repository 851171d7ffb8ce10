"""From a baseline's name and settings to a system: every name of the registry, and what each is told."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

from relvec.baselines import proportion_tuning
from relvec.baselines.baseline import Context
from relvec.baselines.proportion_tuning import Grid
from relvec.baselines.registry import BASELINES, chosen_settings
from relvec.data.benchmarks.analogy import Question
from relvec.errors import RelvecError
from relvec.evaluation.analogy import AnalogyTask
from relvec.evaluation.classification import pair_features
from relvec.evaluation.records import Record
from relvec.evaluation.systems import System
from relvec.evaluation.task import run_task

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
    chosen = chosen_settings(baseline, [f"{key}={value}" for key, value in (settings or {}).items()], task)
    return BASELINES[baseline].build(chosen, Context(PAIRS, task, name, Path("data")))


def evaluated(system: System) -> Record:
    (record,) = run_task(AnalogyTask(), system, {"u2": QUESTIONS}, "runs")
    return record


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
    assert 0 <= evaluated(system).metrics["accuracy"] <= 100


def test_chance_is_expected_and_saved_answers_are_taken() -> None:
    assert evaluated(build("random")).metrics["accuracy"] == 50
    assert evaluated(build("predictions", {"file": "saved.jsonl", "column": "mine"})).metrics["accuracy"] == 100


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


def test_the_settings_of_a_tuned_proportion_are_in_the_record(gpt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small = Grid(templates=("to-as", "what-to"), betas=(0.0,), positive=("index-0", "mean"))
    monkeypatch.setattr(proportion_tuning, "Grid", lambda: small)
    system = build("proportion", {"lm": gpt, "tuned": "true"})
    record = evaluated(system)
    found = record.metrics["configuration"]
    assert found["template"] in small.templates
    assert found.keys() >= {"score", "positive", "negative", "beta", "valid_accuracy", "ties"}
    assert system.name == "gpt, analogical proportion (tuned)"


def test_the_settings_of_a_fixed_proportion_are_in_the_record(gpt: str) -> None:
    system = build("proportion", {"lm": gpt, "template": "what-to"})
    record = evaluated(system)
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
    record = evaluated(one)
    assert record.metrics["configuration"] == {"shots": 1}
    with pytest.raises(RelvecError, match=r"mine\.jsonl has no validation part to learn from; choose a dataset"):
        one.solver_for("mine.jsonl", "test", QUESTIONS, "forward")


@pytest.mark.parametrize(
    ("baseline", "settings", "message"),
    [
        ("pmi", {"corpus": "corpus.txt", "window": "ten"}, "Baseline pmi: window is 'ten'; give a whole number."),
        ("pmi", {"corpus": "corpus.txt", "window": "0"}, "Baseline pmi: window is '0'; use 1 or more."),
        ("pmi", {"window": "5"}, "The baseline pmi needs corpus, a text file, .gz or not; give --set corpus=VALUE."),
        ("pmi", {"corpsu": "corpus.txt"}, "There is no setting 'corpsu'; did you mean 'corpus'."),
        ("pmi", {"corpus": ""}, "--set corpus= has no value; write --set name=value."),
        ("pim", {}, "Unknown baseline 'pim'; did you mean 'pmi'."),
        ("proportion", {"lm": "gpt", "kind": "casual"}, "kind is 'casual'; choose causal or masked."),
        ("proportion", {"lm": "gpt", "template": "to-sa"}, "did you mean 'to-as'"),
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


def test_only_vectors_can_be_classified() -> None:
    with pytest.raises(RelvecError, match="The baseline pmi cannot be scored on classification; it is for analogy"):
        build("pmi", {"corpus": "corpus.txt"}, task="classification")
    assert {name for name, baseline in BASELINES.items() if "classification" in baseline.tasks} == {
        "word-vectors",
        "pair-vectors",
    }


def test_the_registry_imports_neither_torch_nor_scikit_learn() -> None:
    code = "import sys, relvec.baselines.registry; sys.exit(bool({'torch', 'sklearn', 'openai'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
