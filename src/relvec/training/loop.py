"""The training loop: step, evaluate, keep the best, checkpoint, resume.

Fine-tuning, distillation, P-tuning and the fine-tuned classifier are subclasses that say what a step and an evaluation
are. Whatever is random in a step depends on the seed and the step alone, so a resumed run ends as an undisturbed one.
"""

import math
import time
import zipfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import get_scheduler

from relvec.errors import RelvecError
from relvec.io.files import atomic_write
from relvec.progress import progress_bar
from relvec.storage.job import check_job

CHECKPOINT_NAME = "checkpoint.pt"
VERSION = 2  # of what a run stores

Schedule = Literal["linear", "constant", "cooldown"]
LOOP_SETTINGS = {
    "evaluate_every",
    "learning_rate",
    "warmup_steps",
    "schedule",
    "weight_decay",
    "max_gradient_norm",
    "patience",
}
"""The settings of a run that the loop takes by their own names."""
NamedScores = dict[str, float]
"""What an evaluation found, by name."""


@dataclass
class Course:
    """How a run went: the loss of each step, the scores of each evaluation, and the step that is the best of them."""

    loss: dict[int, float] = field(default_factory=dict)
    scores: dict[int, NamedScores] = field(default_factory=dict)
    best_step: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = field(default=0.0, compare=False)
    was_finished: bool = False  # by an earlier call, of which only the first and the best scores are known

    @property
    def first(self) -> NamedScores:
        """The scores before training."""
        return self.scores[0]

    @property
    def best(self) -> NamedScores:
        return self.scores[self.best_step]


class Loop(ABC):
    """A run of `steps` steps that changes `weights`; `job` is a checksum of all that decides it.

    The learning rate rises over the first `warmup_steps`, then stays, falls linearly to nearly 0, or (`cooldown`) stays
    and falls over the last third of the steps. Every `evaluate_every` steps and at the end, the run is evaluated and
    saved to the file `checkpoint`, if there is one. With a `patience`, it stops after so many evaluations without a
    better one.
    """

    title = "Training"
    score: str  # by which evaluations are compared
    lower_is_better = True
    evaluates_start = True
    checkpoint_every: int | None = None  # save between evaluations too, every so many steps
    logs: Path | None = None  # a folder for TensorBoard
    is_main = True  # whether this process is the one that writes files

    def __init__(
        self,
        weights: Iterable[tuple[str, torch.nn.Parameter]],
        job: str,
        checkpoint: Path | None,
        *,
        steps: int,
        evaluate_every: int,
        learning_rate: float,
        warmup_steps: int = 0,
        schedule: Schedule = "linear",
        weight_decay: float = 0.01,
        max_gradient_norm: float = 1.0,
        patience: int = 0,
    ) -> None:
        self.weights = {name: weight for name, weight in weights if weight.requires_grad}
        self.steps, self.evaluate_every = steps, evaluate_every
        self.max_gradient_norm, self.patience = max_gradient_norm, patience
        self.optimizer = torch.optim.AdamW(self.weights.values(), lr=learning_rate, weight_decay=weight_decay)
        self.checkpoint, self.job = checkpoint, job
        self.course = Course()
        self.best: Mapping[str, Tensor] = {}
        kind, special = {
            "linear": ("linear", None),
            "constant": ("constant_with_warmup", None),
            "cooldown": ("warmup_stable_decay", {"num_decay_steps": round(steps / 3), "decay_type": "linear"}),
        }[schedule]
        scheduler: Any = get_scheduler(kind, self.optimizer, warmup_steps, steps + 1, special)
        # Asked for by step, it needs no checkpoint, and neither the first nor the last step is one of rate 0.
        self._rate_factor = scheduler.lr_lambdas[0]

    @abstractmethod
    def gradients(self, step: int) -> float:
        """Leave the gradients of a step in the weights and return its loss; steps count from 1."""

    @abstractmethod
    def evaluate(self) -> NamedScores:
        """The scores of the weights as they are now."""

    def snapshot(self) -> Mapping[str, Tensor]:
        """What to remember of the best evaluation: by default, all weights."""
        return copied_weights(self.weights)

    def run(self, show_progress: bool | None = None) -> Course:
        """Train to the end, from the last checkpoint if there is one; the best `snapshot` is in `best`."""
        self._resume()
        course, started = self.course, time.perf_counter() - self.course.seconds
        if self.evaluates_start and not course.scores:
            self._evaluate(0)
        show = show_progress if self.is_main else False
        done = max(course.loss, default=0)
        with (
            _log(self.logs if self.is_main else None) as log,
            progress_bar(self.steps, self.title, unit="step", show=show, initial=done) as bar,
        ):
            for step in range(done + 1, self.steps + 1):
                if 0 < self.patience <= sum(evaluated > course.best_step for evaluated in course.scores):
                    break
                course.loss[step] = self.step(step)
                log("train loss", course.loss[step], step)
                evaluates = step % self.evaluate_every == 0 or step == self.steps
                if evaluates:
                    self._evaluate(step)
                    for name, value in course.scores[step].items():
                        log(name, value, step)
                course.seconds = time.perf_counter() - started
                if evaluates or (self.checkpoint_every and step % self.checkpoint_every == 0):
                    self._save()
                bar.update()
                best = course.scores.get(course.best_step, {}).get(self.score, math.nan)
                bar.set_postfix({"loss": f"{course.loss[step]:.3f}", self.score: f"{best:.3f}"})
        return course

    def step(self, step: int) -> float:
        """Change the weights once, and return the loss before it."""
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"] * self._rate_factor(step)
        loss = self.gradients(step)
        if not math.isfinite(loss):
            raise RelvecError(f"The loss is {loss} at step {step}; lower the learning rate.")
        torch.nn.utils.clip_grad_norm_(self.weights.values(), self.max_gradient_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss

    def delete_checkpoint(self) -> None:
        """Once the result is saved, there is nothing to resume."""
        if self.checkpoint is not None and self.is_main:
            self.checkpoint.unlink(missing_ok=True)

    def _evaluate(self, step: int) -> None:
        course = self.course
        course.scores[step] = self.evaluate()
        # Where there is nothing to compare, the later is better.
        sign = 1 if self.lower_is_better else -1
        new, old = (scores.get(self.score) for scores in (course.scores[step], course.scores.get(course.best_step, {})))
        if new is None or old is None or sign * new < sign * old or len(course.scores) == 1:
            course.best_step, self.best = step, self.snapshot()

    def _save(self) -> None:
        if self.checkpoint is None or not self.is_main:
            return
        state = {
            "course": {**vars(self.course), "counts": dict(self.course.counts)},
            "weights": copied_weights(self.weights),
            "best": dict(self.best),
            "optimizer": self.optimizer.state_dict(),
            "job": self.job,
            "version": VERSION,
        }
        try:
            self.checkpoint.parent.mkdir(parents=True, exist_ok=True)
            for left in self.checkpoint.parent.glob(f".{self.checkpoint.name}.*"):  # by a run killed while it wrote
                left.unlink(missing_ok=True)
            with atomic_write(self.checkpoint) as partial:
                torch.save(state, partial)
        except (OSError, RuntimeError) as error:  # torch has a bare RuntimeError for a full disk
            raise RelvecError(f"Cannot write {self.checkpoint}; free space and start again.") from error

    def _resume(self) -> None:
        if self.checkpoint is None or not self.checkpoint.is_file():
            return
        try:
            with zipfile.ZipFile(self.checkpoint) as archive:
                is_whole = archive.testzip() is None  # torch does not look at its checksums
            state: dict[str, Any] = torch.load(self.checkpoint, map_location="cpu", weights_only=True)
            job = {(VERSION, True): state["job"]}[state["version"], is_whole]
        except Exception as error:  # what torch raises for a file that is not its own is no closed list
            raise RelvecError(f"{self.checkpoint} is not a checkpoint of a run; remove it to start again.") from error
        check_job(job == self.job, self.checkpoint)
        self.course = Course(**{**state["course"], "counts": Counter(state["course"]["counts"])})
        self.best = state["best"]
        restore_weights(self.weights, state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])


def copied_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A copy of some weights as they are now, on the CPU."""
    return {name: weight.detach().cpu().clone() for name, weight in weights.items()}


def restore_weights(weights: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
    """Give weights the values of an earlier copy."""
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(values[name])


@contextmanager
def _log(folder: Path | None) -> Iterator[Callable[[str, float, int], object]]:
    """Losses for TensorBoard, where it is installed."""
    if folder is not None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            folder = None
    if folder is None:
        yield lambda name, value, step: None
        return
    writer: Any = SummaryWriter(str(folder))
    yield lambda name, value, step: writer.add_scalar(name.replace(" ", "/"), value, step)
    writer.close()
