"""A model as a row of the tables: its name, its facts, and how it answers."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relvec import RelBERT, RelvecError
from relvec.data.benchmarks.analogy import Question
from relvec.evaluation.systems import CosineSolver, loaded_system, model_system, vector_system
from relvec.model.cached_vectors import ModelVectors
from relvec.prompts.learned import PromptResult

QUESTION = Question(("Paris", "France"), (("cup", "tea"), ("Tokyo", "Japan")), 1)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVEC_CACHE", str(tmp_path / "cache"))


def configured(folder: Path, target: Path, **changes: Any) -> Path:
    """A copy of a model folder with some keys of its configuration changed, or taken out if None."""
    shutil.copytree(folder, target)
    config = json.loads((target / "config.json").read_text())
    merged = {name: value for name, value in {**config, **changes}.items() if value is not None}
    (target / "config.json").write_text(json.dumps(merged))
    return target


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "tuned"),
        ({"template": "3"}, "tuned (template 3)"),
        ({"pooling": "mask"}, "tuned (mask)"),
        ({"template": "3", "pooling": "mask"}, "tuned (template 3, mask)"),
        ({"template": "3", "name": "mine"}, "mine"),
    ],
)
def test_a_name_tells_a_prompt_that_is_not_the_models_own(
    tiny_folder: Path, tmp_path: Path, options: dict[str, Any], name: str
) -> None:
    folder = configured(tiny_folder, tmp_path / "tuned")
    system = model_system(f"{folder}/", **options)
    assert system.name == name
    assert system.vectors is not None
    assert system.vectors.name == name


def test_the_solver_scores_as_asked(tiny: RelBERT, tmp_path: Path) -> None:
    vectors = ModelVectors(tiny, tmp_path)
    system = vector_system(vectors, {})
    for scoring in ("forward", "reverse", "bidirectional"):
        (found,) = system.solver_for("u2", "test", [QUESTION], scoring).scores([QUESTION])
        (expected,) = CosineSolver(vectors, scoring).scores([QUESTION])
        np.testing.assert_array_equal(found, expected)
    assert system.out_of_vocabulary is None


def test_a_model_that_was_never_tuned_on_relations_is_vanilla(tiny_folder: Path, tmp_path: Path) -> None:
    plain = configured(tiny_folder, tmp_path / "plain", relbert_config=None)
    assert model_system(str(tiny_folder)).facts["kind"] == "relation model"
    assert model_system(str(plain)).facts["kind"] == "vanilla"


def test_facts_come_from_the_training_record(tiny: RelBERT, tiny_folder: Path, tmp_path: Path) -> None:
    settings = json.loads((tiny_folder / "config.json").read_text())["relbert_config"]
    training = {"base": "mpnet", "recipe": {"data": ["bundled"], "loss": "infonce", "seed": 3}}
    folder = configured(tiny_folder, tmp_path / "tuned", relbert_config={**settings, "training": training})
    facts = loaded_system(RelBERT.from_pretrained(folder)).facts
    assert facts == {
        "kind": "relation model",
        "base": "mpnet",
        "template": tiny.template.text,
        "pooling": tiny.pooling,
        "data": ["bundled"],
        "loss": "infonce",
        "seed": 3,
    }


def test_the_base_of_a_model_trained_from_a_trained_one_is_the_language_model(
    tiny_folder: Path, tmp_path: Path
) -> None:
    settings = json.loads((tiny_folder / "config.json").read_text())["relbert_config"]
    training = {"base": "soft-prompt", "language_model": "mpnet"}
    folder = configured(tiny_folder, tmp_path / "tuned", relbert_config={**settings, "training": training})
    assert model_system(str(folder)).facts["base"] == "mpnet"


def test_what_is_not_known_is_no_fact(tiny_folder: Path) -> None:
    facts = model_system(str(tiny_folder)).facts
    assert facts.keys() == {"kind", "base", "template", "pooling"}
    assert facts["base"] == tiny_folder.name


def test_another_prompt_is_another_fingerprint(tiny_folder: Path) -> None:
    prints = set()
    for template, pooling in ((None, None), ("3", None), (None, "mask")):
        system = model_system(str(tiny_folder), template=template, pooling=pooling)
        assert system.vectors is not None
        prints.add(system.vectors.fingerprint)
    assert len(prints) == 3


def test_another_precision_is_another_fingerprint_and_a_fact(tiny_folder: Path) -> None:
    plain, rounded = model_system(str(tiny_folder)), model_system(str(tiny_folder), dtype="bfloat16")
    assert plain.vectors is not None
    assert rounded.vectors is not None
    assert plain.vectors.fingerprint != rounded.vectors.fingerprint
    assert rounded.facts == plain.facts | {"dtype": "bfloat16"}


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(RelvecError, match="no-such-model"):
        model_system("no-such-model")


def test_a_learned_prompt_stands_for_its_base_with_this_prompt(tiny_folder: Path, tmp_path: Path) -> None:
    about: dict[str, Any] = {"lengths": "1,1,0", "seed": 0, "train_loss": 1.0, "validation_loss": 1.0, "encodings": 1}
    about |= {
        "tokens": ["is", "[h]", "of", "[t]"],
        "text": "is [h] of [t]",
        "seconds": 1.0,
        "pooling": "average_no_mask",
    }
    PromptResult(method="autoprompt", base=str(tiny_folder), **about).save(tmp_path / "found")
    system = model_system(str(tmp_path / "found"))
    assert (system.name, system.facts["kind"]) == ("found", "vanilla")
    assert (system.facts["template"], system.facts["pooling"]) == ("is [h] of [t]", "average_no_mask")
