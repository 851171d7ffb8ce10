import sqlite3
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from relvec import RelBERT, RelvecError
from relvec.model import cached_vectors as module
from relvec.model.cached_vectors import ModelVectors, PairVectors
from relvec.pairs import Pair
from relvec.storage.cache import FILE_NAME, cache_info

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


def test_a_damaged_vector_is_encoded_again(tiny: RelBERT, tmp_path: Path) -> None:
    expected, _ = ModelVectors(tiny, tmp_path).vectors(PAIRS)
    with sqlite3.connect(tmp_path / FILE_NAME) as database:
        database.execute("UPDATE entries SET value = zeroblob(64) WHERE key LIKE 'cup%'")
    database.close()
    found, _ = ModelVectors(tiny, tmp_path).vectors(PAIRS)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_rows_stay_in_the_cache_until_they_are_asked_for(tiny: RelBERT, tmp_path: Path) -> None:
    vectors = ModelVectors(tiny, tmp_path)
    assert vectors.prepare(PAIRS) == (3, 0)
    rows, expected = vectors.rows(PAIRS), tiny.encode(PAIRS)
    assert (len(rows), rows.shape) == (4, (4, 16))
    np.testing.assert_allclose(rows[1:3], expected[1:3], atol=1e-6)
    np.testing.assert_allclose(rows[np.array([3, 0])], expected[[3, 0]], atol=1e-6)
    np.testing.assert_allclose(vectors.rows(PAIRS, normalize=True)[:], tiny.encode(PAIRS, normalize=True), atol=1e-6)
    assert rows[:0].shape == (0, 16)


def test_vectors_that_are_not_finite_never_get_into_the_cache(
    tiny: RelBERT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiny, "_encode_distinct", lambda pairs, *_: np.full((len(pairs), 16), np.nan))
    with pytest.raises(RelvecError, match="tiny-roberta gives vectors that are not finite"):
        ModelVectors(tiny, tmp_path).vectors(PAIRS)
    assert cache_info(tmp_path) == []


def test_two_models_at_work_share_one_file(tiny_folder: Path, tmp_path: Path) -> None:
    models = [RelBERT.from_pretrained(tiny_folder), RelBERT.from_pretrained(tiny_folder, pooling="mask")]
    threads = [Thread(target=ModelVectors(model, tmp_path).prepare, args=(PAIRS,)) for model in models * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(space.about, space.entries) for space in cache_info(tmp_path)] == [("tiny-roberta", 3)] * 2
