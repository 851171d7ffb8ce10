"""Low-rank adapters on an encoder: put in place with PEFT, saved in its format, as half-precision."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save_file
from transformers import PreTrainedModel

from relvec.errors import RelvecError
from relvec.io.files import folder_written_whole
from relvec.model.adapter import CONFIG_NAME, WEIGHTS_NAME
from relvec.model.base import lasting
from relvec.model.card import model_card
from relvec.model.saving import CONFIGS, MODEL_FILES
from relvec.model.torch_backend import TorchRelBERT

if TYPE_CHECKING:
    from peft import PeftModel

ALPHA_PER_RANK = 2


def add_lora(encoder: PreTrainedModel, rank: int) -> "PeftModel":
    """Freeze the encoder and put a trainable low-rank product beside each linear layer of its blocks.

    The encoder itself is changed in place and keeps working as before; the returned wrapper saves the adapter.
    """
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as error:
        raise RelvecError("Adapters are trained with peft; run pip install 'relvec[train]', or use rank 0.") from error
    config = LoraConfig(r=rank, lora_alpha=ALPHA_PER_RANK * rank, target_modules=block_linears(encoder), bias="none")
    return get_peft_model(encoder, config)


def block_linears(encoder: PreTrainedModel) -> list[str]:
    """The names of the linear layers of the encoder's blocks."""
    names = [name for name, module in encoder.named_modules() if isinstance(module, torch.nn.Linear)]
    blocks = [name for name in names if "layer" in name and "pooler" not in name]
    if not blocks:
        raise RelvecError("This encoder has no linear layers to adapt; train it with lora_rank = 0.")
    return blocks


def save_adapter(wrapped: "PeftModel", model: TorchRelBERT, base: str, folder: Path) -> None:
    """Write the adapter and, as config.json and README, what the model with it is."""
    from peft import get_peft_model_state_dict

    state: dict[str, torch.Tensor] = get_peft_model_state_dict(wrapped)
    weights = {name: weight.detach().cpu().half().contiguous() for name, weight in state.items()}
    settings = wrapped.peft_config["default"].to_dict()
    settings |= {"base_model_name_or_path": base, "inference_mode": True}
    settings["target_modules"] = sorted(settings["target_modules"])
    write_adapter(weights, settings, model, folder)


def write_adapter(
    weights: dict[str, torch.Tensor], settings: dict[str, Any], model: TorchRelBERT, folder: Path
) -> None:
    """A folder in PEFT's format, with the configuration and the card of the model that it makes."""
    settings = settings | {"base_model_name_or_path": lasting(settings["base_model_name_or_path"])}
    with folder_written_whole(folder, stale=MODEL_FILES, first=CONFIGS) as partial:
        save_file(weights, partial / WEIGHTS_NAME, metadata={"format": "pt"})
        (partial / CONFIG_NAME).write_text(json.dumps(settings, indent=2, default=str) + "\n", encoding="utf-8")
        (partial / "config.json").write_text(json.dumps(model.full_config(), indent=2) + "\n", encoding="utf-8")
        (partial / "README.md").write_text(model_card(model), encoding="utf-8")
