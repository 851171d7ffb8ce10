"""One training step's worth of word pairs and what is known of them."""

from dataclasses import dataclass

import torch

from relvec.pairs import Pair


@dataclass(frozen=True)
class Batch:
    """Distinct pairs, each encoded once, and the items that refer to them.

    An item is a pair in a role: a positive of a relation, or a hard negative of it (badly rated for that very
    relation). One pair may be several items. `row`, `relation`, `category` and `is_positive` have one entry for
    each item; `triples` [n, 3] holds item numbers (anchor, positive, negative) for the losses that are built on
    triples, and is empty for the others.
    """

    pairs: tuple[Pair, ...]
    row: torch.Tensor
    relation: torch.Tensor
    category: torch.Tensor
    is_positive: torch.Tensor
    triples: torch.Tensor

    def to(self, device: torch.device) -> "Batch":
        moved = (self.row, self.relation, self.category, self.is_positive, self.triples)
        return Batch(self.pairs, *(tensor.to(device) for tensor in moved))
