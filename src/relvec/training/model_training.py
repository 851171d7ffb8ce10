"""What fine-tuning and distillation share: a run that trains a model, and saves it to a folder."""

import math
import shutil
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from relvec.errors import RelvecError, size_text
from relvec.model.relation_model import RelBERT
from relvec.model.saving import check_model_output, finished_run
from relvec.model.torch_backend import TorchRelBERT
from relvec.storage.lock import output_lock
from relvec.training.adapters import save_adapter
from relvec.training.loop import CHECKPOINT_NAME, Course, Loop, restore_weights

if TYPE_CHECKING:
    from peft import PeftModel

COPIES = 9  # weights, best weights and two moments, in the old and the new checkpoint; and the model itself


class ModelTraining(Loop):
    """Trains the `weights` of a model, or an `adapter` of its `base`, and saves it to the folder `output`.

    `options` are those of the loop.
    """

    model: RelBERT
    base: str
    adapter: "PeftModel | None" = None

    def __init__(
        self, weights: Iterable[tuple[str, torch.nn.Parameter]], job: str, output: Path, **options: Any
    ) -> None:
        self.output = output
        check_model_output(output)
        super().__init__(weights, job, output / CHECKPOINT_NAME, **options)

    def trained_model(self) -> RelBERT:
        """The model with the weights as they are now."""
        return self.model

    @abstractmethod
    def record(self, course: Course) -> dict[str, Any]:
        """What the model card says about the training."""

    def fit(self, show_progress: bool | None = None) -> Course:
        """Train, take the weights of the best evaluation, and save the model; a finished run is not repeated."""
        with output_lock(self.output) if self.is_main else nullcontext():
            if finished := self.finished_course():
                return finished
            self.check_disk()
            course = self.run(show_progress)
            restore_weights(self.weights, self.best)
            if self.is_main:
                self.save(course)
            self.delete_checkpoint()
        return course

    def save(self, course: Course) -> None:
        """Write the trained model: the adapter alone if there is one."""
        model = self.trained_model()
        run = {"job": self.job, "step": course.best_step, "first": course.first, "best": course.best}
        model.training_record = self.record(course) | {"run": run}
        model.name = self.output.resolve().name
        if self.adapter is None:
            model.save_pretrained(self.output)
        else:
            save_adapter(self.adapter, TorchRelBERT.of(model), self.base, self.output)

    def finished_course(self) -> Course | None:
        """The course of this run if an earlier call has finished it; the model of another run is refused."""
        run = finished_run(self.output, self.job, (CHECKPOINT_NAME,))
        if not run:
            return None
        return Course(scores={0: run["first"], run["step"]: run["best"]}, best_step=run["step"], was_finished=True)

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
        self.finished_course()
        self.check_disk()
        step_seconds = seconds_of(step)
        self.optimizer.zero_grad()
        evaluation_seconds = step_seconds / 3 * evaluated_pairs / step_pairs  # it has no backward pass
        return self.steps * step_seconds + (1 + math.ceil(self.steps / self.evaluate_every)) * evaluation_seconds


def seconds_of(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
