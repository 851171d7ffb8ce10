"""Texts that begin alike as one input of a causal language model, which reads their shared prefixes once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

TOKENS_PER_TREE = 384


@dataclass(frozen=True)
class TokenTree:
    """Tokens of some texts: each has a parent, the place of the token before it, and a depth; -1 begins a text.

    `ends` has the place of the last token of each text, by the number of the text.
    """

    tokens: list[int]
    parents: list[int]
    depths: list[int]
    ends: dict[int, int]

    def to_read(self) -> list[int]:
        """The places of the tokens that another follows: the last token of a text is predicted, but predicts nothing.

        >>> next(token_trees([[7, 8, 9], [7, 8, 5, 5], [7, 8]])).to_read()
        [0, 1, 2]
        """
        return sorted({parent for parent in self.parents if parent >= 0})

    def attention_mask(self) -> NDArray[np.bool_]:
        """Whether a token (row) follows another (column) in a text: [tokens, tokens]."""
        seen = np.eye(len(self.tokens), dtype=bool)
        for place, parent in enumerate(self.parents):
            if parent >= 0:
                seen[place] |= seen[parent]
        return seen


def token_trees(texts: Sequence[Sequence[int]], most_tokens: int = TOKENS_PER_TREE) -> Iterator[TokenTree]:
    """Trees that hold every text once, with no more tokens than that, but at least one text.

    >>> (tree,) = token_trees([[7, 8, 9], [7, 8, 5, 5], [7, 8]])
    >>> tree.tokens, tree.parents, tree.ends
    ([7, 8, 5, 5, 9], [-1, 0, 1, 2, 1], {2: 1, 1: 3, 0: 4})
    """
    tree, path = TokenTree([], [], [], {}), list[int]()
    for number in sorted(range(len(texts)), key=lambda number: list(texts[number])):
        text = texts[number]
        shared = _shared(text, [tree.tokens[place] for place in path])
        if tree.tokens and len(tree.tokens) + len(text) - shared > most_tokens:
            yield tree
            tree, path, shared = TokenTree([], [], [], {}), [], 0
        # In the order of their tokens, a text shares with no text before it more than with the last.
        path = path[:shared]
        for token in text[shared:]:
            tree.parents.append(path[-1] if path else -1)
            tree.depths.append(len(path))
            path.append(len(tree.tokens))
            tree.tokens.append(token)
        tree.ends[number] = path[-1]
    if tree.tokens:
        yield tree


def _shared(text: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens at the start of two texts are the same."""
    for place, (one, two) in enumerate(zip(text, other, strict=False)):
        if one != two:
            return place
    return min(len(text), len(other))


def tree_inputs(tree: TokenTree, places: Sequence[int], device: torch.device, dtype: torch.dtype) -> dict[str, Any]:
    """The input of a causal network that reads the tokens of a tree at some places, each with all that precede it."""
    hidden = torch.from_numpy(~tree.attention_mask()[np.ix_(places, places)]).to(device)
    mask = torch.zeros(hidden.shape, dtype=dtype, device=device).masked_fill(hidden, torch.finfo(dtype).min)
    return {
        "input_ids": torch.tensor([[tree.tokens[place] for place in places]], device=device),
        "position_ids": torch.tensor([[tree.depths[place] for place in places]], device=device),
        "attention_mask": mask[None, None],
        "use_cache": False,
    }
