"""The mean of the weights of several models, such as runs that differ in their seed."""

from collections.abc import Sequence
from typing import Any

import torch

from relvec.errors import RelvecError
from relvec.model.torch_backend import TorchRelBERT


def average(models: Sequence[TorchRelBERT]) -> TorchRelBERT:
    """Put the mean of all weights into the first model, and return it; the models must share prompt and architecture.

    >>> model = TorchRelBERT.from_pretrained(tiny_model)
    >>> average([model, TorchRelBERT.from_pretrained(tiny_model)]).fingerprint == model.fingerprint
    True
    """
    if not models:
        raise RelvecError("There are no models to average; give at least one.")
    first, *others = models
    for other in others:
        if (other.template, other.pooling) != (first.template, first.pooling):
            raise RelvecError(f"{first.name} and {other.name} differ in prompt or pooling; average models that agree.")
        if other.tokenizer.get_vocab() != first.tokenizer.get_vocab() or _shapes(other) != _shapes(first):
            raise RelvecError(f"{first.name} and {other.name} differ in architecture; average runs of one base.")
    states = [model.encoder.state_dict() for model in models]
    with torch.no_grad():
        for name, weight in states[0].items():
            if weight.is_floating_point():
                weight.copy_(torch.stack([state[name].to(weight) for state in states]).mean(dim=0))
    if others:
        first.training_record = _record(models)
    return first


def _record(models: Sequence[TorchRelBERT]) -> dict[str, Any]:
    """The training of the first, with the names, seeds and data of all, and without the metrics of a single run."""
    records = [model.training_record for model in models]
    seeds = [record.get("recipe", {}).get("seed") for record in records]
    recipe = records[0].get("recipe", {}) | {"averaged": [model.name for model in models], "seed": seeds}
    record = {name: value for name, value in records[0].items() if name != "metrics"} | {"recipe": recipe}
    data = dict.fromkeys(str(each["data"]) for each in records if "data" in each)
    return record | {"data": "; ".join(data)} if data else record


def _shapes(model: TorchRelBERT) -> dict[str, torch.Size]:
    return {name: weight.shape for name, weight in model.encoder.state_dict().items()}
