"""Distillation: a student learns the teacher's vectors, and the teacher's similarities between them."""

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from relvec.distillation.pool import Pool, Sources, make_pool
from relvec.distillation.record import record_of
from relvec.distillation.settings import DistillationSettings, StaticSettings
from relvec.distillation.static_student import StaticDistiller
from relvec.distillation.targets import Targets, cosine_correlation, similarity_loss, vector_loss
from relvec.errors import RelvecError
from relvec.io.files import expanded
from relvec.model.adapter import check_beside_base
from relvec.model.cached_vectors import ModelVectors
from relvec.model.relation_model import BATCH_SIZE, PromptedRelBERT, RelBERT
from relvec.model.saving import check_model_output
from relvec.model.torch_backend import TorchRelBERT
from relvec.prompts import Template
from relvec.similarity import normalized
from relvec.storage.job import job_of
from relvec.training.encoder_training import EncoderTraining, seconds_of
from relvec.training.loop import Course, NamedScores

BATCHES_SORTED_TOGETHER = 32
STATIC = "static"


class Distiller(EncoderTraining):
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
        base: str,
        data: str,
    ) -> None:
        self.teacher, self.pool, self.settings, self.data = teacher, pool, settings, data
        output = Path(output)
        if settings.lora_rank:
            check_beside_base(base, output, "adapter")
        check_model_output(output)
        self.token_ids = student.token_ids(pool.train, truncate=True)
        self.batches = LengthBatches(list(map(len, self.token_ids)), settings.batch_size, settings.seed)
        steps = settings.steps or math.ceil(settings.epochs * self.batches.steps_per_epoch)
        self.max_gradient_norm = settings.max_gradient_norm
        super().__init__(
            student,
            base,
            output,
            job_of(settings, teacher.fingerprint, student.fingerprint, pool.train, pool.held_out),
            lora_rank=settings.lora_rank,
            seed=settings.seed,
            steps=steps,
            evaluate_every=settings.evaluate_every,
            learning_rate=settings.learning_rate,
            warmup_steps=math.ceil(settings.warmup_share * steps),
            weight_decay=settings.weight_decay,
        )

    def run(self, show_progress: bool | None = None) -> Course:
        self.teacher.prepare([*self.pool.train, *self.pool.held_out])
        self.targets = Targets.fit(self.teacher, self.model, self.pool.train, self.settings.seed)
        return super().run(show_progress)

    def gradients(self, step: int) -> float:
        rows = self.batches(step - 1)
        teacher, target = map(torch.from_numpy, self.targets([self.pool.train[row] for row in rows]))
        self.model.encoder.eval()  # no dropout: a target is exact, noise would only blur it
        vectors = self.model.vectors_of_tokens([self.token_ids[row] for row in rows])
        loss = vector_loss(vectors, target.to(vectors.device))
        loss = loss + self.settings.similarity_weight * similarity_loss(vectors, teacher.to(vectors.device))
        loss.backward()
        return loss.item()

    def evaluate(self) -> NamedScores:
        """On held-out pairs: the mean cosine to the targets, and the correlation with the teacher's own cosines."""
        teacher, target = self.targets(self.pool.held_out)
        vectors = self.model.encode(self.pool.held_out, truncate=True)
        cosines = (normalized(vectors) * target).sum(axis=1)
        return {"cosine": float(np.mean(cosines)), "correlation": cosine_correlation(vectors, teacher)}

    def record(self, course: Course) -> dict[str, Any]:
        kept = self.targets.kept(self.pool.held_out)
        training = record_of(self.settings, self.teacher, self.pool, course, self.steps, kept)
        return {"base": self.base, "data": self.data, **training}

    def plan(self) -> dict[str, float]:
        """Count the run and estimate its seconds; the weights stay as they are."""
        pool, student, teacher = self.pool, self.model, self.teacher.model
        missing = self.teacher.missing([*pool.train, *pool.held_out])
        timed = missing[:BATCH_SIZE]
        teacher_seconds = seconds_of(lambda: teacher.encode(timed, truncate=True)) / max(len(timed), 1)
        tokens = [self.token_ids[row] for row in self.batches(0)]
        training_seconds = self.estimated_seconds(
            lambda: student.vectors_of_tokens(tokens).square().sum().backward(), len(tokens), len(pool.held_out)
        )
        return {
            **{name.replace(" ", "_"): count for name, count in pool.counts.items()},
            "training_pairs": len(pool.train),
            "held_out_pairs": len(pool.held_out),
            "to_encode": len(missing),
            "teacher_dim": teacher.dim,
            "student_dim": student.dim,
            "trainable_parameters": self.trainable_parameters,
            "steps": self.steps,
            "encoding_seconds": teacher_seconds * len(missing),
            "training_seconds": training_seconds,
        }


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
    learner = load_student(student, model, template=template, pooling=pooling, device=device)
    # An adapter is of no use without the place of its base; elsewhere that is nobody's business.
    is_private = expanded(student).exists() and not settings.lora_rank
    base = Path(student).name if is_private else str(student)
    return Distiller(ModelVectors(model), learner, pool, settings, output, base=base, data=sources.described())


def load_student(
    base: str | Path,
    teacher: RelBERT,
    *,
    template: int | str | Template | None = None,
    pooling: str | None = None,
    device: str | None = None,
) -> TorchRelBERT:
    """A base encoder by name, folder or hub id, prompted like the teacher unless told otherwise.

    >>> load_student(tiny_model, TorchRelBERT.from_pretrained(tiny_model), pooling="mask")
    RelBERT(roberta, 16 dimensions, pooling='mask', template='[h] is the <mask> of [t]')
    """
    # Every tokenizer can take this template; whether it can take the wanted one is seen below.
    plain = TorchRelBERT.from_pretrained(base, template="[h] [t]", pooling="average", device=device)
    chosen, pooling = Template.of(teacher.template if template is None else template), pooling or teacher.pooling
    if chosen.has_mask and plain.tokenizer.mask_token is None:
        problem = f"The student {base} has no mask token for the template {chosen.text!r} with {pooling} pooling"
        raise RelvecError(f"{problem}; give a --template without <mask>, and --pooling average.")
    known = teacher.tokenizer.get_vocab() if isinstance(teacher, PromptedRelBERT) else {}
    if template is None and chosen.tokens is not None and plain.tokenizer.get_vocab() != known:
        problem = f"The learned prompt of the teacher {teacher.name} is not in the vocabulary of the student {base}"
        raise RelvecError(f"{problem}; give a --template.")
    return TorchRelBERT(plain.encoder, plain.tokenizer, chosen, pooling, name=plain.name)


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
