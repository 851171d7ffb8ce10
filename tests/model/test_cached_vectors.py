from pathlib import Path

import numpy as np
import pytest

from relvec import RelBERT
from relvec.model import cached_vectors as module
from relvec.model.cached_vectors import ModelVectors, PairVectors
from relvec.pairs import Pair

PAIRS: list[Pair] = [("Paris", "France"), ("cup", "tea"), ("Paris", "France"), ("barista", "coffee")]


def test_vectors_are_those_of_the_model_in_the_given_order(tiny: RelBERT, tmp_path: Path) -> None:
    vectors: PairVectors = ModelVectors(tiny, tmp_path)
    rows, known = vectors.vectors(PAIRS)
    np.testing.assert_allclose(rows, tiny.encode(PAIRS), atol=1e-5)
    assert known.all()
    assert vectors.name == tiny.name
    assert vectors.fingerprint == tiny.fingerprint
    assert ModelVectors(tiny, tmp_path, name="mine").name == "mine"


def test_each_distinct_pair_is_encoded_once_ever(
    tiny: RelBERT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[Pair] = []
    encode = tiny._encode_distinct

    def counting(pairs: list[Pair], *settings: object) -> object:
        encoded.extend(pairs)
        return encode(pairs, *settings)  # type: ignore[arg-type]

    monkeypatch.setattr(tiny, "_encode_distinct", counting)
    monkeypatch.setattr(module, "PAIRS_PER_STEP", 2)
    first, _ = ModelVectors(tiny, tmp_path).vectors(PAIRS)
    assert sorted(encoded) == sorted(set(PAIRS))
    again = ModelVectors(tiny, tmp_path)
    rows, _ = again.vectors([*PAIRS, ("hot", "cold")])
    assert encoded[3:] == [("hot", "cold")]
    np.testing.assert_array_equal(rows[:4], first)


def test_another_prompt_has_vectors_of_its_own(tiny: RelBERT, tiny_folder: Path, tmp_path: Path) -> None:
    other = RelBERT.from_pretrained(tiny_folder, template="[h] and [t] and <mask>")
    first, second = (ModelVectors(model, tmp_path).vectors(PAIRS)[0] for model in (tiny, other))
    assert np.abs(first - second).max() > 1e-3


def test_a_pair_too_long_for_the_model_is_cut(tiny: RelBERT, tmp_path: Path) -> None:
    rows, known = ModelVectors(tiny, tmp_path).vectors([("word " * 100, "tea")])
    assert np.isfinite(rows).all()
    assert known.all()
