"""The training loop: step, evaluate, keep the best, checkpoint, resume.

Fine-tuning, distillation, P-tuning and the fine-tuned classifier are subclasses that say what a step and an evaluation
are. Whatever is random in a step depends on the seed and the step alone, so a resumed run ends as an undisturbed one.
"""

import math
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import get_scheduler

from relvec.errors import RelvecError
from relvec.progress import progress_bar
from relvec.training.checkpoint import Checkpoint

Schedule = Literal["linear", "constant"]
Scores = dict[str, float]
"""What an evaluation found, by name."""


@dataclass
class Course:
    """How a run went: the loss of each step, the scores of each evaluation, and the step that is the best of them."""

    loss: dict[int, float] = field(default_factory=dict)
    scores: dict[int, Scores] = field(default_factory=dict)
    best_step: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = field(default=0.0, compare=False)

    @property
    def first(self) -> Scores:
        """The scores before training."""
        return self.scores[0]

    @property
    def best(self) -> Scores:
        return self.scores[self.best_step]


class Loop(ABC):
    """A run of `steps` steps that changes `weights`; `job` is a checksum of all that decides it.

    The learning rate rises over the first `warmup_steps`, then stays or falls linearly to nearly 0. Every
    `evaluate_every` steps and at the end, the run is evaluated and saved to the file `checkpoint`, if there is one.
    """

    title = "Training"
    score: str
    """The score by which evaluations are compared."""
    lower_is_better = True
    evaluates_start = True
    max_gradient_norm = 1.0
    patience = 0
    """Stop after so many evaluations without a better one; 0 trains to the end."""
    checkpoint_every: int | None = None
    """Save between evaluations too, every so many steps."""
    logs: Path | None = None
    """A folder for TensorBoard."""
    is_main = True
    """Whether this process is the one that writes files."""

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
    ) -> None:
        self.weights = {name: weight for name, weight in weights if weight.requires_grad}
        self.steps, self.evaluate_every = steps, evaluate_every
        self.optimizer = torch.optim.AdamW(self.weights.values(), lr=learning_rate, weight_decay=weight_decay)
        self.checkpoint = None if checkpoint is None else Checkpoint(checkpoint, job)
        self.course = Course()
        self.best: Mapping[str, Tensor] = {}
        kind = "linear" if schedule == "linear" else "constant_with_warmup"
        scheduler: Any = get_scheduler(
            kind, self.optimizer, num_warmup_steps=warmup_steps, num_training_steps=steps + 1
        )
        # Asked for by step, it needs no checkpoint, and neither the first nor the last step is one of rate 0.
        self._rate_factor = scheduler.lr_lambdas[0]

    @abstractmethod
    def gradients(self, step: int) -> float:
        """Leave the gradients of a step in the weights and return its loss; steps count from 1."""

    @abstractmethod
    def evaluate(self) -> Scores:
        """The scores of the weights as they are now."""

    def snapshot(self) -> Mapping[str, Tensor]:
        """What is kept of the best evaluation."""
        return kept(self.weights)

    def run(self, show_progress: bool | None = None) -> Course:
        """Train to the end, from the last checkpoint if there is one; what was kept of the best is in `best`."""
        self._resume()
        course, started = self.course, time.perf_counter() - self.course.seconds
        if self.evaluates_start and not course.scores:
            self._evaluate(0)
        show = show_progress if self.is_main else False
        done = max(course.loss, default=0)
        with (
            _Log(self.logs if self.is_main else None) as log,
            progress_bar(self.steps, self.title, unit="step", show=show, initial=done) as bar,
        ):
            for step in range(done + 1, self.steps + 1):
                if self._has_stalled():
                    break
                course.loss[step] = self.step(step)
                log.write("train loss", course.loss[step], step)
                evaluates = step % self.evaluate_every == 0 or step == self.steps
                if evaluates:
                    self._evaluate(step)
                    for name, value in course.scores[step].items():
                        log.write(name, value, step)
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
            self.checkpoint.path.unlink(missing_ok=True)

    def _evaluate(self, step: int) -> None:
        course = self.course
        course.scores[step] = self.evaluate()
        if len(course.scores) == 1 or self._is_better(course.scores[step], course.best):
            course.best_step, self.best = step, self.snapshot()

    def _is_better(self, scores: Scores, best: Scores) -> bool:
        """Where there is nothing to compare, the later is better."""
        if self.score not in scores:
            return True
        new, old = scores[self.score], best[self.score]
        return new < old if self.lower_is_better else new > old

    def _has_stalled(self) -> bool:
        since_best = sum(step > self.course.best_step for step in self.course.scores)
        return 0 < self.patience <= since_best

    def _save(self) -> None:
        if self.checkpoint is not None and self.is_main:
            state = {
                "course": {**vars(self.course), "counts": dict(self.course.counts)},
                "weights": kept(self.weights),
                "best": dict(self.best),
                "optimizer": self.optimizer.state_dict(),
            }
            self.checkpoint.save(state)

    def _resume(self) -> None:
        state = self.checkpoint.load() if self.checkpoint is not None else None
        if state is not None:
            self.course = Course(**{**state["course"], "counts": Counter(state["course"]["counts"])})
            self.best = state["best"]
            put_back(self.weights, state["weights"])
            self.optimizer.load_state_dict(state["optimizer"])


def kept(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A copy of some weights as they are now, on the CPU."""
    return {name: weight.detach().cpu().clone() for name, weight in weights.items()}


def put_back(weights: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
    """Give weights the values that were kept of them."""
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(values[name])


class _Log:
    """Losses for TensorBoard, where it is installed."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def __enter__(self) -> "_Log":
        self._writer: Any = None
        if self._folder is not None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                return self
            self._writer = SummaryWriter(str(self._folder))
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, name: str, value: float, step: int) -> None:
        if self._writer is not None:
            self._writer.add_scalar(name.replace(" ", "/"), value, step)
