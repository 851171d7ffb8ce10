"""Training only the upper layers of an encoder."""

import torch

from relvec.errors import RelvecError
from relvec.model.torch_backend import TorchRelBERT


def freeze_layers(model: TorchRelBERT, count: int) -> None:
    """Keep the embeddings and the first `count` blocks of the encoder as they are; at least one is left to train."""
    if not count:
        return
    blocks = next((m for m in model.encoder.modules() if isinstance(m, torch.nn.ModuleList)), None)
    if blocks is None or count >= len(blocks):
        problem = f"Cannot freeze {count} layers of {model.encoder.config.model_type}, which has {len(blocks or ())}"
        raise RelvecError(f"{problem}; use a smaller number.")
    embeddings = getattr(model.encoder, "embeddings", model.encoder.get_input_embeddings())
    for module in (embeddings, *blocks[:count]):
        module.requires_grad_(False)
