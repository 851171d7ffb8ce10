"""What fine-tuning and distillation share: the encoder of a model is trained, whole or by an adapter, and saved."""

import shutil
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from relvec.errors import RelvecError, size_text
from relvec.model.saving import finished_run
from relvec.model.torch_backend import TorchRelBERT
from relvec.storage.lock import writing
from relvec.training.adapters import add_lora, save_adapter
from relvec.training.loop import CHECKPOINT_NAME, Course, Loop, put_back

COPIES = 9  # weights, best weights and two moments, in the old and the new checkpoint; and the model itself


class EncoderTraining(Loop):
    """Trains the encoder of `model`, and `more` weights, and saves the model to the folder `output`.

    With a `lora_rank` it trains an adapter of `base`. `options` are those of the loop.
    """

    def __init__(
        self,
        model: TorchRelBERT,
        base: str,
        output: Path,
        job: str,
        *,
        lora_rank: int,
        seed: int,
        more: Iterable[tuple[str, torch.nn.Parameter]] = (),
        **options: Any,
    ) -> None:
        self.model, self.base, self.output = model, base, output
        torch.manual_seed(seed)
        self.adapter = add_lora(model.encoder, lora_rank) if lora_rank else None
        super().__init__(chain(model.encoder.named_parameters(), more), job, output / CHECKPOINT_NAME, **options)

    @abstractmethod
    def record(self, course: Course) -> dict[str, Any]:
        """What the model card says about the training."""

    def fit(self, show_progress: bool | None = None) -> Course:
        """Train, keep the weights of the best evaluation, and save the model, unless this run has been finished."""
        with writing(self.output) if self.is_main else nullcontext():
            if finished := finished_course(self.output, self.job):
                return finished
            self.check_disk()
            course = self.run(show_progress)
            put_back(self.weights, self.best)
            if self.is_main:
                self.save(course)
            self.delete_checkpoint()
        return course

    def save(self, course: Course) -> None:
        """Write the trained model: an adapter for LoRA, a plain encoder otherwise."""
        self.model.training_record = self.record(course) | run_record(self.job, course)
        self.model.name = self.output.resolve().name
        if self.adapter is None:
            self.model.save_pretrained(self.output)
        else:
            save_adapter(self.adapter, self.model, self.base, self.output)

    def check_disk(self) -> None:
        """The output folder must have room for the model and its checkpoint."""
        needed = COPIES * torch.float32.itemsize * self.trainable_parameters
        output = self.output.absolute()
        folder = next(place for place in (output, *output.parents) if place.exists())
        free = shutil.disk_usage(folder).free
        if free < needed:
            problem = f"{folder} has {size_text(free)} free and the run needs {size_text(needed)}"
            raise RelvecError(f"{problem}; free some.")

    @property
    def trainable_parameters(self) -> int:
        return sum(weight.numel() for weight in self.weights.values())

    def estimated_seconds(self, step: Callable[[], object], step_pairs: int, evaluated_pairs: int) -> float:
        """What the run will take, from the time of one step; the weights stay as they are."""
        finished_course(self.output, self.job)
        self.check_disk()
        step_seconds = seconds_of(step)
        self.optimizer.zero_grad()
        evaluation_seconds = step_seconds / 3 * evaluated_pairs / step_pairs  # it has no backward pass
        return self.steps * step_seconds + (1 + self.steps // self.evaluate_every) * evaluation_seconds


def run_record(job: str, course: Course) -> dict[str, Any]:
    """What a trained model says of its run, by which `finished_course` knows it again."""
    return {"run": {"job": job, "step": course.best_step, "first": course.first, "best": course.best}}


def finished_course(output: Path, job: str) -> Course | None:
    """What is known of a run that an earlier call has finished, or None; the model of another run is refused."""
    run = finished_run(output, job, (CHECKPOINT_NAME,))
    if not run:
        return None
    return Course(scores={0: run["first"], run["step"]: run["best"]}, best_step=run["step"], was_finished=True)


def seconds_of(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
