"""Likelihoods against plain loops over tokens, on tiny random language models."""

import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    GPT2Config,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    RobertaConfig,
)

from relvec import RelvecError
from relvec.baselines.language_model import LanguageModel

TEXTS = [
    "Paris is to France as Tokyo is to Japan",
    "coffee",
    "a baker makes bread, and São Paulo is a city; the winemaker makes wine",
    "ice cream is to cold as tea is to cup",
]
SIZES: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
Build = Callable[[str], Path]


def randomised(model: PreTrainedModel) -> PreTrainedModel:
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" not in name.lower() and "ln" not in name:
                weight.normal_(0, 0.3)
    return model


@pytest.fixture(scope="session")
def build(tiny_folders: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Ask for an architecture, get the folder of a tiny language model (built once)."""
    root = tmp_path_factory.mktemp("language-models")

    def folder_of(architecture: str) -> Path:
        folder = root / architecture
        if not folder.exists():
            tokenizer = AutoTokenizer.from_pretrained(tiny_folders("bert" if architecture == "bert" else "roberta"))
            size, pad = len(tokenizer), tokenizer.pad_token_id
            if architecture == "gpt2":
                config: Any = GPT2Config(vocab_size=size, n_positions=64, n_embd=16, n_layer=2, n_head=2)
                model = AutoModelForCausalLM.from_config(config)
            elif architecture in ("llama", "gemma3_text", "qwen2"):
                config = AutoConfig.for_model(
                    architecture, vocab_size=size, pad_token_id=pad, head_dim=8, num_key_value_heads=2, **SIZES
                )
                model = AutoModelForCausalLM.from_config(config)
            else:
                kind: Any = RobertaConfig if architecture == "roberta" else BertConfig
                config = kind(vocab_size=size, pad_token_id=pad, max_position_embeddings=66, **SIZES)
                model = AutoModelForMaskedLM.from_config(config)
            randomised(model).save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        return folder

    return folder_of


def parts(folder: Path, causal: bool) -> tuple[Any, PreTrainedTokenizerBase]:
    auto: Any = AutoModelForCausalLM if causal else AutoModelForMaskedLM
    return auto.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def plain_causal(model: Any, tokenizer: PreTrainedTokenizerBase, text: str) -> float:
    """Token after token, each from nothing but the tokens before it."""
    before = [tokenizer.bos_token_id]
    total = 0.0
    for token in tokenizer(text, add_special_tokens=False).input_ids:
        with torch.no_grad():
            total += torch.log_softmax(model(torch.tensor([before])).logits[0, -1], -1)[token].item()
        before.append(token)
    return total


def plain_masked(model: Any, tokenizer: PreTrainedTokenizerBase, text: str) -> float:
    """One token masked at a time, one text at a time."""
    ids = tokenizer(text).input_ids
    total = 0.0
    for place in range(1, len(ids) - 1):
        masked = [*ids[:place], tokenizer.mask_token_id, *ids[place + 1 :]]
        with torch.no_grad():
            total += torch.log_softmax(model(torch.tensor([masked])).logits[0, place], -1)[ids[place]].item()
    return total


def test_causal_likelihood_equals_a_plain_loop_over_tokens(build: Build, tmp_path: Path) -> None:
    model, tokenizer = parts(build("gpt2"), causal=True)
    lm = LanguageModel.from_pretrained(build("gpt2"), cache_folder=tmp_path)
    assert lm.is_causal
    for text, found in zip(TEXTS, lm.likelihoods(TEXTS), strict=True):
        assert found.log_probability == pytest.approx(plain_causal(model, tokenizer, text), abs=1e-3)
        assert found.tokens == len(tokenizer(text, add_special_tokens=False).input_ids)


@pytest.mark.parametrize("architecture", ["roberta", "bert"])
def test_masked_likelihood_equals_masking_one_token_at_a_time(build: Build, tmp_path: Path, architecture: str) -> None:
    model, tokenizer = parts(build(architecture), causal=False)
    lm = LanguageModel.from_pretrained(build(architecture), cache_folder=tmp_path)
    assert not lm.is_causal
    for text, found in zip(TEXTS, lm.likelihoods(TEXTS), strict=True):
        assert found.log_probability == pytest.approx(plain_masked(model, tokenizer, text), abs=1e-3)
        assert found.tokens == len(tokenizer(text).input_ids) - 2


def test_a_model_without_start_token_leaves_the_first_token_out(build: Build, tmp_path: Path) -> None:
    model, tokenizer = parts(build("gpt2"), causal=True)
    with_start = LanguageModel(model, tokenizer, name="m", is_causal=True, cache_folder=tmp_path)
    (whole,) = with_start.likelihoods(TEXTS[:1])
    tokenizer.bos_token = None
    without = LanguageModel(model, tokenizer, name="m", is_causal=True, cache_folder=tmp_path)
    assert without.fingerprint != with_start.fingerprint
    assert without.likelihoods(TEXTS[:1])[0].tokens == whole.tokens - 1


@pytest.mark.parametrize("architecture", ["gpt2", "roberta"])
def test_batching_and_padding_do_not_change_values(
    build: Build, tmp_path: Path, architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for size in (1, 70, 4096):
        monkeypatch.setattr("relvec.baselines.language_model.TOKENS_PER_BATCH", size)
        model = LanguageModel.from_pretrained(build(architecture), cache_folder=tmp_path / str(size))
        found.append(model.likelihoods(TEXTS))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert one.log_probability == pytest.approx(two.log_probability, abs=1e-3)
            assert one.tokens == two.tokens


def test_each_distinct_text_is_read_once_ever(build: Build, tmp_path: Path) -> None:
    model, tokenizer = parts(build("gpt2"), causal=True)
    calls: list[object] = []
    model.register_forward_hook(lambda *call: calls.append(call))
    lm = LanguageModel(model, tokenizer, name="m", is_causal=True, cache_folder=tmp_path)
    first = lm.likelihoods([*TEXTS, *TEXTS])
    assert first[: len(TEXTS)] == first[len(TEXTS) :]
    calls.clear()
    again = LanguageModel(model, tokenizer, name="m", is_causal=True, cache_folder=tmp_path)
    assert again.likelihoods(TEXTS) == first[: len(TEXTS)]
    assert calls == []


@pytest.mark.parametrize("architecture", ["gpt2", "llama", "gemma3_text", "qwen2"])
def test_a_common_beginning_is_read_once_and_no_branch_sees_another(
    build: Build, tmp_path: Path, architecture: str
) -> None:
    stem = "Paris is to France as"
    texts = [stem, *(f"{stem} {end}" for end in ("Tokyo is to Japan", "Tokyo is to coffee", "a baker is to bread"))]
    model, tokenizer = parts(build(architecture), causal=True)
    lm = LanguageModel.from_pretrained(build(architecture), cache_folder=tmp_path)
    assert lm._reads_trees
    read: list[int] = []
    lm._model.register_forward_pre_hook(
        lambda _, __, inputs: read.append(inputs["input_ids"].numel()), with_kwargs=True
    )
    for text, found in zip(texts, lm.likelihoods(texts), strict=True):
        assert found.log_probability == pytest.approx(plain_causal(model, tokenizer, text), abs=1e-3)
    beginnings = {tuple(ids[:end]) for ids in tokenizer(texts).input_ids for end in range(1, len(ids) - 1)}
    assert sum(read) == len(beginnings)  # the last token of a text predicts nothing


def test_long_texts_and_networks_that_take_no_positions_are_read_one_by_one(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_tree = LanguageModel.from_pretrained(build("gpt2"), cache_folder=tmp_path / "tree").likelihoods(TEXTS)
    monkeypatch.setattr("relvec.baselines.language_model.TOKENS_PER_TREE", 1)
    one_by_one = LanguageModel.from_pretrained(build("gpt2"), cache_folder=tmp_path / "rows").likelihoods(TEXTS)
    for one, two in zip(by_tree, one_by_one, strict=True):
        assert one.log_probability == pytest.approx(two.log_probability, abs=1e-3)
    assert not LanguageModel.from_pretrained(build("roberta"), kind="causal", cache_folder=tmp_path)._reads_trees


def test_fingerprint_follows_the_weights(build: Build, tmp_path: Path) -> None:
    model, tokenizer = parts(build("gpt2"), causal=True)
    before = LanguageModel(model, tokenizer, name="m", is_causal=True, cache_folder=tmp_path).fingerprint
    assert before == LanguageModel.from_pretrained(build("gpt2"), cache_folder=tmp_path).fingerprint
    with torch.no_grad():
        model.transformer.wte.weight[0, 0] += 1
    assert LanguageModel(model, tokenizer, name="m", is_causal=True, cache_folder=tmp_path).fingerprint != before


def changed(folder: Path, copy: Path, file: str, **settings: Any) -> Path:
    """A copy of the folder whose JSON file has other settings."""
    shutil.copytree(folder, copy)
    content = json.loads((copy / file).read_text())
    (copy / file).write_text(json.dumps(content | settings))
    return copy


@pytest.mark.parametrize(
    ("architecture", "file", "settings"),
    [
        ("gpt2", "config.json", {"n_head": 4}),
        ("gpt2", "config.json", {"layer_norm_epsilon": 0.5}),
        ("roberta", "config.json", {"num_attention_heads": 4}),
        ("gpt2", "tokenizer_config.json", {"add_prefix_space": True}),
        ("roberta", "tokenizer_config.json", {"add_prefix_space": True}),
        ("bert", "tokenizer_config.json", {"do_lower_case": False}),
    ],
)
def test_another_config_or_tokenizer_of_the_same_weights_is_read_anew(
    build: Build, tmp_path: Path, architecture: str, file: str, settings: dict[str, Any]
) -> None:
    before = LanguageModel.from_pretrained(build(architecture), cache_folder=tmp_path / "cache").likelihoods(TEXTS)
    folder = changed(build(architecture), tmp_path / "changed", file, **settings)
    shared, fresh = (
        LanguageModel.from_pretrained(folder, cache_folder=tmp_path / cache).likelihoods(TEXTS)
        for cache in ("cache", "another")
    )
    assert shared == fresh != before


def test_neither_the_place_nor_the_version_of_a_model_changes_its_fingerprint(build: Build, tmp_path: Path) -> None:
    copy = changed(build("gpt2"), tmp_path / "copy", "config.json", transformers_version="5.0.0")
    prints = {
        LanguageModel.from_pretrained(folder, cache_folder=tmp_path).fingerprint for folder in (build("gpt2"), copy)
    }
    assert len(prints) == 1


def test_a_text_too_long_is_an_error(build: Build, tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match="tokens where gpt2 takes 64; shorten it"):
        LanguageModel.from_pretrained(build("gpt2"), cache_folder=tmp_path).likelihoods(["Paris is " * 64])


def test_an_encoder_without_a_head_is_no_language_model(tiny_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match="predicts no words; use a language model"):
        LanguageModel.from_pretrained(tiny_folder, cache_folder=tmp_path)


def test_pickled_weights_are_refused(build: Build, tmp_path: Path) -> None:
    folder = tmp_path / "pickled"
    model, tokenizer = parts(build("gpt2"), causal=True)
    model.config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(RelvecError, match=r"pickled cannot be loaded as a language model .*model\.safetensors"):
        LanguageModel.from_pretrained(folder, cache_folder=tmp_path)


def test_a_masked_architecture_read_as_causal_does_not_look_ahead(build: Build, tmp_path: Path) -> None:
    lm = LanguageModel.from_pretrained(build("roberta"), kind="causal", cache_folder=tmp_path)
    model = AutoModelForCausalLM.from_pretrained(build("roberta"), is_decoder=True).eval()
    tokenizer = AutoTokenizer.from_pretrained(build("roberta"))
    assert lm.is_causal
    (found,) = lm.likelihoods(TEXTS[:1])
    assert found.log_probability == pytest.approx(plain_causal(model, tokenizer, TEXTS[0]), abs=1e-3)


def test_a_missing_gguf_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match=r"none\.gguf cannot be loaded"):
        LanguageModel.from_pretrained(tmp_path / "none.gguf")


@pytest.mark.skipif(importlib.util.find_spec("gguf") is not None, reason="gguf is installed")
def test_gguf_without_its_package_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(RelvecError, match=r"cannot be loaded .*gguf"):
        LanguageModel.from_pretrained(tmp_path / "model.gguf")
