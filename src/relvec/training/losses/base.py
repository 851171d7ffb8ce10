"""What every loss is."""

from torch import Tensor, nn

from relvec.errors import RelvecError
from relvec.training.batch import Batch


class Loss(nn.Module):
    """A scalar mean over a batch: `loss(vectors, batch)`.

    `vectors` [items, dim] holds the vector of each item, `encoded[batch.row]`, in full precision. `dim` is the
    length of a vector. A loss that needs triples reads `batch.triples`.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, vectors: Tensor, batch: Batch) -> Tensor:
        raise NotImplementedError


def columns(triples: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The anchors, positives and negatives of triples [n, 3]."""
    if not len(triples):
        raise RelvecError("The batch has no triples; build them, or choose a loss that needs none.")
    anchor, positive, negative = triples.unbind(dim=1)
    return anchor, positive, negative
