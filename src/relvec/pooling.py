"""Pooling: the output vectors of a sentence become one relation vector (a mean over the tokens that count)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from relvec.errors import one_of

if TYPE_CHECKING:
    from torch import Tensor

# (is the position a token, is it the mask token) -> does it count; all of shape [batch, length], of torch or numpy
TokenChoice = Callable[[Any, Any], Any]


def _is_last(is_token: Any, is_mask: Any) -> Any:
    return is_token & (is_token.cumsum(1) == is_token.sum(1)[:, None])


class Pooling(NamedTuple):
    """Which tokens count, and what the docs say of it."""

    counts: TokenChoice
    help: str


POOLINGS: dict[str, Pooling] = {
    "average": Pooling(lambda is_token, is_mask: is_token, "all tokens (the paper)"),
    "average_no_mask": Pooling(lambda is_token, is_mask: is_token & ~is_mask, "all tokens except the mask"),
    "mask": Pooling(lambda is_token, is_mask: is_token & is_mask, "the mask token alone"),
    "last": Pooling(_is_last, "the last token alone, for decoders"),
}


def check_pooling(name: str) -> str:
    """
    >>> check_pooling("average")
    'average'
    """
    return one_of("pooling", name, POOLINGS)


def pool(name: str, output: "Tensor", is_token: "Tensor", is_mask: "Tensor") -> "Tensor":
    """Mean of `output` [batch, length, dim] over the tokens that the pooling `name` counts: [batch, dim].

    `average` is the paper's (section 3); `average_no_mask` and `mask` are those of the later published checkpoints;
    `last` reads a decoder, whose last token alone has seen all others. The mean is taken in float32 or better: rounded
    to fewer bits, vectors that are nearly alike could not be told apart.
    """
    output = output.float() if output.itemsize < 4 else output
    weights: Tensor = POOLINGS[name].counts(is_token, is_mask).to(output.dtype)
    weights = weights / weights.sum(dim=1, keepdim=True)
    return (weights.unsqueeze(1) @ output).squeeze(1)
