"""Distillation: a student learns the teacher's vectors, and the teacher's similarities between them."""

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from relvec.distillation.pool import Pool, Sources, make_pool
from relvec.distillation.settings import DistillationSettings, StaticSettings
from relvec.distillation.static_student import StaticDistiller
from relvec.distillation.student_training import StudentTraining
from relvec.distillation.targets import Targets
from relvec.errors import RelvecError
from relvec.io.files import expanded
from relvec.model.adapter import check_beside_base
from relvec.model.cached_vectors import ModelVectors
from relvec.model.relation_model import RelBERT
from relvec.model.torch_backend import TorchRelBERT
from relvec.similarity import Vectors
from relvec.training.adapters import add_lora
from relvec.training.loop import Course

BATCHES_SORTED_TOGETHER = 32
STATIC = "static"


class Distiller(StudentTraining):
    """Trains an encoder, all of its weights or an adapter, without dropout, to give the vectors of a teacher."""

    model: TorchRelBERT

    def __init__(
        self,
        teacher: ModelVectors,
        student: TorchRelBERT,
        pool: Pool,
        settings: DistillationSettings,
        output: str | Path,
        *,
        base: str,
        data: str,
    ) -> None:
        if settings.lora_rank:
            check_beside_base(base, Path(output), "adapter")
        self.model, fingerprint = student, student.fingerprint
        self.token_ids = student.token_ids(pool.train, truncate=True)
        self.batches = LengthBatches(list(map(len, self.token_ids)), settings.batch_size, settings.seed)
        torch.manual_seed(settings.seed)
        self.adapter = add_lora(student.encoder, settings.lora_rank)
        weights, steps = student.encoder.named_parameters(), self.batches.steps_per_epoch
        super().__init__(teacher, pool, settings, output, weights, steps, fingerprint, base=base, data=data)

    def fit_targets(self, show_progress: bool | None) -> Targets:
        return Targets.fit(self.teacher, self.model, self.pool.train, self.settings.seed)

    def step_vectors(self, step: int) -> Tensor:
        self.model.encoder.eval()  # no dropout: a target is exact, noise would only blur it
        return self.model.vectors_of_tokens([self.token_ids[row] for row in self.batches(step - 1)])

    def step_targets(self, step: int) -> tuple[Tensor, Tensor]:
        teacher, target = self.targets([self.pool.train[row] for row in self.batches(step - 1)])
        return torch.from_numpy(target), torch.from_numpy(teacher)

    def held_out_vectors(self) -> Vectors:
        return self.model.encode(self.pool.held_out, truncate=True)

    @property
    def sizes(self) -> dict[str, int]:
        return {"student_dim": self.model.dim, "trainable_parameters": self.trainable_parameters}


def distill(
    teacher: str | Path,
    student: str | Path,
    output: str | Path,
    sources: Sources | None = None,
    settings: DistillationSettings | None = None,
    *,
    show_progress: bool | None = None,
    **options: Any,
) -> Course:
    """Teach the encoder `student` the vectors of the model `teacher`, and save it to the folder `output`.

    The student `static` has no language model. Options are the `template` and `pooling` of the student, by default the
    teacher's, `word_vectors`, a file that a static student starts from, the `device`, and the `backend` and `dtype` of
    the teacher. The same call again resumes a killed run.

    >>> few = Sources(limit=20)
    >>> course = distill(tiny_model, tiny_model, "student", few, DistillationSettings(steps=1, batch_size=8))
    >>> sorted(course.best)
    ['correlation', 'cosine']
    """
    return make_distiller(teacher, student, output, sources, settings, **options).fit(show_progress)


def make_distiller(
    teacher: str | Path,
    student: str | Path,
    output: str | Path,
    sources: Sources | None = None,
    settings: DistillationSettings | None = None,
    *,
    template: str | None = None,
    pooling: str | None = None,
    device: str | None = None,
    backend: str = "auto",
    dtype: str = "float32",
    word_vectors: str | Path | None = None,
) -> Distiller | StaticDistiller:
    """The distiller of a run; whatever can go wrong before the first pair is encoded goes wrong here."""
    sources, settings = sources or Sources(), settings or DistillationSettings()
    pool = make_pool(sources, settings.seed)
    model = RelBERT.from_pretrained(teacher, backend=backend, device=device, dtype=dtype)
    if student == STATIC:
        if template or pooling or settings.lora_rank:
            raise RelvecError("A static student has no prompt and no adapter; leave out template, pooling and LoRA.")
        chosen = StaticSettings(**{name: getattr(settings, name) for name in settings.model_fields_set})
        about = sources.described()
        return StaticDistiller(ModelVectors(model), pool, chosen, output, word_vectors=word_vectors, data=about)
    if word_vectors or isinstance(settings, StaticSettings):
        raise RelvecError("Only the student `static` has word vectors and StaticSettings; leave them out or choose it.")
    prompt: dict[str, Any] = {"template": template or model.template, "pooling": pooling or model.pooling}
    learner = TorchRelBERT.from_pretrained(student, device=device, **prompt)
    # An adapter is of no use without the place of its base; elsewhere that is nobody's business.
    is_private = expanded(student).exists() and not settings.lora_rank
    base = Path(student).name if is_private else str(student)
    return Distiller(ModelVectors(model), learner, pool, settings, output, base=base, data=sources.described())


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
        self._epoch, self._batches = -1, list[list[int]]()

    def __call__(self, step: int) -> list[int]:
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch == self._epoch:
            return self._batches[place]
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
        return self._batches[place]
