"""Weights of one byte: a whole model in a quarter of the room, for every backend."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from relvec import RelBERT
from relvec.hub.catalogue import BUNDLED_MODELS
from relvec.model.numpy_backend.model import NumpyRelBERT
from relvec.model.quantization import quantized
from relvec.model.torch_backend import TorchRelBERT
from relvec.similarity import cosine

PAIRS = [("Paris", "France"), ("ice cream", "dogs' bones"), ("cup", "tea"), ("cats", "dogs")]


@pytest.fixture
def int8_folder(quick_folder: Path, tmp_path: Path, adapted: Callable[[Path], Path]) -> Path:
    """An adapter and its base, together as int8."""
    TorchRelBERT.from_pretrained(adapted(quick_folder)).save_int8(tmp_path / "int8")
    return tmp_path / "int8"


def test_numbers_are_within_half_a_step_and_stay_when_quantized_again() -> None:
    matrix = np.random.default_rng(0).normal(size=(20, 64)).astype(np.float32)
    numbers, scales = quantized(matrix)
    restored = numbers * scales[:, None]
    assert (np.abs(restored - matrix) <= scales[:, None] * 0.501).all()
    again, same_scales = quantized(restored)
    np.testing.assert_array_equal(again, numbers)
    np.testing.assert_allclose(same_scales, scales, rtol=1e-6)


def test_torch_and_numpy_open_it_and_agree(int8_folder: Path, tmp_path: Path) -> None:
    original = RelBERT.from_pretrained(tmp_path / "adapter-0").encode(PAIRS)
    by_numpy, by_torch = (each.from_pretrained(int8_folder).encode(PAIRS) for each in (NumpyRelBERT, TorchRelBERT))
    np.testing.assert_allclose(by_numpy, by_torch, rtol=1e-4, atol=1e-5)
    assert np.diag(cosine(by_numpy, original)).min() > 0.99


@pytest.mark.parametrize("name", [name for name, model in BUNDLED_MODELS.items() if model.is_whole])
@pytest.mark.parametrize("backend", ["numpy", "onnx", "torch"])
def test_a_whole_bundled_model_needs_no_download(name: str, backend: str) -> None:
    """Tests have an empty cache and no network."""
    model = RelBERT.from_pretrained(name, backend=backend)
    assert model.rank(("Paris", "France"), [("cup", "tea"), ("Tokyo", "Japan")])[0].item == ("Tokyo", "Japan")
