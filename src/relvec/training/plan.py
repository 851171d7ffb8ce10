"""What a run will do, checked and counted before hours are spent."""

import math
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from relvec.errors import RelvecError
from relvec.model.saving import check_output
from relvec.training.gradients import step_gradients
from relvec.training.trainer import Trainer

COPIES = 9  # weights, best weights and two moments, in the old and the new checkpoint; and the model itself


@dataclass(frozen=True)
class Plan:
    """The size of a run."""

    relations: int
    categories: int
    train_pairs: int
    valid_pairs: int
    steps: int
    pairs_per_step: int
    triples_per_step: int
    trainable_parameters: int
    seconds: float

    def rows(self) -> list[list[str]]:
        minutes, seconds = divmod(round(self.seconds), 60)
        return [
            ["relations", f"{self.relations:,}"],
            ["categories", f"{self.categories:,}"],
            ["distinct training pairs", f"{self.train_pairs:,}"],
            ["distinct validation pairs", f"{self.valid_pairs:,}"],
            ["steps", f"{self.steps:,}"],
            ["pairs encoded a step", f"{self.pairs_per_step:,}"],
            ["triples a step", f"{self.triples_per_step:,}"],
            ["triples in all, about", f"{self.triples_per_step * self.steps:,}"],
            ["trainable parameters", f"{self.trainable_parameters:,}"],
            ["estimated time", f"{minutes} min {seconds} s"],
        ]


def make_plan(trainer: Trainer) -> Plan:
    """Count a run and time one step of it; the weights stay as they are."""
    check_disk(trainer)
    check_output(trainer.output)
    batch = trainer.sampler(0).to(trainer.accelerator.device)
    recipe, train = trainer.recipe, trainer.relations
    start = time.perf_counter()
    size, seed = recipe.pairs_per_forward, recipe.seed
    value = step_gradients(trainer.model, trainer.loss, batch, trainer.accelerator, size, seed)
    if not math.isfinite(value):
        raise RelvecError(f"The loss of the first batch is {value}; check the base model and the loss settings.")
    step_seconds = time.perf_counter() - start
    trainer.optimizer.zero_grad()
    evaluation_seconds = step_seconds / 3 * len(trainer.validation.pairs) / len(batch.pairs)
    return Plan(
        relations=len(train),
        categories=len({relation.category for relation in train if relation.category}),
        train_pairs=len({pair for relation in train for pair in (*relation.positives, *relation.negatives)}),
        valid_pairs=len(trainer.validation.pairs),
        steps=trainer.steps,
        pairs_per_step=len(batch.pairs),
        triples_per_step=len(batch.triples),
        trainable_parameters=sum(
            weight.numel() for weight in trainer.model.encoder.parameters() if weight.requires_grad
        ),
        seconds=trainer.steps * step_seconds + (1 + trainer.steps // recipe.evaluate_every) * evaluation_seconds,
    )


def check_disk(trainer: Trainer) -> None:
    """The output folder must have room for the model and its checkpoint."""
    weights = [weight for weight in trainer.model.encoder.parameters() if weight.requires_grad]
    needed = COPIES * sum(weight.numel() * torch.float32.itemsize for weight in weights)
    folder = _existing(trainer.output.absolute())
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise RelvecError(f"{folder} has {free / 1e9:.1f} GB free and the run needs {needed / 1e9:.1f} GB; free some.")


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder
