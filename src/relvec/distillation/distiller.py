"""The training of a student: it learns the teacher's vectors, and the teacher's similarities between them."""

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize

from relvec.distillation.pool import Pool
from relvec.distillation.settings import DistillationSettings
from relvec.distillation.targets import Targets, cosine_correlation
from relvec.model.adapter import check_beside_base
from relvec.model.cached_vectors import ModelVectors
from relvec.model.saving import check_no_model
from relvec.model.torch_backend import TorchRelBERT
from relvec.similarity import normalized
from relvec.storage.lock import writing
from relvec.training.adapters import add_lora, save_adapter
from relvec.training.checkpoint import CHECKPOINT_NAME, job_of
from relvec.training.loop import Course, Loop, Scores, put_back

BATCHES_SORTED_TOGETHER = 32


class Distiller(Loop):
    """Trains a student, all of its weights or an adapter, without dropout, to give the vectors of a teacher.

    `base` and `data` are what the saved model says of the encoder it began with and of its pairs. Analogies are solved
    by cosines, so the weights with the best correlation of held-out cosines are kept.
    """

    title, score, lower_is_better = "Distilling", "correlation", False

    def __init__(
        self,
        teacher: ModelVectors,
        student: TorchRelBERT,
        pool: Pool,
        settings: DistillationSettings,
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
        check_no_model(self.output, (CHECKPOINT_NAME,))
        self.token_ids = student.token_ids(pool.train, truncate=True)
        self.batches = LengthBatches(list(map(len, self.token_ids)), settings.batch_size, settings.seed)
        steps = settings.steps or math.ceil(settings.epochs * self.batches.steps_per_epoch)
        job = job_of(settings, teacher.fingerprint, student.fingerprint, pool.train, pool.held_out)
        self.max_gradient_norm = settings.max_gradient_norm
        torch.manual_seed(settings.seed)
        self.adapter = add_lora(student.encoder, settings.lora_rank) if settings.lora_rank else None
        super().__init__(
            student.encoder.named_parameters(),
            job,
            self.output / CHECKPOINT_NAME,
            steps=steps,
            evaluate_every=settings.evaluate_every,
            learning_rate=settings.learning_rate,
            warmup_steps=math.ceil(settings.warmup_share * steps),
            weight_decay=settings.weight_decay,
        )

    def fit(self, show_progress: bool | None = None) -> Course:
        """Train, keep the weights of the best held-out correlation, and save the student to the output folder."""
        with writing(self.output):
            self.teacher.prepare([*self.pool.train, *self.pool.held_out])
            self.targets = Targets.fit(self.teacher, self.student, self.pool.train, self.settings.seed)
            course = self.run(show_progress)
            put_back(self.weights, self.best)
            self.student.name = self.output.name
            self.student.training_record = self.record(course)
            if self.adapter is None:
                self.student.save_pretrained(self.output)
            else:
                save_adapter(self.adapter, self.student, self.base, self.output)
            self.delete_checkpoint()
        return course

    def gradients(self, step: int) -> float:
        rows = self.batches(step - 1)
        teacher, target = map(torch.from_numpy, self.targets([self.pool.train[row] for row in rows]))
        self.student.encoder.eval()  # no dropout: a target is exact, noise would only blur it
        vectors = self.student.vectors_of_tokens([self.token_ids[row] for row in rows])
        loss = vector_loss(vectors, target.to(vectors.device))
        loss = loss + self.settings.similarity_weight * similarity_loss(vectors, teacher.to(vectors.device))
        loss.backward()
        return loss.item()

    def evaluate(self) -> Scores:
        """On held-out pairs: the mean cosine to the targets, and the correlation with the teacher's own cosines."""
        teacher, target = self.targets(self.pool.held_out)
        vectors = self.student.encode(self.pool.held_out, truncate=True)
        cosines = (normalized(vectors) * target).sum(axis=1)
        return {"cosine": float(np.mean(cosines)), "correlation": cosine_correlation(vectors, teacher)}

    def record(self, course: Course) -> dict[str, Any]:
        """What the model card says about the distillation."""
        before, after = course.first, course.best
        settings = {name: value for name, value in self.settings.as_dict().items() if name not in ("steps", "epochs")}
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
                "mean cosine to the target before training": round(before["cosine"], 4),
                "mean cosine to the target": round(after["cosine"], 4),
                "correlation with the teacher's cosines before training": round(before["correlation"], 4),
                "correlation with the teacher's cosines": round(after["correlation"], 4),
                "correlation that the reduced dimension allows": round(self.targets.kept(self.pool.held_out), 4),
                "step": course.best_step,
            },
        }


class LengthBatches:
    """The numbers of the pairs of a step: an epoch takes each pair once, in batches with little padding.

    The pairs are shuffled, cut into stretches of 32 batches, and sorted by length within a stretch; then the batches
    are shuffled. It is a function of seed and step alone, so a resumed run sees the batches it would have seen.

    >>> batches = LengthBatches([3, 9, 3, 9], size=2, seed=0)
    >>> sorted(sorted(batches(step)) for step in range(batches.steps_per_epoch))
    [[0, 2], [1, 3]]
    """

    def __init__(self, lengths: Sequence[int], size: int, seed: int) -> None:
        self._lengths, self._size, self._seed = lengths, size, seed
        self.steps_per_epoch = math.ceil(len(lengths) / size)
        self._epoch = -1

    def __call__(self, step: int) -> list[int]:
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._plan(epoch)
        return self._batches[place]

    def _plan(self, epoch: int) -> None:
        draw = random.Random(self._seed * 1_000_003 + epoch)
        order = list(range(len(self._lengths)))
        draw.shuffle(order)
        stretch = BATCHES_SORTED_TOGETHER * self._size
        rows: list[int] = []
        for start in range(0, len(order), stretch):
            rows += sorted(order[start : start + stretch], key=lambda row: self._lengths[row])
        self._batches = [rows[start : start + self._size] for start in range(0, len(rows), self._size)]
        draw.shuffle(self._batches)
        self._epoch = epoch


def vector_loss(student: Tensor, target: Tensor) -> Tensor:
    """1 - cos(s_i, t_i), the mean over the pairs of a batch; both [batch, dim].

    >>> vector_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 1.0]])).item()
    1.0
    """
    return (1 - cosine_similarity(student, target, dim=-1)).mean()


def similarity_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """(cos(s_i, s_j) - cos(t_i, t_j))^2, the mean over all i and j of a batch: relations between pairs are kept.

    Student [batch, dim] and teacher [batch, teacher dim] need not have the same dimension.

    >>> similarity_loss(torch.eye(2), torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])).item()
    0.5
    """
    student, teacher = normalize(student, dim=-1), normalize(teacher, dim=-1)
    return (student @ student.T - teacher @ teacher.T).square().mean()
