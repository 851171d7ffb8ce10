import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from relvec.model.adapter import adapter_config
from relvec.model.torch_backend import TorchRelBERT

Relvec = Callable[..., Any]
Refused = Callable[..., str]

QUICK = ["--steps", "2", "--set", "relations_per_batch=2", "--set", "evaluate_every=1"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three relations, one csv line a pair: five good ones and two bad ones each."""
    lines = ["relation,category,head,tail,score"]
    for relation in ("capital", "maker", "opposite"):
        lines += [f"{relation},{relation},{relation}{n},good{n},{10 + n}" for n in range(5)]
        lines += [f"{relation},{relation},{relation}{n},bad{n},{-n}" for n in range(2)]
    path = tmp_path / "relations.csv"
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("rank", ["0", "2"])
def test_train_and_merge_make_models_that_load(
    relvec: Relvec, tiny_folder: Path, data: Path, tmp_path: Path, rank: str
) -> None:
    model = tmp_path / "model"
    arguments = ["train", "--data", data, "--base", tiny_folder, "-o", model, "--lora", rank, "--set", "top=5", *QUICK]
    result = relvec(*arguments)
    assert result.code == 0, result.err
    assert "validation loss" in result.err
    found = json.loads(relvec(*arguments, "--json").out)  # finished before
    assert (found["output"], found["validation_loss"] <= found["validation_loss_before"]) == (str(model), True)
    assert (model / "adapter_config.json").exists() == (rank != "0")
    assert (model / "README.md").exists()
    assert relvec("merge", model, "-o", tmp_path / "plain").code == 0
    assert not (tmp_path / "plain" / "adapter_config.json").exists()
    assert (
        TorchRelBERT.from_pretrained(tmp_path / "plain").fingerprint == TorchRelBERT.from_pretrained(model).fingerprint
    )


def test_merge_leaves_what_it_finds_alone(refused: Refused, tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    shutil.copytree(tiny_folder, tmp_path / "mine")
    for rank in ("0", "2"):
        words = ["merge", tiny_folder, "--lora", rank, "-o"]
        assert "has a README.md that is not a model's" in refused(*words, tmp_path)
        assert "mine belongs to a run with another base" in refused(*words, tmp_path / "mine")
    assert "does not say what base" in refused(*words, tmp_path / "adapter")
    assert (tmp_path / "README.md").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "rate"),
    [(["--lora", "2"], 1e-3), (["--lora", "0"], 3e-5), (["--lora", "0", "--set", "learning_rate=1e-4"], 1e-4)],
)
def test_the_learning_rate_of_a_run_suits_what_is_trained(
    relvec: Relvec, tiny_folder: Path, data: Path, tmp_path: Path, options: list[str], rate: float
) -> None:
    assert relvec("train", "--data", data, "--base", tiny_folder, "-o", tmp_path / "model", *options, *QUICK).code == 0
    assert TorchRelBERT.from_pretrained(tmp_path / "model").training_record["recipe"]["learning_rate"] == rate


def test_merge_writes_the_mean_of_two_runs_as_an_adapter(
    relvec: Relvec, tiny_folder: Path, data: Path, tmp_path: Path
) -> None:
    runs = [tmp_path / "first", tmp_path / "second"]
    for seed, run in enumerate(runs):
        common = ["train", "--data", data, "--base", tiny_folder, "--lora", "2", "--set", f"seed={seed}", *QUICK]
        assert relvec(*common, "-o", run).code == 0
    assert relvec("merge", *runs, "--lora", "4", "-o", tmp_path / "mean").code == 0
    mean = TorchRelBERT.from_pretrained(tmp_path / "mean")
    recipe = mean.training_record["recipe"]
    assert (recipe["averaged"], recipe["seed"]) == (["first", "second"], [0, 1])
    assert "metrics" not in mean.training_record
    name = "encoder.layer.0.attention.self.query.weight"
    weights = [TorchRelBERT.from_pretrained(run).encoder.get_parameter(name).detach() for run in runs]
    torch.testing.assert_close(
        mean.encoder.get_parameter(name).detach(), (weights[0] + weights[1]) / 2, atol=1e-5, rtol=0
    )
    assert not torch.equal(*weights)


def test_merge_makes_one_adapter_of_a_pile(relvec: Relvec, tiny_folder: Path, data: Path, tmp_path: Path) -> None:
    lower, upper, both = tmp_path / "lower", tmp_path / "upper", tmp_path / "both"
    for base, run in ((tiny_folder, lower), (lower, upper)):
        assert relvec("train", "--data", data, "--base", base, "--lora", "2", "-o", run, *QUICK).code == 0
    assert relvec("merge", upper, "--lora", "4", "-o", both).code == 0
    assert adapter_config(both).base_model_name_or_path == str(tiny_folder)
    one, pile = TorchRelBERT.from_pretrained(both), TorchRelBERT.from_pretrained(upper)
    assert one.training_record["recipe"]["started_from"] == str(lower)
    name = "encoder.layer.0.attention.self.query.weight"
    torch.testing.assert_close(one.encoder.get_parameter(name), pile.encoder.get_parameter(name), atol=1e-5, rtol=0)


@pytest.mark.parametrize("rank", ["0", "4"])
def test_merge_never_replaces_what_it_reads(
    relvec: Relvec, refused: Refused, tiny_folder: Path, data: Path, tmp_path: Path, rank: str
) -> None:
    base, lower, upper = tmp_path / "base", tmp_path / "lower", tmp_path / "upper"
    shutil.copytree(tiny_folder, base)
    for below, run in ((base, lower), (lower, upper)):
        assert relvec("train", "--data", data, "--base", below, "--lora", "2", "-o", run, *QUICK).code == 0
    before = TorchRelBERT.from_pretrained(upper).fingerprint
    for output in (base, lower, upper):
        said = refused("merge", tiny_folder, upper, "--lora", rank, "-o", output)
        assert "holds the base that the new model needs; choose another output" in said
    assert TorchRelBERT.from_pretrained(upper).fingerprint == before


def test_merge_finds_the_base_of_an_adapter_from_any_working_directory(
    relvec: Relvec, tiny_folder: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny_folder.parent)
    run = tmp_path / "run"
    assert relvec("train", "--data", data, "--base", tiny_folder.name, "--lora", "2", "-o", run, *QUICK).code == 0
    monkeypatch.chdir(tmp_path)
    result = relvec("merge", "run", "--lora", "2", "-o", "merged")
    assert result.code == 0, result.err
    assert adapter_config(tmp_path / "merged").base_model_name_or_path == str(tiny_folder)
    assert str(tiny_folder) not in (tmp_path / "merged/README.md").read_text()


def test_training_replaces_no_model_of_another_recipe(
    relvec: Relvec, refused: Refused, tiny_folder: Path, data: Path, tmp_path: Path
) -> None:
    words = ["train", "--data", data, "--base", tiny_folder, "--lora", "0", "-o", tmp_path / "model", *QUICK]
    assert relvec(*words).code == 0
    for dry_run in ([], ["--dry-run"]):
        assert "belongs to a run with another base" in refused(*words, "--seed", "1", *dry_run)
    assert relvec(*words).code == 0


def test_a_dry_run_prints_the_size_and_writes_nothing(
    relvec: Relvec, tiny_folder: Path, data: Path, tmp_path: Path
) -> None:
    arguments = ["train", "--data", data, "--base", tiny_folder, "-o", tmp_path / "model", "--dry-run", *QUICK]
    result = relvec(*arguments)
    rows = dict(line.split("\t") for line in result.out.splitlines())
    assert (rows["relations"], rows["steps"]) == ("3", "2")
    plan = json.loads(relvec(*arguments, "--json").out)
    assert (plan["relations"], plan["steps"]) == (3, 2)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "nowhere.csv"], "nowhere.csv"),
        (["--data", "DATA", "--base", "no-such-base"], "Unknown model 'no-such-base'"),
        (["--data", "DATA", "--set", "steps"], "has no value; write --set name=value"),
        (["--data", "DATA", "--set", "steps=abc"], "steps is 'abc'; give a whole number"),
        (["--data", "DATA", "--set", "stps=3"], "did you mean 'steps'"),
        (["--data", "DATA", "--loss", "hinge"], "Unknown loss 'hinge'"),
        (["--data", "DATA", "--exclude-relation", "capitl"], "did you mean 'capital'"),
        (["--data", "DATA", "--set", "threshold=99"], "3 are needed"),
        (["--data", "DATA", "--loss", "triplet"], "has no negative pair for its triples"),
        (["--data", "DATA", "--lora", "-1"], "lora_rank is -1"),
        (["--data", "DATA", "--set", "exclude_benchmark_pairs=true"], "give their folder with --data-dir"),
        (["--data", "DATA", "--exclude-benchmark-pairs"], "give their folder with --data-dir"),
        (["--config", "nowhere.toml"], "Cannot read the recipe nowhere.toml"),
        (["--data", "semeval2012"], "semeval2012"),
    ],
)
def test_what_cannot_be_trained_is_one_line_and_exit_code_2(
    refused: Refused,
    tiny_folder: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    base = [] if "--base" in arguments else ["--base", tiny_folder]
    words = [str(data) if word == "DATA" else word for word in arguments]
    assert message in refused("train", *words, *base, "-o", tmp_path / "model", "--dry-run")
    assert not (tmp_path / "model").exists()
