"""Low-rank adapters: trained with PEFT, or cut out of a tuned encoder; saved in PEFT's format, in half precision."""

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel

from relvec.errors import RelvecError, needed_for
from relvec.hub.models import resolve
from relvec.model.adapter import (
    CONFIG_NAME,
    KEY_PREFIX,
    WEIGHTS_NAME,
    absolute_base,
    adapter_config,
    check_beside_base,
    is_adapter,
    plain_base,
)
from relvec.model.card import model_card
from relvec.model.saving import atomic_model_folder, check_finite, check_model_output
from relvec.model.torch_backend import TorchRelBERT

if TYPE_CHECKING:
    from peft import PeftModel

ALPHA_PER_RANK = 2
LEFT_OUT = "share of the squared change left out"


def add_lora(encoder: PreTrainedModel, rank: int) -> "PeftModel | None":
    """Freeze the encoder, in place, and put a trainable low-rank product beside each linear layer of its blocks.

    With rank 0 there is no adapter, and all weights of the encoder stay trainable.
    """
    if not rank:
        return None
    with needed_for("Training adapters"):
        from peft import LoraConfig, get_peft_model
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

    state: dict[str, Tensor] = get_peft_model_state_dict(wrapped)
    weights = {name: weight.detach().cpu().half().contiguous() for name, weight in state.items()}
    settings = wrapped.peft_config["default"].to_dict()
    settings |= {"base_model_name_or_path": base, "inference_mode": True}
    settings["target_modules"] = sorted(settings["target_modules"])
    write_adapter(weights, settings, model, folder)


def write_adapter(weights: dict[str, Tensor], settings: dict[str, Any], model: TorchRelBERT, folder: Path) -> None:
    """A folder in PEFT's format, with the configuration and the card of the model that it makes."""
    check_finite(weights)
    settings = settings | {"base_model_name_or_path": absolute_base(settings["base_model_name_or_path"])}
    with atomic_model_folder(folder, model_card(model), model.full_config()) as partial:
        save_file(weights, partial / WEIGHTS_NAME, metadata={"format": "pt"})
        (partial / CONFIG_NAME).write_text(json.dumps(settings, indent=2, default=str) + "\n", encoding="utf-8")


def low_rank(change: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """The B [out, rank] and A [rank, in] with the least |D - B A|^2 for a change D [out, in].

    With D D' = U diag(s^2) U', s falling, B A = U_r U_r' D for the first r columns of U: B = U_r diag(sqrt s), and A =
    diag(1 / sqrt s) U_r' D. If D is higher than wide, it is turned: that eigenproblem is the smaller one. A D of a
    lower rank leaves columns of B and rows of A at 0.

    >>> up, down = low_rank(torch.tensor([[3.0, 0.0], [0.0, 1.0]]), rank=1)
    >>> (up @ down).round().tolist()
    [[3.0, 0.0], [0.0, 0.0]]
    """
    if change.shape[0] > change.shape[1]:
        up, down = low_rank(change.T, rank)
        return down.T, up.T
    wide = change.double()
    squares, directions = torch.linalg.eigh(wide @ wide.T)  # by rising eigenvalue
    squares, directions = squares[-rank:].flip(0), directions[:, -rank:].flip(1)
    is_change = squares > torch.finfo(torch.float64).eps * squares[0]  # the rest is rounding, and no divisor
    kept, root = directions * is_change, torch.where(is_change, squares, 1.0).pow(0.25)
    return (kept * root).float(), (kept.T @ wide / root.unsqueeze(1)).float()


def save_over_base(model: TorchRelBERT, source: str, rank: int, folder: str | Path) -> None:
    """Write a model as an adapter of the base that `source` stands on; an adapter on an adapter becomes one."""
    place, recorded = resolve(source), model.training_record.get("base")
    # An adapter's own name of its base holds in any working directory; the recorded one is as it was typed.
    base = adapter_config(place).base_model_name_or_path if is_adapter(place) else recorded
    if not base:
        raise RelvecError(f"{source} does not say what base it was trained from; write it with --lora 0.")
    plain = plain_base(base)
    if plain != base:
        recipe = model.training_record.get("recipe", {}) | {"started_from": recorded or base}
        model.training_record |= {"base": plain, "recipe": recipe}
    save_low_rank(model, plain, rank, folder)


def save_low_rank(model: TorchRelBERT, base: str, rank: int, folder: str | Path) -> None:
    """Write a model as an adapter of its base: the linear layers of the blocks, the rest is again that of the base.

    The metrics on the card say how much of the change was left out: it is not in these layers, or needs a higher rank.
    """
    check_beside_base(base, Path(folder), "adapter")
    check_model_output(Path(folder))
    original = TorchRelBERT.from_pretrained(base, device="cpu")
    if model.tokenizer.get_vocab() != original.tokenizer.get_vocab():
        problem = f"{model.name} has another vocabulary than {base}, which an adapter cannot hold"
        raise RelvecError(f"{problem}; save it with all its weights.")
    changed = changes(model.encoder, original.encoder)
    linears = [name for name in block_linears(model.encoder) if f"{name}.weight" in changed]
    if not linears:
        raise RelvecError(f"{model.name} does not differ from {base} in a linear layer; there is nothing to adapt.")
    weights: dict[str, Tensor] = {}
    left_out = {name: float(change.square().sum()) for name, change in changed.items()}
    total = sum(left_out.values())
    for name in linears:
        change = changed[f"{name}.weight"]
        up, down = low_rank(change, min(rank, *change.shape))
        left_out[f"{name}.weight"] = float((change - up @ down).square().sum())
        weights[f"{KEY_PREFIX}{name}.lora_A.weight"] = down.half().contiguous()
        weights[f"{KEY_PREFIX}{name}.lora_B.weight"] = up.half().contiguous()
    settings: dict[str, Any] = {
        "peft_type": "LORA",
        "task_type": None,
        "base_model_name_or_path": base,
        "r": rank,
        "lora_alpha": rank,
        "lora_dropout": 0.0,
        "target_modules": sorted(linears),
        "bias": "none",
        "inference_mode": True,
    }
    adapted = copy.copy(model)  # the model itself has lost nothing
    share = round(sum(left_out.values()) / total, 4)
    if share:
        metrics = model.training_record.get("metrics", {}) | {LEFT_OUT: share}
        adapted.training_record = model.training_record | {"metrics": metrics}
    write_adapter(weights, settings, adapted, Path(folder))


def changes(tuned: PreTrainedModel, base: PreTrainedModel) -> dict[str, Tensor]:
    """What training added to each parameter that it changed."""
    before = dict(base.named_parameters())
    found: dict[str, Tensor] = {}
    for name, weight in tuned.named_parameters():
        if name not in before or before[name].shape != weight.shape:
            raise RelvecError(f"The base does not fit the model at {name}; give the base that it was trained from.")
        change = weight.detach().float().cpu() - before[name].detach()
        if change.any():
            found[name] = change
    return found
