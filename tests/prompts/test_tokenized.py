from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from relvec.errors import RelvecError
from relvec.pairs import Pair, as_word
from relvec.prompts import MANUAL_TEMPLATES, Template, TokenizedTemplate
from relvec.prompts.template import fill_slots

TEMPLATES = [
    *MANUAL_TEMPLATES.values(),
    "[h] is the <mask> of [t]",
    "[h]",
    "([h]) <mask> «[t]»!",
    "[h]-[t]  <mask>",
    "x[h][t]<mask>",
]
PAIRS: list[Pair] = [
    ("Paris", "France"),
    ("barista", "coffee"),
    ("ice cream", "New York City"),
    ("dogs'", "o'clock"),
    ("'s", "'"),
    ("東京", "日本"),
    ("москва", "Россия"),
    ("São Paulo", "naïve café"),
    ("القاهرة", "مصر"),
    ("U.S.A.", "3.14%"),
    ("e\u0301", "\u0301x"),
    ("🙂", "unbelievably-antidisestablishmentarian"),
    ("-less", "re-"),
    ("a", "A"),
]


def whole_sentence_ids(tokenizer: Any, template: str, pair: Pair) -> list[int]:
    # The mask first: a word may read <mask> too, and is then no mask.
    sentence = fill_slots(template.replace("<mask>", tokenizer.mask_token), pair)
    return list(tokenizer(sentence)["input_ids"])


@pytest.mark.parametrize("template", [text for text in TEMPLATES if "[t]" in text])
def test_tokens_equal_those_of_the_filled_sentence(any_folder: Path, template: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(any_folder)
    expected = [whole_sentence_ids(tokenizer, template, pair) for pair in PAIRS]
    assert TokenizedTemplate(Template(template), tokenizer)(PAIRS) == expected


words = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Cn", "Co"]), min_size=1, max_size=12).filter(
    lambda word: bool(word.split())
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(head=words, tail=words)
@example(head="'", tail="s")
@example(head="0", tail="<mask>")
def test_any_text_is_tokenized_as_in_its_sentence(any_folder: Path, head: str, tail: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(any_folder)
    pair = (as_word(head), as_word(tail))
    for template in (MANUAL_TEMPLATES[2], MANUAL_TEMPLATES[4]):
        try:
            (ids,) = TokenizedTemplate(Template(template), tokenizer)([pair])
        except RelvecError as error:
            # A word that the tokenizer drops altogether, or that hides a control token.
            assert "has no token" in str(error) or "special token" in str(error)  # noqa: PT017
            continue
        assert ids == whole_sentence_ids(tokenizer, template, pair)


def test_manual_templates_are_cut_so_that_the_text_is_tokenized_once(any_folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(any_folder)
    calls: list[int] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(tokenizer, name)

        def __call__(self, texts: list[str], *arguments: Any, **options: Any) -> Any:
            calls.append(max(len(text) for text in texts))
            return tokenizer(texts, *arguments, **options)

    for text in MANUAL_TEMPLATES.values():
        tokenize = TokenizedTemplate(Template(text), Counting())  # type: ignore[arg-type]
        calls.clear()
        tokenize([("Paris", "France"), ("Tokyo", "Japan"), ("Paris", "Japan")])
        assert max(calls) < 10  # nothing longer than a word with its suffix


def test_a_tokenizer_that_joins_words_gets_whole_sentences() -> None:
    backend = Tokenizer(models.WordLevel({"[UNK]": 0, "[PAD]": 1, "[MASK]": 2, "a_b": 3, "b": 4, "a": 5}, "[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Split("|", "removed")  # blanks do not separate tokens
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="[UNK]", pad_token="[PAD]", mask_token="[MASK]"
    )
    template = Template("the word [h] and [t]")
    expected = tokenizer("the word a and b")["input_ids"]
    assert TokenizedTemplate(template, tokenizer)([("a", "b")]) == [expected]


def test_learned_tokens_stand_between_the_words_as_they_are(any_folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(any_folder)
    vocabulary = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    first, second = vocabulary[20], vocabulary[21]
    template = Template.from_tokens([first, "<mask>", "[h]", second, "[t]", second])
    (ids,) = TokenizedTemplate(template, tokenizer)([("Paris", "France")])
    by_name = tokenizer.get_vocab()
    bare = tokenizer(" Paris", add_special_tokens=False)["input_ids"]
    tail = tokenizer(" France", add_special_tokens=False)["input_ids"]
    start, end = tokenizer("")["input_ids"]
    learned = [by_name[second]]
    assert ids == [start, by_name[first], tokenizer.mask_token_id, *bare, *learned, *tail, *learned, end]


def test_new_vocabulary_rows_serve_as_prompt_tokens(any_folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(any_folder)
    tokenizer.add_tokens(["<v0>", "<v1>"], special_tokens=True)
    new = [tokenizer.convert_tokens_to_ids(token) for token in ("<v0>", "<v1>")]
    by_tokens = TokenizedTemplate(Template.from_tokens(["<v0>", "[h]", "<v1>", "[t]"]), tokenizer)
    (ids,) = by_tokens([("Paris", "France")])
    assert [token for token in ids if token in new] == new


def test_an_unknown_prompt_token_is_refused(tiny_folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_folder)
    with pytest.raises(RelvecError, match="not in the vocabulary"):
        TokenizedTemplate(Template.from_tokens(["<nowhere>", "[h]", "[t]"]), tokenizer)


@pytest.mark.parametrize("architecture", ["roberta", "bert"])
def test_a_word_with_a_special_token_is_refused(tiny_folders: Callable[[str], Path], architecture: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_folders(architecture))
    tokenize = TokenizedTemplate(Template.of(4), tokenizer)
    with pytest.raises(RelvecError, match="special token"):
        tokenize([("Paris", f"x{tokenizer.mask_token}")])


def test_a_word_without_tokens_is_refused(tiny_folders: Callable[[str], Path]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_folders("bert"))
    with pytest.raises(RelvecError, match="has no token"):
        TokenizedTemplate(Template.of(5), tokenizer)([("\u200b", "France")])


def test_a_mask_slot_needs_a_tokenizer_with_a_mask() -> None:
    backend = Tokenizer(models.WordLevel({"[UNK]": 0, "[PAD]": 1}, "[UNK]"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]", pad_token="[PAD]")
    with pytest.raises(RelvecError, match="<mask>"):
        TokenizedTemplate(Template.of(4), tokenizer)
