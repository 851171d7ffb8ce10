from pathlib import Path

import numpy as np
import pytest

from relvec import RelBERT
from relvec.errors import RelvecError, UnknownWordsWarning
from relvec.model.static_model import StaticRelBERT, WordTable
from relvec.model.torch_backend import TorchRelBERT
from relvec.similarity import cosine

VOCABULARY = ["[UNK]", "tea", "pot", "cup", "ice cream", "ice", "cafe", "##pot", "##s", "a", "##a"]
PAIRS = [("tea", "cup"), ("cup", "tea"), ("teapots", "ice cream"), ("ice", "Café")]


@pytest.fixture
def model() -> StaticRelBERT:
    draw = np.random.default_rng(0)
    shapes = (len(VOCABULARY), 6), (10, 24), (10,), (8, 10), (8,)
    table, *layers = (draw.normal(size=shape).astype(np.float32) for shape in shapes)
    return StaticRelBERT(WordTable(VOCABULARY, table), layers)


def test_a_saved_model_gives_nearly_the_same_vectors(model: StaticRelBERT, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "static")
    loaded = RelBERT.from_pretrained(tmp_path / "static")
    assert isinstance(loaded, StaticRelBERT)
    assert np.diag(cosine(loaded.encode(PAIRS), model.encode(PAIRS))).min() > 0.999
    assert loaded.fingerprint == RelBERT.from_pretrained(tmp_path / "static", backend="numpy").fingerprint


def test_reversed_pair_gets_another_vector(model: StaticRelBERT) -> None:
    assert model.similarity(PAIRS[0], PAIRS[1]) < 0.99


def test_the_vector_is_that_of_the_formula(model: StaticRelBERT) -> None:
    h, t = model.words.rows[1], model.words.rows[3]
    hidden = model.layers[0] @ np.concatenate([h, t, h * t, abs(h - t)]) + model.layers[1]
    np.testing.assert_allclose(
        model.encode(("tea", "cup")), model.layers[2] @ hidden.clip(0) + model.layers[3], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("word", "rows"),
    [
        ("TEA", ["tea"]),
        ("ice cream", ["ice cream"]),
        ("Café", ["cafe"]),
        ("teapots", ["tea", "##pot", "##s"]),
        ("ice tea", ["ice", "tea"]),
        ("☕", ["[UNK]"]),
    ],
)
def test_a_word_without_a_row_is_read_in_pieces(model: StaticRelBERT, word: str, rows: list[str]) -> None:
    assert [VOCABULARY[row] for row in model.words.row_numbers([word])[0]] == rows


def test_an_unknown_word_is_the_mean_of_its_pieces(model: StaticRelBERT) -> None:
    rows = model.words.row_numbers(["teapots"])
    np.testing.assert_allclose(model.words.vectors(rows)[0], model.words.rows[[1, 7, 8]].mean(axis=0), rtol=1e-5)


def test_many_pairs_get_the_vectors_that_each_has_alone(model: StaticRelBERT) -> None:
    words = [f"a{number:b}".replace("0", "a").replace("1", "s") for number in range(5000)]
    pairs = [(word, f"{word}s") for word in words]
    vectors = model.encode(pairs)
    for row in (0, 2047, 2048, 4999):
        np.testing.assert_allclose(vectors[row], model.encode(pairs[row]), rtol=1e-4, atol=1e-5)


def test_words_without_any_piece_are_told(model: StaticRelBERT) -> None:
    with pytest.warns(UnknownWordsWarning, match="1 of 2 pairs, such as '☕'"):
        model.encode([("☕", "cup"), ("tea", "cup")])


def test_what_a_static_model_cannot_do_is_one_sentence(model: StaticRelBERT, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "static")
    for options in ({}, {"template": 4, "pooling": "mask", "device": "cpu"}, {"dtype": "bfloat16"}):
        with pytest.raises(RelvecError, match="static is a static model, with no encoder to train"):
            TorchRelBERT.from_pretrained(tmp_path / "static", **options)
    with pytest.raises(RelvecError, match="a static model, with no encoder to train"):
        TorchRelBERT.of(model)
    with pytest.raises(RelvecError, match="static is static: it has no prompt"):
        RelBERT.from_pretrained(tmp_path / "static", template="[h] is [t]")
    (tmp_path / "static" / "vocab.txt").unlink()
    with pytest.raises(RelvecError, match=r"cannot be read .*; get it again"):
        RelBERT.from_pretrained(tmp_path / "static")
