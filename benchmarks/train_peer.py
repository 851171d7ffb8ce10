"""Trains with the peer, in its own environment, and saves a checkpoint every few steps with the clock stopped."""

import json
import sys
from pathlib import Path
from typing import Any

import relbert
import relbert.lm
from stopwatch import Stopwatch

relbert.lm.internet_connection = lambda: False  # every model is a local folder: ask no web page


class EndOfRunError(Exception):
    """Ends the peer's loop, which knows whole epochs only."""


def train(output: Path, steps: int, every: int, data: str, settings: dict[str, Any]) -> list[float]:
    """The seconds of training before each checkpoint; what is not in `settings` is as in `relbert-train`."""
    clock = Stopwatch()
    triplet = {"loss_function": "triplet", "classification_loss": False, "loss_function_config": {"mse_margin": 1}}
    trainer = relbert.Trainer(output_dir=str(output), data=data, **triplet, **settings)
    seconds: list[float] = []
    next_rate = trainer.scheduler.step
    done = 0

    def record() -> None:
        seconds.append(clock.seconds())
        with clock.pause():
            trainer.model.save(str(output / f"checkpoint-{len(seconds) - 1}"))

    def after_step() -> None:
        nonlocal done
        next_rate()
        done += 1
        if done % every == 0:
            record()
        if done == steps:
            raise EndOfRunError

    trainer.scheduler.step = after_step
    record()
    try:
        trainer.train(epoch_save=None)
    except EndOfRunError:
        return seconds
    raise SystemExit(f"The data has steps for {done} only; give more data or ask for fewer.")


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    folder = Path(arguments.pop("output"))
    (folder / "seconds.json").write_text(json.dumps(train(folder, **arguments)))
