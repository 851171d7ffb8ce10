"""Low-rank adapters on an encoder: put in place with PEFT, saved in its format, as half-precision."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save_file
from transformers import PreTrainedModel

from relvec.encoders.adapter import CONFIG_NAME, WEIGHTS_NAME
from relvec.errors import RelvecError

if TYPE_CHECKING:
    from peft import PeftModel

ALPHA_PER_RANK = 2


def add_lora(encoder: PreTrainedModel, rank: int) -> "PeftModel":
    """Freeze the encoder and put a trainable low-rank product beside each linear layer of its blocks.

    The encoder itself is changed in place and keeps working as before; the returned wrapper saves the adapter.
    """
    from peft import LoraConfig, get_peft_model

    blocks = [name for name, module in encoder.named_modules() if _is_block_linear(name, module)]
    if not blocks:
        raise RelvecError("This encoder has no linear layers to adapt; train it with lora_rank = 0.")
    config = LoraConfig(r=rank, lora_alpha=ALPHA_PER_RANK * rank, target_modules=blocks, bias="none")
    return get_peft_model(encoder, config)


def _is_block_linear(name: str, module: torch.nn.Module) -> bool:
    return isinstance(module, torch.nn.Linear) and ("layer" in name) and "pooler" not in name


def save_adapter(wrapped: "PeftModel", folder: Path, base: str, config: dict[str, Any]) -> None:
    """Write the adapter and, as config.json, the configuration of the model it makes."""
    from peft import get_peft_model_state_dict

    state: dict[str, torch.Tensor] = get_peft_model_state_dict(wrapped)
    weights = {name: weight.detach().cpu().half().contiguous() for name, weight in state.items()}
    save_file(weights, folder / WEIGHTS_NAME, metadata={"format": "pt"})
    settings = wrapped.peft_config["default"].to_dict()
    settings |= {"base_model_name_or_path": base, "inference_mode": True}
    settings["target_modules"] = sorted(settings["target_modules"])
    (folder / CONFIG_NAME).write_text(json.dumps(settings, indent=2, default=str) + "\n", encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
