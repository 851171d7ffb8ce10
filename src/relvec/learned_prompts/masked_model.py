"""What learning a prompt starts from: the frozen base with a mask for each trigger."""

from collections.abc import Sequence
from pathlib import Path

import torch

from relvec.data.rated import RatedRelation
from relvec.errors import RelvecError
from relvec.model.torch_backend import TorchRelBERT
from relvec.prompts.learned import Lengths
from relvec.prompts.template import MASK, Template
from relvec.prompts.tokenized import TokenizedTemplate


def masked_model(
    base: str | Path,
    lengths: Lengths,
    pooling: str = "average",
    device: str | torch.device | None = None,
    dtype: str = "float32",
) -> TorchRelBERT:
    """The base with a mask for each trigger, its weights frozen."""
    if pooling == "mask":
        raise RelvecError("Mask pooling has nothing to read once all masks are replaced; use average pooling.")
    plain = TorchRelBERT.from_pretrained(base, template="[h] [t]", pooling="average", device=device, dtype=dtype)
    if plain.tokenizer.mask_token is None:
        raise RelvecError(f"{base} has no mask token for the triggers to start from; use a masked language model.")
    plain.encoder.requires_grad_(False)
    plain.encoder.eval()
    record = plain.training_record
    return TorchRelBERT(plain.encoder, plain.tokenizer, _all_masks(lengths), pooling, training_record=record)


def check_room(model: TorchRelBERT, lengths: Lengths, relations: Sequence[RatedRelation]) -> None:
    """All pairs of the relations must fit into the model, with so many triggers around them."""
    pairs = [pair for relation in relations for pair in (*relation.positives, *relation.negatives)]
    for pair, tokens in zip(pairs, TokenizedTemplate(_all_masks(lengths), model.tokenizer)(pairs), strict=True):
        if len(tokens) > model.max_tokens:
            problem = f"With the lengths {lengths} the pair {':'.join(pair)} makes {len(tokens)} tokens"
            raise RelvecError(
                f"{problem} where the base takes {model.max_tokens}; give fewer --lengths, or shorten the pair."
            )


def _all_masks(lengths: Lengths) -> Template:
    return Template.from_tokens(lengths.arranged([MASK] * lengths.total))
