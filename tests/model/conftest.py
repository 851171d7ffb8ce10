"""Tiny models of the architectures that the quick encoder knows, plain and with adapters."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from relvec.model.adapter import CONFIG_NAME, KEY_PREFIX, WEIGHTS_NAME
from relvec.model.numpy_backend.transformer import ARCHITECTURES


def write_adapter(folder: Path, base: Path, seed: int = 1) -> Path:
    """A random adapter of rank 2 for every matrix of the layers of the encoder below `base`."""
    encoder = base
    while (encoder / CONFIG_NAME).is_file():
        encoder = Path(json.loads((encoder / CONFIG_NAME).read_text())["base_model_name_or_path"])
    folder.mkdir()
    (folder / "config.json").write_text((base / "config.json").read_text())
    settings = {"peft_type": "LORA", "base_model_name_or_path": str(base), "r": 2, "lora_alpha": 1, "bias": "none"}
    (folder / CONFIG_NAME).write_text(json.dumps(settings))
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, weight in load_file(encoder / "model.safetensors").items():
        if name.startswith("encoder.layer.") and weight.ndim == 2:
            key = KEY_PREFIX + name.removesuffix("weight")
            tensors[f"{key}lora_A.weight"] = torch.randn(2, weight.shape[1], generator=generator).half()
            tensors[f"{key}lora_B.weight"] = torch.randn(weight.shape[0], 2, generator=generator).half()
    save_file(tensors, folder / WEIGHTS_NAME)
    return folder


@pytest.fixture(params=ARCHITECTURES)
def quick_folder(request: pytest.FixtureRequest, tiny_folders: Callable[[str], Path]) -> Path:
    """A tiny model of each architecture."""
    return tiny_folders(request.param)


@pytest.fixture
def adapted(tmp_path: Path) -> Callable[[Path], Path]:
    """Ask for an adapter on a model, get its folder."""
    made: list[Path] = []

    def make(base: Path) -> Path:
        made.append(write_adapter(tmp_path / f"adapter-{len(made)}", base, seed=len(made)))
        return made[-1]

    return make
