import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from relvec import RelvecError
from relvec.analyses.unseen_category import UnseenCategory, unseen_category
from relvec.cli import analyse
from relvec.evaluation.records import load_records
from relvec.prompts.learned import Lengths, PromptResult
from relvec.training.recipe import Recipe

WORDS = ("oak", "rose", "cat", "tea", "car", "bread")


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four relations in four categories to train on, and ROOT09 with a few pairs a class."""
    monkeypatch.setenv("RELVEC_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "data"
    lines = ["relation,category,head,tail"]
    for category, word in (("1", "kind"), ("2", "part"), ("3", "maker"), ("4", "place")):
        lines += [f"{category}a,{category},{word} {number},{word} of {number}" for number in range(5)]
    (folder / "lexrel/root09").mkdir(parents=True)
    (folder / "relations.csv").write_text("\n".join(lines))
    labelled = [
        {"head": word, "tail": f"{label} {word}", "relation": label}
        for label in ("RANDOM", "HYPER", "COORD")
        for word in WORDS
    ]
    for part, rows in (("train", labelled), ("valid", labelled[::2]), ("test", labelled[1::2])):
        (folder / f"lexrel/root09/{part}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


@pytest.fixture
def recipe(data_dir: Path, tiny_folder: Path) -> Recipe:
    settings: dict[str, Any] = {
        "base": str(tiny_folder),
        "dropout": False,  # two steps shall lower the loss, else both models are the base
        "warmup_steps": 0,
        "data": [str(data_dir / "relations.csv")],
        "relations_per_batch": 2,
        "steps": 2,
        "evaluate_every": 1,
        "lora_rank": 2,
    }
    return Recipe().changed(settings)


def times(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_two_models_are_trained_and_compared_and_nothing_is_done_twice(
    recipe: Recipe, data_dir: Path, tmp_path: Path
) -> None:
    def run(wanted: Recipe = recipe) -> UnseenCategory:
        return unseen_category(
            wanted, "1", tmp_path / "out", ["root09"], data_dir=data_dir, runs=tmp_path / "runs", jobs=1
        )

    found = run()
    assert found.columns() == ["F1 (%)", "ROOT09"]
    assert [row[0] for row in found.rows()] == ["random", "hypernym", "co-hyponym", "macro", "micro"]
    records = {record.system: record for record in load_records(tmp_path / "runs")}
    assert set(records) == {"out/all", "out/without-1"}
    assert records["out/without-1"].metrics["macro_f1"] == found.trained_without["root09"]["macro"]
    assert records["out/without-1"].fingerprint != records["out/all"].fingerprint
    for name, excluded in (("all", None), ("without-1", ["1"])):
        config = json.loads((tmp_path / "out" / name / "config.json").read_text())
        assert config["relbert_config"]["training"]["recipe"].get("exclude_categories") == excluded

    before = times(tmp_path / "out") | times(tmp_path / "runs")
    assert run() == found
    assert times(tmp_path / "out") | times(tmp_path / "runs") == before

    (tmp_path / "out/without-1/checksums.sha256").unlink()  # as if the second training had been killed
    assert run() == found
    assert times(tmp_path / "out/all").items() <= before.items()

    with pytest.raises(RelvecError, match="out/all belongs to a run with another base"):
        run(recipe.changed({"steps": 3}))


def test_a_learned_prompt_is_no_other_recipe_the_second_time(
    recipe: Recipe, data_dir: Path, tiny_folder: Path, tmp_path: Path
) -> None:
    tokens = ["[h]", "is", "<mask>", "[t]"]
    PromptResult(
        method="autoprompt",
        base=str(tiny_folder),
        pooling="average",
        lengths=Lengths(0, 1, 0),
        seed=0,
        tokens=tokens,
        text=" ".join(tokens),
        train_loss=1.0,
        validation_loss=1.0,
        encodings=0,
        seconds=0.0,
    ).save(tmp_path / "prompt")
    prompted = recipe.changed({"prompt": str(tmp_path / "prompt")})
    first, second = (
        unseen_category(prompted, "1", tmp_path / "out", ["root09"], data_dir=data_dir, runs=tmp_path / "runs", jobs=1)
        for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize(
    ("category", "dataset", "message"),
    [
        ("9", "root09", "Unknown category '9'"),
        ("3", "root09", "leaves out the category '3' already"),
        ("1", "bless", r"lexrel/bless/train\.jsonl"),
    ],
)
def test_a_wrong_name_fails_before_anything_is_trained(
    recipe: Recipe, data_dir: Path, tmp_path: Path, category: str, dataset: str, message: str
) -> None:
    recipe = recipe.changed({"exclude_categories": ["3"]})
    with pytest.raises(RelvecError, match=message):
        unseen_category(recipe, category, tmp_path / "out", [dataset], data_dir=data_dir, runs=tmp_path / "runs")
    assert not (tmp_path / "out").exists()


def test_the_table_has_the_papers_rows_and_a_dash_for_a_class_that_a_dataset_lacks() -> None:
    bless = {"hypernym": 94.1, "event": 86.5, "zeal": 1.0, "macro": 92.2, "micro": 92.5}
    root = {"hypernym": 83.0, "macro": 90.5, "micro": 90.7}
    found = UnseenCategory("1", {"bless": {**bless, "hypernym": 93.3}, "mine": root}, {"bless": bless, "mine": root})
    assert found.columns() == ["F1 (%)", "BLESS", "mine"]
    assert found.rows() == [
        ["event", "86.5 (+0.0)", "-"],
        ["hypernym", "94.1 (+0.8)", "83.0 (+0.0)"],
        ["zeal", "1.0 (+0.0)", "-"],
        ["macro", "92.2 (+0.0)", "90.5 (+0.0)"],
        ["micro", "92.5 (+0.0)", "90.7 (+0.0)"],
    ]


def test_a_class_that_only_one_model_predicted_has_a_score_without_a_difference() -> None:
    found = UnseenCategory("1", {"mine": {"macro": 50.0}}, {"mine": {"synonym": 0.0, "macro": 40.0}})
    assert found.rows() == [["synonym", "0.0"], ["macro", "40.0 (-10.0)"]]


def test_the_command_prints_the_table_or_json(recipe: Recipe, data_dir: Path, tmp_path: Path) -> None:
    config = tmp_path / "recipe.toml"
    wanted = {name: getattr(recipe, name) for name in ("base", "data", "steps", "evaluate_every", "lora_rank")}
    config.write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in wanted.items()))
    words = ["unseen-category", "--category", "1", "--config", config, "--dataset", "root09", "--data-dir", data_dir]
    words += ["--output", tmp_path / "out", "--runs", tmp_path / "runs", "--jobs", "1"]
    as_json = CliRunner().invoke(analyse.app, [*map(str, words), "--json"], catch_exceptions=False)
    scores = json.loads(as_json.stdout)["trained_without"]["root09"]
    table = CliRunner().invoke(analyse.app, [*map(str, words)], catch_exceptions=False)
    rows = dict(line.split("\t") for line in table.stdout.splitlines())
    assert rows["F1 (%)"] == "ROOT09"
    assert rows["macro"].startswith(f"{scores['macro']:.1f} (")
