"""Losses: relation vectors of one relation are drawn together, those of different relations apart.

`LOSSES` is the one list of them. To add a loss, write its file and its entry here; reading the list imports no torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from relvec.errors import one_of

if TYPE_CHECKING:
    from relvec.training.losses.base import Loss


@dataclass(frozen=True)
class LossEntry:
    """Where a loss is, what it does in one line, and its settings with their defaults; numbers are above 0."""

    path: str
    help: str
    settings: Mapping[str, float | bool] = field(default_factory=dict)
    needs_triples: bool = False


LOSSES: dict[str, LossEntry] = {
    "triplet": LossEntry(
        "triplet.Triplet",
        "The anchor is closer to the positive than to the negative, by a margin (section 3.2 of the paper).",
        {"margin": 1.0},
        needs_triples=True,
    ),
    "classification": LossEntry(
        "classification.Classification",
        "A classifier, trained jointly, tells whether two pairs share the relation (section 3.2 of the paper).",
        needs_triples=True,
    ),
    "triplet+classification": LossEntry(
        "classification.TripletClassification",
        "The sum of the triplet and the classification loss (section 4.1 of the paper).",
        {"margin": 1.0},
        needs_triples=True,
    ),
    "infonce": LossEntry(
        "infonce.InfoNCE",
        "Two positives are found among the negatives of their relation (the later loss of the paper's authors).",
        {"temperature": 0.05},
    ),
    "infoloob": LossEntry(
        "infonce.InfoLOOB",
        "InfoNCE that leaves the positive out of the denominator (another later loss of the paper's authors).",
        {"temperature": 0.05},
    ),
    "contrastive": LossEntry(
        "contrastive.Contrastive",
        "Every positive is anchor, positive and negative at once (supervised-contrastive; not in the paper).",
        {"temperature": 0.05, "same_category_negatives": True},
    ),
}


def make_loss(name: str, dim: int, **settings: Any) -> "Loss":
    """The loss called `name` for vectors of length `dim`.

    >>> make_loss("triplet", dim=768, margin=0.5).margin
    0.5
    """
    entry = LOSSES[one_of("loss", name, LOSSES)]
    module, _, kind = entry.path.partition(".")
    loss: Loss = getattr(import_module(f"{__name__}.{module}"), kind)(dim, **checked_settings(name, settings))
    return loss


def checked_settings(name: str, settings: Mapping[str, Any]) -> dict[str, float | bool]:
    """Some settings of the loss called `name`, each as its own type.

    >>> checked_settings("contrastive", {"temperature": "0.1", "same_category_negatives": "false"})
    {'temperature': 0.1, 'same_category_negatives': False}
    """
    from pydantic import Field, create_model

    from relvec.settings import Settings

    defaults = LOSSES[one_of("loss", name, LOSSES)].settings
    fields: dict[str, Any] = {
        each: (bool, default) if isinstance(default, bool) else (float, Field(default, gt=0))
        for each, default in defaults.items()
    }
    of_loss = create_model("LossSettings", __base__=Settings, **fields)
    return of_loss.checked(settings, where=f"loss {name}: ").model_dump(exclude_unset=True)
