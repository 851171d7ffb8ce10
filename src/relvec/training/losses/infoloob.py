"""InfoLOOB."""

from torch import Tensor

from relvec.training.losses.infonce import InfoNCE


class InfoLOOB(InfoNCE):
    """InfoNCE that leaves the positive out of the denominator (not in the paper; its authors' later loss).

        mean over relations of the mean over their positives i != j of
        -log( e^(s_ij / t) / sum over negatives n of e^(s_in / t) ),  with s the cosine

    Negatives and shapes are those of InfoNCE. It has no lower bound of 0.

    >>> import torch
    >>> from relvec.training.batch import Batch
    >>> pairs = (("oak", "tree"), ("rose", "flower"), ("tree", "oak"))
    >>> is_positive, one = torch.tensor([True, True, False]), torch.zeros(3)
    >>> batch = Batch(pairs, torch.arange(3), one, one, is_positive, triples=torch.empty(0, 3))
    >>> vectors = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    >>> InfoLOOB(dim=2, temperature=0.5)(vectors, batch)  # (-1 - 1) / 0.5
    tensor(-4.)
    """

    def log_denominator(self, positive: Tensor, negatives: Tensor) -> Tensor:
        return negatives
