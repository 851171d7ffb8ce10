"""The gradient of one step, with its pairs shared out among the threads of a CPU."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor

from relvec.model.torch_backend import TorchRelBERT, in_parallel_threads


def drops_units(encoder: torch.nn.Module) -> bool:
    """Whether dropout is on."""
    return encoder.training and any(isinstance(module, torch.nn.Dropout) and module.p for module in encoder.modules())


def gradients_by_threads(
    model: TorchRelBERT,
    token_ids: Sequence[Sequence[int]],
    loss: Callable[[Tensor], Tensor],
    autocast: Callable[[], AbstractContextManager[object]],
) -> float:
    """Leave the gradient of a loss of the pairs' vectors in the parameters of model and loss, and return its value.

    Each thread takes its share of the pairs there and back, and waits for the others at the loss only. A GPU takes all
    in one thread, and so does dropout, whose random numbers threads would take in no fixed order. The gradient is that
    of one pass.
    """
    order = sorted(range(len(token_ids)), key=lambda row: len(token_ids[row]))
    is_shared = model.device.type == "cpu" and not drops_units(model.encoder)
    threads = min(torch.get_num_threads(), len(order)) if is_shared else 1
    shares = [order[first::threads] for first in range(threads)]
    weights = [weight for weight in model.encoder.parameters() if weight.requires_grad]

    def encoded(share: Sequence[int]) -> Tensor:
        with autocast():
            return model.vectors_by_length([token_ids[row] for row in share]).float()

    def gradients(way: tuple[Tensor, Tensor]) -> tuple[Tensor | None, ...]:
        vectors, gradient = way
        return torch.autograd.grad(vectors, weights, gradient, allow_unused=True)

    parts = list(in_parallel_threads(encoded, shares))
    rows = torch.tensor([row for share in shares for row in share]).argsort()
    vectors = torch.cat([part.detach() for part in parts])[rows].requires_grad_()
    value = loss(vectors)
    value.backward()
    assert vectors.grad is not None
    ways = [(part, vectors.grad[share]) for part, share in zip(parts, shares, strict=True)]
    for found in in_parallel_threads(gradients, ways):
        for weight, gradient in zip(weights, found, strict=True):
            if gradient is not None:
                weight.grad = gradient if weight.grad is None else weight.grad + gradient
    return float(value.detach())
