"""The distillation loop: pairs in, a student that gives its teacher's vectors out; a broken-off run goes on."""

import hashlib
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from relvec.distillation.batches import LengthBatches
from relvec.distillation.losses import similarity_loss, vector_loss
from relvec.distillation.pool import Pool
from relvec.distillation.targets import Targets, cosine_correlation
from relvec.errors import RelvecError
from relvec.model.base import check_beside_base
from relvec.model.cached_vectors import ModelVectors
from relvec.model.saving import check_unused
from relvec.model.torch_backend import TorchRelBERT
from relvec.progress import progress_bar
from relvec.similarity import normalized
from relvec.training.checkpoint import CHECKPOINT_NAME, load_checkpoint, save_checkpoint
from relvec.training.limits import Limits, check_limits
from relvec.training.lora import add_lora, save_adapter
from relvec.training.schedule import learning_rate_factor
from relvec.training.weights import kept, put_back, trainable

_LIMITS: Limits = {
    "steps": (0, "use 1 or more, or 0 to go by epochs"),
    "epochs": (0, "use a number above 0, or set steps"),
    "batch_size": (2, "a batch needs at least 2 pairs to compare"),
    "learning_rate": (1e-12, "use a number above 0"),
    "similarity_weight": (0, "use 0 or more"),
    "lora_rank": (0, "use 0 to train all weights, or a rank such as 64"),
    "warmup_share": (0, "use 0 or more"),
    "weight_decay": (0, "use 0 or more"),
    "max_gradient_norm": (1e-12, "use a number above 0"),
    "evaluate_every": (1, "use 1 or more"),
    "seed": (0, "use 0 or more"),
}


@dataclass(frozen=True)
class Settings:
    """How the student is trained; `steps`, if above 0, counts before `epochs`.

    The learning rate is above that of fine-tuning (3e-5): each pair has a target of its own, so there is hardly
    anything to overfit, and the student has far to go. The loss is the vector loss plus `similarity_weight` times
    the similarity loss, which is by nature some ten times smaller: an error of a vector is spread over the
    dimensions, and a cosine sees one of them.
    """

    steps: int = 0
    epochs: float = 5.0
    batch_size: int = 128
    learning_rate: float = 1e-4
    similarity_weight: float = 10.0
    lora_rank: int = 0
    warmup_share: float = 0.05
    weight_decay: float = 0.01
    max_gradient_norm: float = 1.0
    evaluate_every: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        check_limits(self, _LIMITS)
        if not self.steps and not self.epochs:
            raise RelvecError(f"epochs is {self.epochs}; use a number above 0, or set steps.")


class HeldOut(NamedTuple):
    """On held-out pairs: the mean cosine to the targets, and the correlation with the teacher's own cosines."""

    cosine: float
    correlation: float


@dataclass(frozen=True)
class Progress:
    """How a run went: the loss and the held-out scores by step."""

    loss: dict[int, float]
    held_out: dict[int, HeldOut]

    @property
    def best_step(self) -> int:
        """The step whose weights are kept: analogies are solved by cosines, so their correlation decides."""
        return max(self.held_out, key=lambda step: self.held_out[step].correlation)


class Distiller:
    """Trains a student, all of its weights or an adapter, without dropout, to give the vectors of a teacher.

    `base` and `data` are what the saved model says of the encoder it began with and of its pairs.
    """

    def __init__(
        self,
        teacher: ModelVectors,
        student: TorchRelBERT,
        pool: Pool,
        settings: Settings,
        output: str | Path,
        *,
        base: str = "",
        data: str = "",
    ) -> None:
        self.teacher, self.student, self.pool, self.settings = teacher, student, pool, settings
        self.output = Path(output)
        self.base, self.data = base or student.name, data or "Not recorded."
        if settings.lora_rank:
            check_beside_base(self.base, self.output, "adapter")
        check_unused(self.output, (CHECKPOINT_NAME,))
        self.token_ids = student.token_ids(pool.train, truncate=True)
        self.batches = LengthBatches(list(map(len, self.token_ids)), settings.batch_size, settings.seed)
        self.steps = settings.steps or math.ceil(settings.epochs * self.batches.steps_per_epoch)
        self._warmup_steps = math.ceil(settings.warmup_share * self.steps)
        job = (settings, teacher.fingerprint, student.fingerprint, pool.train, pool.held_out)
        self._job = hashlib.sha256(repr(job).encode()).hexdigest()
        torch.manual_seed(settings.seed)
        self.adapter = add_lora(student.encoder, settings.lora_rank) if settings.lora_rank else None
        self.trainable = trainable(student.encoder.named_parameters())
        self.optimizer = torch.optim.AdamW(
            self.trainable.values(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )

    def fit(self, show_progress: bool | None = None) -> Progress:
        """Train, keep the weights of the best held-out correlation, and save the student to the output folder."""
        state = load_checkpoint(self.output, self._job)
        self.teacher.prepare([*self.pool.train, *self.pool.held_out])
        self.targets = Targets.fit(self.teacher, self.student, self.pool.train, self.settings.seed)
        if state is None:
            progress, best = Progress({}, {0: self.evaluate()}), kept(self.trainable)
        else:
            progress = Progress(state["loss"], {step: HeldOut(*scores) for step, scores in state["held_out"].items()})
            best = state["best"]
            put_back(self.trainable, state["weights"])
            self.optimizer.load_state_dict(state["optimizer"])
        done = max(progress.loss, default=0)
        with progress_bar(self.steps, "Distilling", unit="step", show=show_progress, initial=done) as bar:
            for step in range(done + 1, self.steps + 1):
                progress.loss[step] = self.step(step)
                bar.update()
                if step % self.settings.evaluate_every == 0 or step == self.steps:
                    progress.held_out[step] = self.evaluate()
                    if progress.best_step == step:
                        best = kept(self.trainable)
                    self._save_checkpoint(progress, best)
                correlation = progress.held_out[progress.best_step].correlation
                bar.set_postfix(loss=f"{progress.loss[step]:.3f}", correlation=f"{correlation:.3f}")
        put_back(self.trainable, best)
        self.student.name = self.output.name
        self.student.training_record = self.record(progress)
        if self.adapter is None:
            self.student.save_pretrained(self.output)
        else:
            save_adapter(self.adapter, self.student, self.base, self.output)
        (self.output / CHECKPOINT_NAME).unlink(missing_ok=True)
        return progress

    def step(self, step: int) -> float:
        """Change the weights by one batch, and return its loss; steps count from 1."""
        factor = learning_rate_factor(step, self.steps, self._warmup_steps)
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * factor
        rows = self.batches(step - 1)
        teacher, target = map(torch.from_numpy, self.targets([self.pool.train[row] for row in rows]))
        self.student.encoder.eval()  # no dropout: a target is exact, noise would only blur it
        vectors = self.student.vectors_of_tokens([self.token_ids[row] for row in rows])
        loss = vector_loss(vectors, target.to(vectors.device))
        loss = loss + self.settings.similarity_weight * similarity_loss(vectors, teacher.to(vectors.device))
        if not math.isfinite(loss.item()):
            raise RelvecError(f"The loss is {loss.item()} at step {step}; lower the learning rate.")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.trainable.values(), self.settings.max_gradient_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

    def evaluate(self) -> HeldOut:
        """The student as it is now, on the held-out pairs."""
        teacher, target = self.targets(self.pool.held_out)
        vectors = self.student.encode(self.pool.held_out, truncate=True)
        cosines = (normalized(vectors) * target).sum(axis=1)
        return HeldOut(float(np.mean(cosines)), cosine_correlation(vectors, teacher))

    def record(self, progress: Progress) -> dict[str, Any]:
        """What the model card says about the distillation."""
        before, after = progress.held_out[0], progress.held_out[progress.best_step]
        settings = {name: value for name, value in asdict(self.settings).items() if name not in ("steps", "epochs")}
        return {
            "base": self.base,
            "data": self.data,
            "recipe": {
                "method": "distillation",
                "teacher": self.teacher.name,
                "teacher_fingerprint": self.teacher.fingerprint,
                **{name.replace(" ", "_"): count for name, count in self.pool.counts.items()},
                "training_pairs": len(self.pool.train),
                "steps": self.steps,
                **settings,
            },
            "metrics": {
                "held-out pairs": len(self.pool.held_out),
                "mean cosine to the target before training": round(before.cosine, 4),
                "mean cosine to the target": round(after.cosine, 4),
                "correlation with the teacher's cosines before training": round(before.correlation, 4),
                "correlation with the teacher's cosines": round(after.correlation, 4),
                "correlation that the reduced dimension allows": round(self.targets.kept(self.pool.held_out), 4),
                "step": progress.best_step,
            },
        }

    def _save_checkpoint(self, progress: Progress, best: dict[str, torch.Tensor]) -> None:
        state = {
            "loss": progress.loss,
            "held_out": {step: tuple(scores) for step, scores in progress.held_out.items()},
            "weights": kept(self.trainable),
            "best": best,
            "optimizer": self.optimizer.state_dict(),
        }
        save_checkpoint(self.output, self._job, state)
