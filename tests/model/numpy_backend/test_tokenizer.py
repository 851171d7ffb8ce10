"""The quick tokenizer gives the tokens of transformers', or leaves the folder to it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from relvec.model.numpy_backend.tokenizer import NumpyTokenizer
from relvec.prompts import Template, TokenizedTemplate

WORDS = ["Paris", "ICE Cream", "São Paulo", "naïve café", "e\u0301", "東京", "москва", "القاهرة", "o'clock", "dogs'"]
WORDS += ["'s", "U.S.A.", "3.14%", "-less", "🙂", "\u200b", "x" * 150, "a\tb", "[h]", "antidisestablishmentarian"]


@pytest.fixture
def copy(quick_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(quick_folder, tmp_path / "copy"))


def set_options(folder: Path, **options: Any) -> Path:
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | options))
    return folder


def test_odd_words_have_the_tokens_of_transformers(quick_folder: Path) -> None:
    quick, full = NumpyTokenizer(quick_folder), AutoTokenizer.from_pretrained(quick_folder)
    for options in ({}, {"add_special_tokens": False}):
        assert quick(WORDS, **options)["input_ids"] == full(WORDS, **options)["input_ids"]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_any_text_has_the_tokens_of_transformers(quick_folder: Path, text: str) -> None:
    quick, full = NumpyTokenizer(quick_folder), AutoTokenizer.from_pretrained(quick_folder)
    assert quick([text])["input_ids"] == full([text])["input_ids"]


def test_what_a_prompt_asks_for_is_the_same(quick_folder: Path) -> None:
    quick, full = NumpyTokenizer(quick_folder), AutoTokenizer.from_pretrained(quick_folder)
    for member in ("mask_token", "unk_token", "mask_token_id", "unk_token_id", "pad_token_id", "model_max_length"):
        assert getattr(quick, member) == getattr(full, member)
    assert set(quick.all_special_tokens) == set(full.all_special_tokens)
    assert quick.get_vocab() == full.get_vocab()
    assert quick.get_added_vocab() == full.get_added_vocab()
    template = Template.of(4)
    assert TokenizedTemplate(template, quick)([("a", "b")]) == TokenizedTemplate(template, full)([("a", "b")])


def test_padding_and_truncation_in_the_file_do_not_count(copy: Path) -> None:
    path = copy / "tokenizer.json"
    stored = json.loads(path.read_text())
    stored["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    padding = {"strategy": {"Fixed": 128}, "direction": "Right", "pad_to_multiple_of": None}
    stored["padding"] = padding | {"pad_id": 0, "pad_type_id": 0, "pad_token": "x"}
    path.write_text(json.dumps(stored))
    full = AutoTokenizer.from_pretrained(copy)
    assert NumpyTokenizer(copy)(WORDS)["input_ids"] == full(WORDS, padding=False, truncation=False)["input_ids"]


def test_added_tokens_are_known(copy: Path) -> None:
    full = AutoTokenizer.from_pretrained(copy)
    full.add_tokens(["<v0>", "<v1>"], special_tokens=True)
    full.save_pretrained(copy)
    quick, again = NumpyTokenizer(copy), AutoTokenizer.from_pretrained(copy)
    assert quick(["a<v0>b <v1>"])["input_ids"] == again(["a<v0>b <v1>"])["input_ids"]
    assert quick.get_added_vocab() == again.get_added_vocab()


@pytest.mark.parametrize(
    "options",
    [
        {"do_lower_case": False},
        {"tokenize_chinese_chars": False},
        {"strip_accents": False},
        {"tokenizer_class": "PreTrainedTokenizerFast"},
        {"unk_token": "the"},
    ],
)
def test_a_folder_whose_files_disagree_is_left_to_transformers(copy: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="of another kind"):
        NumpyTokenizer(set_options(copy, **options))
