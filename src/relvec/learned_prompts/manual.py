"""The choice among the paper's five manual templates: by validation loss (section 4.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from relvec.data.rated import RatedRelation, check_relations
from relvec.learned_prompts.objective import PromptObjective, check_finite
from relvec.model.torch_backend import TorchRelBERT
from relvec.progress import progress_bar
from relvec.prompts import MANUAL_TEMPLATES


@dataclass(frozen=True)
class ManualLoss:
    """A manual template by its number, and its validation loss."""

    number: int
    template: str
    loss: float


def manual_losses(
    base: str | Path,
    relations: Sequence[RatedRelation],
    *,
    pooling: str = "average",
    device: str | torch.device | None = None,
    show_progress: bool | None = None,
) -> list[ManualLoss]:
    """The validation loss of each manual template; the lowest is the best.

    >>> from relvec.data.sources import load
    >>> losses = manual_losses(tiny_model, load("bundled")[:4])
    >>> [each.number for each in losses]
    [1, 2, 3, 4, 5]
    """
    check_relations(relations)
    objective = PromptObjective(relations, "valid")
    first = next(iter(MANUAL_TEMPLATES))  # the base's own template, if it has one, need not suit the pooling
    model = TorchRelBERT.from_pretrained(base, template=first, pooling=pooling, device=device)
    losses = []
    with progress_bar(len(MANUAL_TEMPLATES), "Templates", unit="template", show=show_progress) as bar:
        for number, template in MANUAL_TEMPLATES.items():
            prompted = TorchRelBERT(model.encoder, model.tokenizer, template, pooling)
            loss = objective.of_model(prompted)
            check_finite(loss)
            losses.append(ManualLoss(number, template, loss))
            bar.update()
    return losses
