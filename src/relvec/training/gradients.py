"""The gradient of one step, however large the batch and however many processes share it.

A contrastive loss needs all vectors of a batch at once. Where they do not fit into one forward pass, or lie on
several processes, the vectors are first computed without gradient and gathered; the loss gives the gradient of
each vector; then each chunk is computed again and this gradient is sent back through it (gradient caching). Without
dropout the result equals that of one large pass; with it, each chunk drops units of its own.
"""

import math
from collections.abc import Sequence

import torch
from accelerate import Accelerator

from relvec.model.torch_backend import TorchRelBERT
from relvec.training.batch import Batch
from relvec.training.losses.base import Loss


def step_gradients(
    model: TorchRelBERT, loss: Loss, batch: Batch, accelerator: Accelerator, pairs_per_forward: int, seed: int
) -> float:
    """Leave the gradient of `loss` on `batch` in the parameters of model and loss, and return its value."""
    token_ids = model.token_ids(batch.pairs)
    if accelerator.num_processes == 1 and len(token_ids) <= pairs_per_forward:
        torch.manual_seed(seed)
        with accelerator.autocast():
            vectors = model.vectors_by_length(token_ids).float()
        value = loss(vectors[batch.row], batch)
        accelerator.backward(value)
        return float(value.detach())
    return _cached(model, loss, batch, accelerator, token_ids, pairs_per_forward, seed)


def _cached(
    model: TorchRelBERT,
    loss: Loss,
    batch: Batch,
    accelerator: Accelerator,
    token_ids: Sequence[Sequence[int]],
    pairs_per_forward: int,
    seed: int,
) -> float:
    share = math.ceil(len(token_ids) / accelerator.num_processes)
    chunks = list(torch.arange(len(token_ids)).split(min(pairs_per_forward, share)))
    mine = range(accelerator.process_index, len(chunks), accelerator.num_processes)

    def encoded(chunk: int) -> torch.Tensor:
        torch.manual_seed(seed + chunk)  # both passes must drop the same units
        with accelerator.autocast():
            return model.vectors_by_length([token_ids[row] for row in chunks[chunk].tolist()]).float()

    vectors = torch.zeros(len(token_ids), model.dim, device=accelerator.device)
    with torch.no_grad():
        for chunk in mine:
            vectors[chunks[chunk]] = encoded(chunk)
    vectors = accelerator.reduce(vectors, "sum").requires_grad_()
    value = loss(vectors[batch.row], batch)
    value.backward()  # also the gradient of the loss's own parameters, the same in every process
    assert vectors.grad is not None
    for chunk in mine:
        accelerator.backward((encoded(chunk) * vectors.grad[chunks[chunk]]).sum())
    if accelerator.num_processes > 1:
        for weight in model.encoder.parameters():
            if weight.requires_grad:
                gradient = torch.zeros_like(weight) if weight.grad is None else weight.grad
                weight.grad = accelerator.reduce(gradient, "sum")
    return float(value.detach())
