"""What the training of an encoder and of a static student share: the loss, the scores, the card and the plan."""

import math
from abc import abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from relvec.distillation.pool import Pool
from relvec.distillation.settings import DistillationSettings
from relvec.distillation.targets import Targets, cosine_correlation, similarity_loss, vector_loss
from relvec.model.cached_vectors import ModelVectors
from relvec.model.relation_model import BATCH_SIZE
from relvec.similarity import Vectors, normalized
from relvec.storage.job import job_of
from relvec.training.loop import LOOP_SETTINGS, Course, NamedScores
from relvec.training.model_training import ModelTraining, seconds_of


class StudentTraining(ModelTraining):
    """Trains a student to give the vectors of a teacher.

    `base` and `data` are what the saved model says of where it started and of its pairs; `student` tells it from other
    students of the same teacher. The best weights are those with the highest correlation of held-out cosines, since
    analogies are solved by cosines.
    """

    title, score, lower_is_better = "Distilling", "correlation", False
    targets: Targets

    def __init__(
        self,
        teacher: ModelVectors,
        pool: Pool,
        settings: DistillationSettings,
        output: str | Path,
        weights: Iterable[tuple[str, torch.nn.Parameter]],
        steps_per_epoch: int,
        *student: object,
        base: str,
        data: str,
    ) -> None:
        self.teacher, self.pool, self.settings, self.base, self.data = teacher, pool, settings, base, data
        steps = settings.steps or math.ceil(settings.epochs * steps_per_epoch)
        super().__init__(
            weights,
            job_of(settings, teacher.fingerprint, *student, pool.train, pool.held_out),
            Path(output),
            steps=steps,
            warmup_steps=math.ceil(settings.warmup_share * steps),
            **settings.model_dump(include=LOOP_SETTINGS),
        )

    @abstractmethod
    def fit_targets(self, show_progress: bool | None) -> Targets:
        """How the teacher's vectors become targets; the teacher has encoded all pairs."""

    @abstractmethod
    def step_vectors(self, step: int) -> Tensor:
        """The student's vectors of the pairs of a step, differentiable: [batch, dim]."""

    @abstractmethod
    def step_targets(self, step: int) -> tuple[Tensor, Tensor]:
        """The targets of these pairs [batch, dim], and of the first of them what their cosines are compared with."""

    @abstractmethod
    def held_out_vectors(self) -> Vectors:
        """The student's vectors of the held-out pairs."""

    @property
    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """What the plan says of the student: its `student_dim`, and how large it is."""

    def run(self, show_progress: bool | None = None) -> Course:
        self.teacher.prepare([*self.pool.train, *self.pool.held_out])
        self.targets = self.fit_targets(show_progress)
        return super().run(show_progress)

    def gradients(self, step: int) -> float:
        vectors = self.step_vectors(step)
        target, teacher = (tensor.to(vectors.device) for tensor in self.step_targets(step))
        compared = vectors if len(teacher) == len(vectors) else vectors[: len(teacher)]
        loss = vector_loss(vectors, target) + self.settings.similarity_weight * similarity_loss(compared, teacher)
        loss.backward()
        return loss.item()

    def evaluate(self) -> NamedScores:
        """On held-out pairs: the mean cosine to the targets, and the correlation with the teacher's own cosines."""
        teacher, target = self.targets(self.pool.held_out)
        vectors = self.held_out_vectors()
        cosines = (normalized(vectors) * target).sum(axis=1)
        return {"cosine": float(np.mean(cosines)), "correlation": cosine_correlation(vectors, teacher)}

    def record(self, course: Course) -> dict[str, Any]:
        before, after, pool = course.first, course.best, self.pool
        others = {name: value for name, value in self.settings.as_dict().items() if name not in ("steps", "epochs")}
        return {
            "base": self.base,
            "data": self.data,
            "recipe": {
                "method": "distillation",
                "teacher": self.teacher.name,
                "teacher_fingerprint": self.teacher.fingerprint,
                **pool.counts,
                "training_pairs": len(pool.train),
                "steps": self.steps,
                **others,
            },
            "metrics": {
                "held-out pairs": len(pool.held_out),
                "mean cosine to the target before training": round(before["cosine"], 4),
                "mean cosine to the target": round(after["cosine"], 4),
                "correlation with the teacher's cosines before training": round(before["correlation"], 4),
                "correlation with the teacher's cosines": round(after["correlation"], 4),
                "correlation that the reduced dimension allows": round(self.targets.correlation_kept(pool.held_out), 4),
                "step": course.best_step,
            },
        }

    def plan(self) -> dict[str, float]:
        """Count the run and estimate its seconds; the weights stay as they are."""
        pool, teacher = self.pool, self.teacher.model
        missing = self.teacher.missing([*pool.train, *pool.held_out])
        timed = missing[:BATCH_SIZE]
        teacher_seconds = seconds_of(lambda: teacher.encode(timed, truncate=True)) / max(len(timed), 1)
        step_pairs = min(self.settings.batch_size, len(pool.train))
        training_seconds = self.estimated_seconds(
            lambda: self.step_vectors(1).square().sum().backward(), step_pairs, len(pool.held_out)
        )
        return {
            **pool.counts,
            "training_pairs": len(pool.train),
            "held_out_pairs": len(pool.held_out),
            "to_encode": len(missing),
            "teacher_dim": teacher.dim,
            **self.sizes,
            "steps": self.steps,
            "encoding_seconds": teacher_seconds * len(missing),
            "training_seconds": training_seconds,
        }
