import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relvec import RelBERT, RelvecError
from relvec.learned_prompts.settings import Subject
from relvec.prompts.learned import PromptResult
from relvec.training.recipe import Recipe
from relvec.training.run import with_prompt

Relvec = Callable[..., Any]
Refused = Callable[..., str]

LEARN: dict[str, list[str]] = {
    "autoprompt": ["--iterations", "2", "--candidates", "3"],
    "ptuning": ["--steps", "2"],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Six relations in two categories, one csv line a pair: ten good ones and three bad ones each."""
    lines = ["relation,category,head,tail,score"]
    for number, relation in enumerate(("capital", "maker", "opposite", "kind", "part", "place")):
        lines += [f"{relation},{number % 2},{relation}{n},good{n},{10 + n}" for n in range(10)]
        lines += [f"{relation},{number % 2},{relation}{n},bad{n},{-n}" for n in range(3)]
    path = tmp_path / "relations.csv"
    path.write_text("\n".join(lines))
    return path


def test_manual_marks_the_template_with_the_lowest_loss(relvec: Relvec, tiny_folder: Path, data: Path) -> None:
    arguments = ["prompt", "manual", "--base", tiny_folder, "--data", data]
    table = relvec(*arguments)
    assert table.code == 0, table.err
    rows = [line.split("\t") for line in table.out.splitlines()[1:]]
    found = json.loads(relvec(*arguments, "--json").out)
    losses = {each["number"]: each["validation_loss"] for each in found["templates"]}
    assert len(rows) == len(losses) == 5
    assert found["best"] == min(losses, key=losses.__getitem__)
    assert [int(row[0]) for row in rows if row[2] == "best"] == [found["best"]]


def test_benchmark_pairs_can_be_left_out(data: Path, tmp_path: Path) -> None:
    benchmark = tmp_path / "lexrel" / "mine" / "test.jsonl"
    benchmark.parent.mkdir(parents=True)
    benchmark.write_text(json.dumps({"head": "good3", "tail": "Capital3", "relation": "any"}))
    everything, fair = (
        {
            pair
            for relation in Subject(data=[str(data)], exclude_benchmark_pairs=excluded).relations(tmp_path)
            for pair in (*relation.positives, *relation.negatives)
        }
        for excluded in (False, True)
    )
    assert everything - fair == {("capital3", "good3")}


@pytest.mark.parametrize("method", LEARN)
def test_a_learned_prompt_is_printed_saved_and_fine_tuned_with(
    relvec: Relvec, tiny_folder: Path, data: Path, tmp_path: Path, method: str
) -> None:
    prompt, model = tmp_path / "prompt", tmp_path / "model"
    arguments = ["prompt", method, "--base", tiny_folder, "--data", data, "--lengths", "2,1,1", "-o", prompt]
    result = relvec(*arguments, *LEARN[method])
    assert result.code == 0, result.err
    assert "times as many" in result.out
    again = json.loads(relvec(*arguments, *LEARN[method], "--json").out)
    stored = json.loads((prompt / "prompt.json").read_text())
    assert stored.pop("checksum")
    assert again == {**stored, "folder": str(prompt)}
    assert again["settings"]["data"] == [str(data)]
    assert again["settings"]["exclude_benchmark_pairs"] is False
    trained = relvec(
        *("train", "--prompt", prompt, "--data", data, "-o", model, "--steps", "1", "--set", "relations_per_batch=2")
    )
    assert trained.code == 0, trained.err
    loaded = RelBERT.from_pretrained(model)
    assert loaded.template.tokens == tuple(again["tokens"])
    assert loaded.pooling == "average"


def test_search_prints_the_best_lengths_first(relvec: Relvec, tiny_folder: Path, data: Path, tmp_path: Path) -> None:
    grid = ["--lengths", "1-2,1,1", "-o", tmp_path / "grid", "--iterations", "1", "--candidates", "2"]
    arguments = ["prompt", "search", "--base", tiny_folder, "--data", data, *grid]
    result = relvec(*arguments)
    assert result.code == 0, result.err
    rows = [line.split("\t") for line in result.out.splitlines()[1:]]
    assert [row[3] for row in rows] == ["best", ""]
    assert float(rows[0][2]) <= float(rows[1][2])
    found = json.loads(relvec(*arguments, "--json").out)
    assert [each["lengths"] for each in found] == [row[0] for row in rows]
    assert f"relvec train --prompt {found[0]['folder']}" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["autoprompt", "--lengths", "8,x,2"], "'8,x,2' are not three numbers"),
        (["autoprompt", "--lengths", "0,0,0"], "give it at least one trigger"),
        (["autoprompt", "--data", "nowhere.csv"], "nowhere.csv"),
        (["autoprompt", "--base", "no-such-base"], "Unknown model 'no-such-base'"),
        (["autoprompt", "--pooling", "mask"], "'mask' is not one of 'average', 'average_no_mask'"),
        (["autoprompt", "--seed", str(2**32)], "4294967295"),
        (["autoprompt", "--lengths", "80,1,1"], "give fewer --lengths"),
        (["autoprompt", "--candidates", "0"], "use 1 or more"),
        (["autoprompt", "--exclude-benchmark-pairs"], "give their folder with --data-dir"),
        (["ptuning", "--epochs", "0"], "epochs is 0.0; use a number above 0"),
        (["search", "--method", "autoprmpt"], "Unknown method 'autoprmpt'; did you mean 'autoprompt'"),
        (["search", "--method", "ptuning", "--exhaustive"], "ptuning: There is no setting 'exhaustive'"),
        (["search", "--lengths", "9-8,1,1"], "write the smaller number first"),
    ],
)
def test_what_cannot_be_searched_is_one_line_and_exit_code_2(
    refused: Refused, tiny_folder: Path, data: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    defaults = {"--base": str(tiny_folder), "--data": str(data), "-o": str(tmp_path / "prompt")}
    missing = [word for name, value in defaults.items() if name not in arguments for word in (name, value)]
    assert message in refused("prompt", *arguments, *missing)


@pytest.fixture
def prompt(relvec: Relvec, tiny_folder: Path, data: Path, tmp_path: Path) -> Path:
    """A prompt that AutoPrompt has found."""
    folder = tmp_path / "prompt"
    arguments = ["prompt", "autoprompt", "--base", tiny_folder, "--data", data, "--lengths", "1,0,0", "-o", folder]
    assert relvec(*arguments, *LEARN["autoprompt"]).code == 0
    return folder


@pytest.mark.parametrize("rank", ["0", "2"])
def test_training_does_not_write_into_the_folder_of_its_prompt(
    refused: Refused, data: Path, prompt: Path, rank: str
) -> None:
    before = {path.name for path in prompt.iterdir()}
    words = ["train", "--prompt", prompt, "--data", data, "--steps", "1", "--lora", rank, "-o", prompt]
    assert "holds the learned prompt itself; choose another output" in refused(*words)
    assert {path.name for path in prompt.iterdir()} == before


def test_an_autoprompt_beside_a_model_is_still_trained_on_its_own_base(
    tiny_folder: Path, tiny_folders: Callable[[str], Path], prompt: Path
) -> None:
    shutil.copytree(tiny_folders("bert"), prompt, dirs_exist_ok=True)
    assert with_prompt(Recipe(prompt=str(prompt)))[0].base == str(tiny_folder.resolve())


def test_a_base_that_has_moved_is_named_with_the_way_out(
    relvec: Relvec, tiny_folder: Path, data: Path, tmp_path: Path
) -> None:
    base, folder = Path(shutil.copytree(tiny_folder, tmp_path / "base")), tmp_path / "prompt"
    arguments = ["prompt", "autoprompt", "--data", data, "--lengths", "1,0,0", "-o", folder, *LEARN["autoprompt"]]
    assert relvec(*arguments, "--base", base).code == 0
    base.rename(tmp_path / "moved")
    with pytest.raises(RelvecError, match=r"is gone; repeat `relvec prompt autoprompt -o .*` with"):
        with_prompt(Recipe(prompt=str(folder)))
    assert relvec(*arguments, "--base", tmp_path / "moved").code == 0
    assert with_prompt(Recipe(prompt=str(folder)))[0].base == str((tmp_path / "moved").resolve())


def test_outputs_may_be_in_the_home_folder(
    relvec: Relvec, tiny_folder: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    shared = ["--base", tiny_folder, "--data", data, "--lengths", "1,0,0"]
    assert relvec("prompt", "autoprompt", *shared, *LEARN["autoprompt"], "--output=~/auto").code == 0
    assert relvec("prompt", "search", *shared, *LEARN["autoprompt"], "--output=~/my grid").err.splitlines()[-1] == (
        f"relvec train --prompt '{tmp_path}/my grid/1-0-0'"
    )
    settings = ["--data", data, "--steps", "1", "--set", "relations_per_batch=2", "--output=~/model"]
    assert relvec("train", "--prompt=~/auto", *settings).code == 0
    assert RelBERT.from_pretrained(tmp_path / "model").pooling == "average"


def test_a_prompt_that_saw_the_benchmarks_is_not_for_a_recipe_that_leaves_them_out(prompt: Path) -> None:
    recipe = Recipe(prompt=str(prompt), exclude_benchmark_pairs=True)
    with pytest.raises(RelvecError, match=r"may have seen benchmark pairs.*; learn it with --exclude-benchmark-pairs"):
        with_prompt(recipe)
    learned = PromptResult.load(prompt)
    learned.changed({"settings": {**learned.settings, "exclude_benchmark_pairs": True}}).save(prompt)
    assert with_prompt(recipe)[1] == learned.template


def test_a_p_tuned_prompt_may_be_called_like_a_model(
    relvec: Relvec, tiny_folder: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["prompt", "ptuning", "--base", tiny_folder, "--data", data, "--lengths", "1,0,0", "-o", "mpnet"]
    assert relvec(*arguments, *LEARN["ptuning"]).code == 0
    trained = relvec("train", "--prompt", "mpnet", "--data", data, "--steps", "1", "-o", "model")
    assert trained.code == 0, trained.err
    assert RelBERT.from_pretrained("model").dim == RelBERT.from_pretrained(tiny_folder).dim


def test_the_prompt_comes_before_what_a_recipe_file_says(
    relvec: Relvec, data: Path, prompt: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "my.toml"
    recipe.write_text('base = "no-such-base"\ntemplate = "4"\npooling = "mask"\nsteps = 1\nrelations_per_batch = 2')
    model = tmp_path / "model"
    result = relvec("train", "--config", recipe, "--prompt", prompt, "--data", data, "-o", model)
    assert result.code == 0, result.err
    loaded = RelBERT.from_pretrained(model)
    assert loaded.template == PromptResult.load(prompt).template
    assert loaded.pooling == "average"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "There is no learned prompt in"),
        (["--base", "mpnet"], "decides the base; leave it out"),
        (["--set", "base=mpnet"], "decides the base; leave it out"),
        (["--set", "pooling=mask"], "decides the pooling; leave it out"),
    ],
)
def test_a_prompt_that_cannot_be_trained_with_is_one_line_and_exit_code_2(
    refused: Refused, data: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    words = ["train", "--prompt", tmp_path / "none", "--data", data, "-o", tmp_path / "model"]
    assert message in refused(*words, *arguments)
