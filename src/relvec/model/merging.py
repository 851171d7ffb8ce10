"""Weights that become one model: an adapter and its base, or several runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from transformers import PreTrainedModel

from relvec.errors import RelvecError, errors_as
from relvec.model.adapter import KEY_PREFIX, WEIGHTS_NAME, adapted_layers, adapter_config

if TYPE_CHECKING:
    from relvec.model.torch_backend import TorchRelBERT


@torch.no_grad()
def merge_adapter(encoder: PreTrainedModel, folder: Path) -> None:
    """Add scale * B @ A to every adapted weight of the encoder, in place."""
    scale = adapter_config(folder).scale
    path = folder / WEIGHTS_NAME
    with errors_as(f"The adapter {path} cannot be read", "fetch it again", SafetensorError, OSError):
        tensors = load_file(path)
    weights = dict(encoder.named_parameters())
    for layer in adapted_layers(tensors.keys(), path):
        down, up = tensors[f"{layer}.lora_A.weight"], tensors[f"{layer}.lora_B.weight"]
        name = f"{layer.removeprefix(KEY_PREFIX)}.weight"
        if name not in weights or weights[name].shape != (up.shape[0], down.shape[1]):
            raise RelvecError(f"The adapter {path} does not fit its base at {name}; use the base it was trained on.")
        weights[name].add_(scale * (up.float() @ down.float()))


@torch.no_grad()
def average(models: "Sequence[TorchRelBERT]") -> "TorchRelBERT":
    """Put the mean of all weights into the first model, and return it; the models must share prompt and architecture.

    >>> from relvec.model.torch_backend import TorchRelBERT
    >>> model = TorchRelBERT.from_pretrained(tiny_model)
    >>> average([model, TorchRelBERT.from_pretrained(tiny_model)]).fingerprint == model.fingerprint
    True
    """
    first, *others = models
    for other in others:
        if (other.template, other.pooling) != (first.template, first.pooling):
            raise RelvecError(f"{first.name} and {other.name} differ in prompt or pooling; average models that agree.")
        if other.tokenizer.get_vocab() != first.tokenizer.get_vocab() or _shapes(other) != _shapes(first):
            raise RelvecError(f"{first.name} and {other.name} differ in architecture; average runs of one base.")
    states = [model.encoder.state_dict() for model in models]
    for name, weight in states[0].items():
        if weight.is_floating_point():
            weight.copy_(torch.stack([state[name].to(weight) for state in states]).mean(dim=0))
    if others:
        first.training_record = _record(models)
    return first


def _record(models: "Sequence[TorchRelBERT]") -> dict[str, Any]:
    """The training of the first, with the names, seeds and data of all, and without the metrics of a single run."""
    records = [model.training_record for model in models]
    seeds = [record.get("recipe", {}).get("seed") for record in records]
    recipe = records[0].get("recipe", {}) | {"averaged": [model.name for model in models], "seed": seeds}
    record = {name: value for name, value in records[0].items() if name != "metrics"} | {"recipe": recipe}
    data = dict.fromkeys(str(each["data"]) for each in records if "data" in each)
    return record | {"data": "; ".join(data)} if data else record


def _shapes(model: "TorchRelBERT") -> dict[str, torch.Size]:
    return {name: weight.shape for name, weight in model.encoder.state_dict().items()}
