import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from relvec import RelvecError
from relvec.data.rated import RatedRelation
from relvec.learned_prompts.candidates import PromptEncoder
from relvec.learned_prompts.grid import METHODS, prompt_folder, search
from relvec.model.torch_backend import TorchRelBERT
from relvec.prompts.learned import PromptResult, parse_grid

QUICK: dict[str, dict[str, Any]] = {"autoprompt": {"iterations": 1, "candidates": 2}, "ptuning": {"steps": 1}}


@pytest.mark.parametrize("method", METHODS)
def test_every_length_has_a_prompt_and_the_lowest_validation_loss_comes_first(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path, method: str
) -> None:
    grid = parse_grid("1-2,1,0-1")
    results = search(method, str(tiny_folder), relations, grid, tmp_path, **QUICK[method])
    assert {str(result.lengths) for result in results} == {str(lengths) for lengths in grid}
    losses = [result.validation_loss for result in results]
    assert losses == sorted(losses)
    for result in results:
        saved = PromptResult.load(prompt_folder(tmp_path, result.lengths))
        assert saved.as_dict() == result.as_dict()
        assert (prompt_folder(tmp_path, result.lengths) / "loss.svg").exists()
    assert (tmp_path / "losses.svg").exists()


def test_a_search_that_is_killed_does_not_learn_a_prompt_twice(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = QUICK["autoprompt"]
    grid = parse_grid("1-2,1,1")
    whole = search("autoprompt", str(tiny_folder), relations, grid, tmp_path / "whole", **settings)
    search("autoprompt", str(tiny_folder), relations, grid[:1], tmp_path / "killed", **settings)
    seen: set[int] = set()
    encode = PromptEncoder.vectors

    def watched(self: PromptEncoder, prompts: list[list[int]], rows: range) -> Any:
        seen.update(map(len, prompts))
        return encode(self, prompts, rows)

    monkeypatch.setattr(PromptEncoder, "vectors", watched)
    resumed = search("autoprompt", str(tiny_folder), relations, grid, tmp_path / "killed", **settings)
    assert seen == {grid[1].total}
    assert [result.tokens for result in resumed] == [result.tokens for result in whole]


def test_a_search_does_not_go_on_with_another_base(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    base = Path(shutil.copytree(tiny_folder, tmp_path / "base"))
    grid, settings = parse_grid("1,1,0"), QUICK["autoprompt"]
    search("autoprompt", str(base), relations, grid, tmp_path / "found", **settings)
    other = TorchRelBERT.from_pretrained(base)
    with torch.no_grad():
        next(other.encoder.parameters()).add_(1)
    other.save_pretrained(base)
    with pytest.raises(RelvecError, match="remove it, or choose another output"):
        search("autoprompt", str(base), relations, grid, tmp_path / "found", **settings)


def test_more_iterations_continue_a_finished_search(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    base, grid = str(tiny_folder), parse_grid("1-2,1,0")
    search("autoprompt", base, relations, grid, tmp_path / "grown", iterations=1, candidates=2)
    grown, at_once = (
        search("autoprompt", base, relations, grid, tmp_path / name, iterations=3, candidates=2)
        for name in ("grown", "at once")
    )
    assert [(each.tokens, each.train_loss) for each in grown] == [(each.tokens, each.train_loss) for each in at_once]
    assert {each.settings["iterations"] for each in grown} == {3}
    with pytest.raises(RelvecError, match="ask for as many or more"):
        search("autoprompt", base, relations, grid, tmp_path / "grown", iterations=1, candidates=2)


@pytest.mark.parametrize(
    ("method", "written_out"),
    [
        ("autoprompt", {"exhaustive": False, "seed": 0, "pooling": "average"}),
        ("ptuning", {"learning_rate": 1e-3, "epochs": 2.0, "source": {"data": ["elsewhere/my.csv"]}}),
    ],
)
def test_a_default_that_is_written_out_is_no_other_setting(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path, method: str, written_out: dict[str, Any]
) -> None:
    grid, settings = parse_grid("1,0,0"), QUICK[method]
    begun = search(method, str(tiny_folder), relations, grid, tmp_path, **settings)
    again = search(method, str(tiny_folder), relations, grid, tmp_path, **settings, **written_out)
    assert again[0].as_dict() == begun[0].as_dict()


def test_further_lengths_are_compared_with_those_of_before(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    settings = QUICK["autoprompt"]
    search("autoprompt", str(tiny_folder), relations, parse_grid("1-2,1,0"), tmp_path, **settings)
    results = search("autoprompt", str(tiny_folder), relations, parse_grid("0,1,0"), tmp_path, **settings)
    assert {str(result.lengths) for result in results} == {"1,1,0", "2,1,0", "0,1,0"}
    losses = [result.validation_loss for result in results]
    assert losses == sorted(losses)
    picture = (tmp_path / "losses.svg").read_text()
    assert all(f"<!-- {result.lengths} -->" in picture for result in results)


def test_a_search_makes_a_model_that_is_gone_again(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    grid, settings = parse_grid("1,0,0"), QUICK["ptuning"]
    search("ptuning", str(tiny_folder), relations, grid, tmp_path, **settings)
    weights = prompt_folder(tmp_path, grid[0]) / "model.safetensors"
    weights.unlink()
    search("ptuning", str(tiny_folder), relations, grid, tmp_path, **settings)
    assert weights.exists()


def test_a_search_does_not_write_into_its_base(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    base = Path(shutil.copytree(tiny_folder, tmp_path / "base"))
    with pytest.raises(RelvecError, match="holds the base that the prompt needs"):
        search("autoprompt", str(base), relations, parse_grid("1,1,0"), base, **QUICK["autoprompt"])
    assert not (base / "grid.jsonl").exists()


def test_lengths_that_do_not_fit_are_refused_before_any_is_learned(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    with pytest.raises(RelvecError, match=r"The lengths 50,1,0 are too many.*give fewer --lengths"):
        search("autoprompt", str(tiny_folder), relations, parse_grid("1-80,1,0"), tmp_path, **QUICK["autoprompt"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [("autoprmpt", {}, "Unknown method"), ("autoprompt", {"epochs": 2}, "autoprompt: There is no setting 'epochs'")],
)
def test_unknown_methods_and_settings_are_refused(
    relations: list[RatedRelation], tmp_path: Path, method: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(RelvecError, match=message):
        search(method, "mpnet", relations, parse_grid("1,1,1"), tmp_path, **settings)
