"""Files that the version before this redesign wrote open as they did, and give the vectors that it gave."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from relvec import PairIndex, RelBERT, Template
from relvec.pairs import Pair
from relvec.prompts.learned import PromptResult
from relvec.similarity import Vectors
from relvec.storage.cache import Cache
from relvec.training.recipe import Recipe


@pytest.fixture(autouse=True)
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy, in the working directory: the adapter names its base by a relative path."""
    shutil.copytree(Path(__file__).parent / "written_before", tmp_path / "there")
    monkeypatch.chdir(tmp_path / "there")


def written(name: str) -> tuple[list[Pair], Vectors]:
    with np.load(name) as file:
        return list(zip(file["head"].tolist(), file["tail"].tolist(), strict=True)), file["vectors"]


@pytest.mark.parametrize("backend", ["torch", "numpy"])
@pytest.mark.parametrize(
    ("model", "vectors"),
    [("checkpoint", "checkpoint_vectors.npz"), ("adapter", "vectors.npz"), ("ptuned", "ptuned_vectors.npz")],
)
def test_a_model_gives_the_vectors_that_it_gave(model: str, vectors: str, backend: str) -> None:
    pairs, expected = written(vectors)
    found = RelBERT.from_pretrained(model, backend=backend).encode(pairs)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_an_index_knows_its_model_and_its_vectors() -> None:
    pairs, expected = written("vectors.npz")
    index, model = PairIndex.load("index"), RelBERT.from_pretrained("adapter")
    index.check_model(model)
    assert len(index) == len(pairs)
    found = index.neighbours(model, pairs[0], len(pairs), shared_words=True)
    scores = {each.pair: each.score for each in found}
    unit = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    assert [scores[pair] for pair in pairs[1:]] == pytest.approx((unit[1:] @ unit[0]).tolist(), abs=1e-3)


def test_a_recipe_has_the_settings_that_were_written() -> None:
    recipe = Recipe.from_toml("recipe.toml")
    assert (recipe.base, recipe.pooling, recipe.loss, recipe.steps) == ("checkpoint", "mask", "infonce", 4)
    assert dict(recipe.loss_settings) == {"temperature": 0.1}
    assert (recipe.lora_rank, recipe.relations_per_batch, recipe.threshold) == (2, 2, 0.5)


@pytest.mark.parametrize(
    ("folder", "tokens"),
    [("autoprompt", ["##а", "[h]", "<mask>", "[t]"]), ("ptuned", ["<relvec-1>", "[h]", "<relvec-2>", "[t]"])],
)
def test_a_learned_prompt_is_read(folder: str, tokens: list[str]) -> None:
    prompt = PromptResult.load(folder)
    assert prompt.template == Template.from_tokens(tokens)
    assert str(prompt.lengths) == "1,1,0"


def test_a_cache_holds_what_was_kept() -> None:
    kept = {"Paris\tFrance": bytes(range(64)), "東京\t日本": bytes(64)}
    assert Cache("vectors 0123", folder=".").get([*kept, "cup\ttea"]) == kept
