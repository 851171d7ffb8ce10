import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from relvec import RelBERT, RelvecError
from relvec.model.adapter import CONFIG_NAME, WEIGHTS_NAME, plain_base
from relvec.model.torch_backend import TorchRelBERT

LAYER = "encoder.layer.0.attention.self.query"
PAIRS = [("Paris", "France"), ("Tokyo", "Japan")]


def write_adapter(folder: Path, base: Path, tensors: dict[str, torch.Tensor] | None = None, **changes: Any) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text((base / "config.json").read_text())
    settings = {"peft_type": "LORA", "base_model_name_or_path": str(base), "r": 2, "lora_alpha": 6, "bias": "none"}
    (folder / CONFIG_NAME).write_text(json.dumps(settings | changes))
    if tensors is None:
        generator = torch.Generator().manual_seed(1)
        tensors = {
            f"base_model.model.{LAYER}.lora_A.weight": torch.randn(2, 16, generator=generator),
            f"base_model.model.{LAYER}.lora_B.weight": torch.randn(16, 2, generator=generator),
        }
    save_file(tensors, folder / WEIGHTS_NAME)
    return folder


@pytest.mark.parametrize(("options", "scale"), [({}, 3.0), ({"use_rslora": True}, 6 / 2**0.5)])
def test_a_merged_adapter_is_base_plus_scaled_product(
    tiny_folder: Path, tmp_path: Path, options: dict[str, Any], scale: float
) -> None:
    adapted = TorchRelBERT.from_pretrained(write_adapter(tmp_path / "adapter", tiny_folder, **options))
    base = TorchRelBERT.from_pretrained(tiny_folder)
    from safetensors.torch import load_file

    down, up = (
        load_file(tmp_path / "adapter" / WEIGHTS_NAME)[f"base_model.model.{LAYER}.lora_{x}.weight"] for x in "AB"
    )
    weight = base.encoder.get_parameter(f"{LAYER}.weight")
    torch.testing.assert_close(adapted.encoder.get_parameter(f"{LAYER}.weight"), weight + scale * up @ down)
    assert not np.allclose(adapted.encode(PAIRS), base.encode(PAIRS))


def test_a_merged_model_saves_as_a_plain_encoder(tiny_folder: Path, tmp_path: Path) -> None:
    adapted = TorchRelBERT.from_pretrained(write_adapter(tmp_path / "adapter", tiny_folder))
    adapted.save_pretrained(tmp_path / "plain")
    assert not (tmp_path / "plain" / CONFIG_NAME).exists()
    assert TorchRelBERT.from_pretrained(tmp_path / "plain").fingerprint == adapted.fingerprint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"peft_type": "IA3"}, "not a plain LoRA"),
        ({"use_dora": True}, "not a plain LoRA"),
        ({"bias": "all"}, "not a plain LoRA"),
        ({"rank_pattern": {"x": 4}}, "not a plain LoRA"),
        ({"r": 0}, "r is 0; use 1 or more.*fetch it again"),
    ],
)
def test_other_kinds_of_adapter_are_refused(
    tiny_folder: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(RelvecError, match=message):
        TorchRelBERT.from_pretrained(write_adapter(tmp_path / "adapter", tiny_folder, **changes))


@pytest.mark.parametrize(
    "names",
    [
        [f"{LAYER}.lora_A.weight"],
        [f"{LAYER}.lora_A.weight", f"{LAYER}.lora_B.weight", f"{LAYER}.lora_B.bias"],
        ["embeddings.word_embeddings.lora_embedding_A", "embeddings.word_embeddings.lora_embedding_B"],
    ],
)
def test_an_adapter_of_other_tensors_than_pairs_is_refused(tiny_folder: Path, tmp_path: Path, names: list[str]) -> None:
    tensors = {f"base_model.model.{name}": torch.zeros(16, 16) for name in names}
    with pytest.raises(RelvecError, match="not made of pairs of lora_A and lora_B"):
        TorchRelBERT.from_pretrained(write_adapter(tmp_path / "adapter", tiny_folder, tensors))


@pytest.mark.parametrize("load", [TorchRelBERT.from_pretrained, plain_base])
def test_a_circle_of_adapters_is_refused(tiny_folder: Path, tmp_path: Path, load: Callable[[str], Any]) -> None:
    lower = write_adapter(tmp_path / "lower", tiny_folder, base_model_name_or_path=str(tmp_path / "upper"))
    upper = write_adapter(tmp_path / "upper", tiny_folder, base_model_name_or_path=str(lower))
    with pytest.raises(RelvecError, match="stands on itself"):
        load(str(upper))


@pytest.mark.parametrize("backend", ["torch", "numpy"])
def test_an_adapter_of_another_base_is_named_not_the_base(tiny_folder: Path, tmp_path: Path, backend: str) -> None:
    base = tmp_path / "base"
    shutil.copytree(tiny_folder, base)
    folder = write_adapter(tmp_path / "adapter", tiny_folder, base_model_name_or_path=str(base))
    config = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps(config | {"hidden_size": 32}))
    with pytest.raises(RelvecError, match=r"^The adapter .*adapter does not fit its base .*hidden_size is 16, not 32"):
        RelBERT.from_pretrained(folder, backend=backend)


def test_an_adapter_may_stand_on_another(tiny_folder: Path, tmp_path: Path) -> None:
    lower = write_adapter(tmp_path / "lower", tiny_folder)
    upper = write_adapter(tmp_path / "upper", tiny_folder, base_model_name_or_path=str(lower))
    name = f"{LAYER}.weight"
    base, one, two = (TorchRelBERT.from_pretrained(f).encoder.get_parameter(name) for f in (tiny_folder, lower, upper))
    torch.testing.assert_close(two - base, 2 * (one - base))
