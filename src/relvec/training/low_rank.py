"""A tuned encoder as a small adapter over its base: the nearest low-rank product to what training changed."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from relvec.encoders.adapter import KEY_PREFIX
from relvec.errors import RelvecError
from relvec.model import RelBERT
from relvec.training.lora import block_linears, write_adapter


def low_rank(change: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """The B [out, rank] and A [rank, in] with the least |D - B A|^2 for a change D [out, in].

    With D D' = U diag(s^2) U', s falling, B A = U_r U_r' D for the first r columns of U: B = U_r diag(sqrt s), and A =
    diag(1 / sqrt s) U_r' D. If D is higher than wide, it is turned: that eigenproblem is the smaller one.

    >>> up, down = low_rank(torch.tensor([[3.0, 0.0], [0.0, 1.0]]), rank=1)
    >>> (up @ down).round().tolist()
    [[3.0, 0.0], [0.0, 0.0]]
    """
    if change.shape[0] > change.shape[1]:
        up, down = low_rank(change.T, rank)
        return down.T, up.T
    wide = change.double()
    squares, directions = torch.linalg.eigh(wide @ wide.T)  # by rising eigenvalue
    kept = directions[:, -rank:].flip(1)
    root = squares[-rank:].flip(0).clamp(min=torch.finfo(torch.float64).tiny).pow(0.25)
    return (kept * root).float(), (kept.T @ wide / root.unsqueeze(1)).float()


def save_low_rank(model: RelBERT, base: str, rank: int, folder: str | Path) -> None:
    """Write a model as an adapter of its base, in PEFT's format and half precision.

    Only the linear layers of the blocks are kept: whatever else was changed is again that of the base.
    """
    if rank < 1:
        raise RelvecError(f"An adapter cannot have the rank {rank}; use 1 or more.")
    original = RelBERT.from_pretrained(base, device="cpu")
    weights = difference(model.encoder, original.encoder, rank)
    if not weights:
        raise RelvecError(f"{model.name} does not differ from {base} in a linear layer; there is nothing to adapt.")
    targets = sorted({name.removeprefix(KEY_PREFIX).rsplit(".", 2)[0] for name in weights})
    settings: dict[str, Any] = {
        "peft_type": "LORA",
        "task_type": None,
        "base_model_name_or_path": base,
        "r": rank,
        "lora_alpha": rank,
        "lora_dropout": 0.0,
        "target_modules": targets,
        "bias": "none",
        "inference_mode": True,
    }
    write_adapter(weights, settings, model, Path(folder))


def difference(tuned: PreTrainedModel, base: PreTrainedModel, rank: int) -> dict[str, Tensor]:
    """The adapter's tensors by PEFT's names, for every linear layer of the blocks that differs from the base."""
    before, after = dict(base.named_parameters()), dict(tuned.named_parameters())
    weights: dict[str, Tensor] = {}
    for name in block_linears(tuned):
        key = f"{name}.weight"
        if key not in before or before[key].shape != after[key].shape:
            raise RelvecError(f"The base does not fit the model at {key}; give the base that it was trained from.")
        change = (after[key] - before[key]).detach().float().cpu()
        if change.any():
            up, down = low_rank(change, min(rank, *change.shape))
            weights[f"{KEY_PREFIX}{name}.lora_A.weight"] = down.half().contiguous()
            weights[f"{KEY_PREFIX}{name}.lora_B.weight"] = up.half().contiguous()
    return weights
