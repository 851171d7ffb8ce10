"""Which models open quickly, and what becomes of the others."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from relvec import RelBERT, RelvecError
from relvec.hub.catalogue import BUNDLED_MODELS
from relvec.index.pair_index import PairIndex
from relvec.model.adapter import WEIGHTS_NAME
from relvec.model.backends import candidates
from relvec.model.numpy_backend.model import NumpyRelBERT
from relvec.model.numpy_backend.transformer import ARCHITECTURES
from relvec.model.threads import thread_count
from relvec.model.torch_backend import TorchRelBERT

PAIRS = [("Paris", "France"), ("Tokyo", "Japan"), ("cup", "tea"), ("cats", "dogs")]


@pytest.fixture
def copy(quick_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(quick_folder, tmp_path / "copy"))


def set_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_both_architectures_open_quickly_unless_a_device_asks_for_torch(quick_folder: Path) -> None:
    assert isinstance(RelBERT.from_pretrained(quick_folder, workload="quick"), NumpyRelBERT)
    assert isinstance(RelBERT.from_pretrained(quick_folder, workload="quick", device="cpu"), TorchRelBERT)


@pytest.mark.parametrize(("gpu", "expected"), [(False, ["onnx", "numpy", "torch"]), (True, ["torch"])])
def test_a_server_takes_what_answers_fastest(gpu: bool, expected: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relvec.model.backends.has_gpu", lambda: gpu)
    assert [backend.name for backend in candidates("auto", "serve")] == expected


def test_a_server_leaves_to_torch_what_only_torch_knows(quick_folder: Path, tiny_folder: Path) -> None:
    assert RelBERT.from_pretrained(tiny_folder, workload="serve").backend == "torch"
    assert RelBERT.from_pretrained(quick_folder, workload="serve", device="cpu").backend == "torch"
    assert RelBERT.from_pretrained(quick_folder, workload="serve", dtype="bfloat16").backend == "torch"


def test_every_bundled_encoder_is_of_a_quick_architecture() -> None:
    for model in BUNDLED_MODELS.values():
        if model.name == "relvec-large" or not model.base:  # a decoder, which only torch computes; a static model
            continue
        assert json.loads((model.folder / "config.json").read_text())["model_type"] in ARCHITECTURES


@pytest.mark.parametrize("architecture", ["roberta", "albert", "xlm-roberta", "distilbert"])
def test_other_architectures_are_encoded_by_torch(tiny_folders: Callable[[str], Path], architecture: str) -> None:
    folder = tiny_folders(architecture)
    model = RelBERT.from_pretrained(folder, workload="quick")
    assert isinstance(model, TorchRelBERT)
    assert model.name == folder.name
    np.testing.assert_array_equal(model.encode(PAIRS), TorchRelBERT.from_pretrained(folder).encode(PAIRS))


@pytest.mark.parametrize("what", ["activation", "pickled", "several files", "bfloat16", "other names"])
def test_what_numpy_does_not_know_is_left_to_torch(copy: Path, what: str) -> None:
    weights = copy / "model.safetensors"
    tensors = load_file(weights)
    if what == "activation":
        set_config(copy, hidden_act="gelu_new")
    elif what == "pickled":
        torch.save(tensors, copy / "pytorch_model.bin")
        weights.unlink()
    elif what == "several files":
        TorchRelBERT.from_pretrained(copy).encoder.save_pretrained(copy, max_shard_size="10KB")
        weights.unlink(missing_ok=True)
    elif what == "bfloat16":
        save_file({name: tensor.bfloat16() for name, tensor in tensors.items()}, weights, metadata={"format": "pt"})
    else:
        kind = json.loads((copy / "config.json").read_text())["model_type"]
        save_file({f"{kind}.{name}": tensors[name] for name in tensors}, weights, metadata={"format": "pt"})
    assert isinstance(RelBERT.from_pretrained(copy, workload="quick"), TorchRelBERT)


def assert_the_message_of_torch(folder: Path, message: str) -> None:
    with pytest.raises(RelvecError, match=message) as expected:
        TorchRelBERT.from_pretrained(folder)
    with pytest.raises(RelvecError, match=re.escape(str(expected.value))):
        RelBERT.from_pretrained(folder, workload="quick")


def cut_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:5000])


def missing_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.bias"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (cut_weights, "cannot be loaded"),
        (lambda folder: (folder / "model.safetensors").unlink(), "holds no weights"),
        (missing_tensor, "lack encoder"),
        (lambda folder: (folder / "config.json").write_text("{"), "describes no encoder"),
        (lambda folder: set_config(folder, relbert_config={"template": 3}), "template is 3; give a text"),
        (lambda folder: set_config(folder, relbert_config={"training": "long ago"}), "'long ago'; give values by name"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "The tokenizer in .* cannot be read"),
        (lambda folder: set_config(folder, relbert_config={"aggregation_mode": "max"}), "Unknown pooling"),
    ],
)
def test_a_broken_folder_gets_the_message_of_torch(copy: Path, spoil: Callable[[Path], Any], message: str) -> None:
    spoil(copy)
    assert_the_message_of_torch(copy, message)


def test_a_broken_adapter_gets_the_message_of_torch(quick_folder: Path, adapted: Callable[[Path], Path]) -> None:
    folder = adapted(quick_folder)
    tensors = load_file(folder / WEIGHTS_NAME)
    name = next(name for name in tensors if "lora_A" in name)
    save_file(tensors | {name: torch.zeros(2, 3)}, folder / WEIGHTS_NAME)
    assert_the_message_of_torch(folder, "does not fit its base")
    (folder / WEIGHTS_NAME).write_bytes(b"not weights")
    assert_the_message_of_torch(folder, "cannot be read")


def test_an_index_of_relbert_is_searched_quickly(quick_folder: Path) -> None:
    model, quick = TorchRelBERT.from_pretrained(quick_folder), RelBERT.from_pretrained(quick_folder, workload="quick")
    index = PairIndex.of(model, PAIRS)
    expected = index.neighbours(model, ("barista", "coffee"))
    found = index.neighbours(quick, ("barista", "coffee"))
    assert [each.pair for each in found] == [each.pair for each in expected]
    assert [each.score for each in found] == pytest.approx([each.score for each in expected], abs=1e-5)


@pytest.mark.parametrize("backend", ["numpy", "torch", "auto"])
def test_every_backend_is_a_relbert_with_the_same_vectors(quick_folder: Path, backend: str) -> None:
    model = RelBERT.from_pretrained(quick_folder, backend=backend, template=1, pooling="mask")
    assert isinstance(model, RelBERT)
    assert model.backend == ("torch" if backend == "auto" else backend)
    expected = TorchRelBERT.from_pretrained(quick_folder, template=1, pooling="mask")
    np.testing.assert_allclose(model.encode(PAIRS), expected.encode(PAIRS), atol=1e-5)
    assert repr(model) == repr(expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "nunpy"}, "did you mean 'numpy'"),
        ({"backend": "numpy", "device": "cuda"}, "on the CPU only"),
        ({"backend": "numpy", "dtype": "bfloat16"}, r"float32 on the CPU only, not bfloat16 .*relvec\[torch\]"),
    ],
)
def test_an_impossible_choice_is_one_sentence(quick_folder: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(RelvecError, match=message):
        RelBERT.from_pretrained(quick_folder, **options)


def test_the_numpy_backend_says_what_it_does_not_know(tiny_folder: Path) -> None:
    with pytest.raises(RelvecError, match=r"not roberta.*relvec\[torch\]"):
        RelBERT.from_pretrained(tiny_folder, backend="numpy")


def test_only_torch_saves(quick_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match="backend='torch'"):
        RelBERT.from_pretrained(quick_folder, backend="numpy").save_pretrained(tmp_path / "copy")


def test_a_few_pairs_wait_for_no_slow_import(tiny_folders: Callable[[str], Path], tmp_path: Path) -> None:
    code = "import sys\nfrom relvec.cli.app import main\n"
    code += "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
    code += "slow = {'torch', 'transformers', 'scipy', 'pandas', 'huggingface_hub'} & sys.modules.keys()\n"
    code += "assert not slow, slow"
    command = [sys.executable, "-c", code, "similarity", "Paris:France", "cup:tea", "-m", str(tiny_folders("mpnet"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=dict(os.environ))
    assert done.returncode == 0, done.stderr


def test_threads_are_those_of_the_environment_else_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert thread_count() == 3
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert thread_count() == os.cpu_count()
