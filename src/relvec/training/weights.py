"""The weights that a run changes: found, kept, put back."""

from collections.abc import Iterable, Mapping

import torch


def trainable(named: Iterable[tuple[str, torch.nn.Parameter]]) -> dict[str, torch.nn.Parameter]:
    """Those of some parameters that get a gradient.

    >>> sorted(trainable(torch.nn.Linear(2, 2).named_parameters()))
    ['bias', 'weight']
    """
    return {name: weight for name, weight in named if weight.requires_grad}


def kept(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A copy of some weights as they are now, on the CPU."""
    return {name: weight.detach().cpu().clone() for name, weight in weights.items()}


def put_back(weights: Mapping[str, torch.Tensor], values: Mapping[str, torch.Tensor]) -> None:
    """Give weights the values that were kept of them."""
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(values[name])
