"""ONNX Runtime gives the vectors of the numpy backend: the same as float32, nearly the same as int8."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

from relvec import RelBERT, RelvecError
from relvec.model.numpy_backend.model import NumpyRelBERT
from relvec.model.onnx_backend.graph import INPUTS, VECTORS
from relvec.model.onnx_backend.model import OnnxRelBERT
from relvec.model.torch_backend import TorchRelBERT
from relvec.pooling import POOLINGS
from relvec.similarity import cosine
from relvec.storage.cache import cache_folder

PAIRS = [("Paris", "France"), ("ice cream", "dogs' bones"), ("cup", "tea"), ("São Paulo", "東京"), ("cats", "dogs")]


def test_float32_gives_the_vectors_of_numpy(quick_folder: Path, adapted: Callable[[Path], Path]) -> None:
    for folder in (quick_folder, adapted(quick_folder)):
        expected = NumpyRelBERT.from_pretrained(folder).encode(PAIRS)
        found = OnnxRelBERT.from_pretrained(folder).encode(PAIRS)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_the_graph_pools_and_leaves_out_padding(quick_folder: Path, pooling: str) -> None:
    model = OnnxRelBERT.from_pretrained(quick_folder, pooling=pooling)
    tokens = model.token_ids(PAIRS)
    ids = np.full((len(PAIRS), max(map(len, tokens)) + 2), model.tokenizer.pad_token_id)
    is_token = np.zeros_like(ids)
    for row, each in enumerate(tokens):
        ids[row, : len(each)], is_token[row, : len(each)] = each, 1
    session = onnxruntime.InferenceSession(model.graph)
    (found,) = session.run([VECTORS], dict(zip(INPUTS, (ids, is_token), strict=True)))
    np.testing.assert_allclose(found, model.encode(PAIRS), atol=1e-4)


def test_int8_is_nearly_float32_whatever_pairs_are_encoded_beside(quick_folder: Path) -> None:
    exact, model = (OnnxRelBERT.from_pretrained(quick_folder, dtype=dtype) for dtype in ("float32", "int8"))
    together = model.encode(PAIRS)
    assert np.diag(cosine(together, exact.encode(PAIRS))).min() > 0.99
    assert np.abs(together - exact.encode(PAIRS)).max() > 0
    for pair, vector in zip(PAIRS, together, strict=True):
        np.testing.assert_array_equal(model.encode(pair), vector)


def test_a_damaged_graph_is_made_again(quick_folder: Path) -> None:
    model = OnnxRelBERT.from_pretrained(quick_folder, dtype="int8")
    whole = model.graph.read_bytes()
    for damaged in (whole[:1000], whole[:-50] + bytes([whole[-50] ^ 1]) + whole[-49:]):
        model.graph.write_bytes(damaged)
        again = OnnxRelBERT.from_pretrained(quick_folder, dtype="int8")
        np.testing.assert_array_equal(again.encode(PAIRS), model.encode(PAIRS))
        assert model.graph.read_bytes() == whole


def test_the_graph_of_other_weights_is_not_used(quick_folder: Path, tmp_path: Path) -> None:
    before = OnnxRelBERT.from_pretrained(quick_folder)
    other = TorchRelBERT.from_pretrained(quick_folder)
    with torch.no_grad():
        next(other.encoder.parameters()).mul_(2)
    other.save_pretrained(tmp_path / "model")
    after = OnnxRelBERT.from_pretrained(tmp_path / "model")
    assert after.graph != before.graph
    np.testing.assert_allclose(after.encode(PAIRS), other.encode(PAIRS), atol=1e-5)


def test_another_dtype_or_pooling_is_another_graph_and_fingerprint(quick_folder: Path) -> None:
    options: list[dict[str, Any]] = [{}, {"dtype": "int8"}, {"pooling": "mask"}]
    models = [OnnxRelBERT.from_pretrained(quick_folder, **each) for each in options]
    prints = {model.fingerprint for model in models} | {NumpyRelBERT.from_pretrained(quick_folder).fingerprint}
    assert len(prints) == 4
    assert len(list((cache_folder() / "onnx").glob("*.onnx"))) == 3


def test_int8_without_a_backend_is_onnx(quick_folder: Path) -> None:
    assert isinstance(RelBERT.from_pretrained(quick_folder, dtype="int8"), OnnxRelBERT)


@pytest.mark.parametrize("backend", ["torch", "numpy"])
def test_other_backends_refuse_int8(quick_folder: Path, backend: str) -> None:
    with pytest.raises(RelvecError, match="use "):
        RelBERT.from_pretrained(quick_folder, backend=backend, dtype="int8")


def test_other_architectures_are_left_to_torch(tiny_folder: Path) -> None:
    with pytest.raises(RelvecError, match=r"The onnx backend cannot open .* use the torch backend"):
        OnnxRelBERT.from_pretrained(tiny_folder)


def test_a_processor_that_rounds_products_of_bytes_is_told_what_to_use(
    quick_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relvec.model.onnx_backend.model.multiplies_bytes_exactly", lambda: False)
    with pytest.raises(RelvecError, match="use float32 or bfloat16"):
        OnnxRelBERT.from_pretrained(quick_folder, dtype="int8")
    assert OnnxRelBERT.from_pretrained(quick_folder).encode(PAIRS).shape == (5, 16)
