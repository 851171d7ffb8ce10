"""Losses: relation vectors of one relation are drawn together, those of different relations apart."""

import inspect
from collections.abc import Callable
from typing import Any

from relvec.errors import RelvecError, one_of
from relvec.training.losses.base import Loss
from relvec.training.losses.classification import Classification
from relvec.training.losses.contrastive import Contrastive
from relvec.training.losses.infoloob import InfoLOOB
from relvec.training.losses.infonce import InfoNCE
from relvec.training.losses.triplet import Triplet
from relvec.training.losses.triplet_classification import TripletClassification

__all__ = ["LOSSES", "Loss", "make_loss", "needs_triples"]

LOSSES: dict[str, type[Loss]] = {
    "triplet": Triplet,
    "classification": Classification,
    "triplet+classification": TripletClassification,
    "infonce": InfoNCE,
    "infoloob": InfoLOOB,
    "contrastive": Contrastive,
}


def make_loss(name: str, dim: int, **settings: Any) -> Loss:
    """The loss called `name` for vectors of length `dim`.

    >>> make_loss("triplet", dim=768, margin=0.5).margin
    0.5
    """
    make: Callable[..., Loss] = _class(name)
    known = [setting for setting in inspect.signature(make).parameters if setting != "dim"]
    unknown = [setting for setting in settings if setting not in known]
    if unknown:
        have = f"it has {', '.join(known)}" if known else "it has none"
        raise RelvecError(f"The loss {name} has no setting {', '.join(unknown)}; {have}.")
    return make(dim, **settings)


def needs_triples(name: str) -> bool:
    """Whether the loss called `name` is built on triples.

    >>> needs_triples("triplet"), needs_triples("contrastive")
    (True, False)
    """
    return _class(name).needs_triples


def _class(name: str) -> type[Loss]:
    return LOSSES[one_of("loss", name, LOSSES)]
