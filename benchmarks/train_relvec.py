"""Trains with relvec, and encodes the held-out pairs every few steps with the clock stopped."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from stopwatch import Stopwatch

from relvec.data.readers import read_rated
from relvec.model.torch_backend import TorchRelBERT
from relvec.pairs import Pair
from relvec.training.loop import NamedScores
from relvec.training.recipe import Recipe
from relvec.training.trainer import Trainer


class TimedTrainer(Trainer):
    """Evaluations, and the checkpoints that belong to them, do not count."""

    clock: Stopwatch
    seconds: list[float]
    pairs: list[Pair]

    def evaluate(self) -> NamedScores:
        self.seconds.append(self.clock.seconds())
        with self.clock.pause():
            np.save(self.output / f"vectors-{len(self.seconds) - 1}.npy", self.model.encode(self.pairs))
            return super().evaluate()

    def _save(self) -> None:
        with self.clock.pause():
            super()._save()


def train(output: Path, data: str, pairs: list[Pair], settings: dict[str, Any]) -> list[float]:
    """The seconds of training before each evaluation."""
    clock = Stopwatch()
    known, held_out = (read_rated(Path(data) / f"{part}.jsonl") for part in ("train", "validation"))
    recipe = Recipe().changed(settings)
    model = TorchRelBERT.from_pretrained(recipe.base, template=recipe.template, pooling=recipe.pooling, device="cpu")
    trainer = TimedTrainer(model, known, held_out, recipe, output)
    trainer.clock, trainer.seconds, trainer.pairs = clock, [], pairs
    trainer.fit(show_progress=False)
    return trainer.seconds


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    folder = Path(arguments.pop("output"))
    arguments["pairs"] = [(head, tail) for head, tail in arguments["pairs"]]
    (folder / "seconds.json").write_text(json.dumps(train(folder, **arguments)))
