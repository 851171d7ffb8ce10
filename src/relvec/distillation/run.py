"""From names to a distiller, and what a run will cost."""

import time
from dataclasses import dataclass
from pathlib import Path

from relvec.distillation.distiller import Distiller, Settings
from relvec.distillation.pool import Sources, make_pool
from relvec.distillation.student import load_student
from relvec.io.paths import expanded
from relvec.model.cached_vectors import ModelVectors
from relvec.model.relation_model import BATCH_SIZE, RelBERT


@dataclass(frozen=True)
class Plan:
    """The size of a run."""

    counts: dict[str, int]
    training_pairs: int
    held_out_pairs: int
    to_encode: int
    teacher_dim: int
    student_dim: int
    trainable_parameters: int
    steps: int
    encoding_seconds: float
    training_seconds: float

    def rows(self) -> list[list[str]]:
        return [
            *([name, f"{count:,}"] for name, count in self.counts.items()),
            ["training pairs in all", f"{self.training_pairs:,}"],
            ["held-out pairs", f"{self.held_out_pairs:,}"],
            ["pairs the teacher has yet to encode", f"{self.to_encode:,}"],
            ["dimensions, teacher -> student", f"{self.teacher_dim} -> {self.student_dim}"],
            ["trainable parameters", f"{self.trainable_parameters:,}"],
            ["steps", f"{self.steps:,}"],
            ["estimated time of the teacher", _minutes(self.encoding_seconds)],
            ["estimated time of the student", _minutes(self.training_seconds)],
        ]


def make_distiller(
    teacher: str | Path,
    student: str | Path,
    output: str | Path,
    sources: Sources,
    settings: Settings,
    *,
    template: str | None = None,
    pooling: str | None = None,
    device: str | None = None,
    cache_folder: str | Path | None = None,
) -> Distiller:
    """Everything that can go wrong before the first pair is encoded goes wrong here."""
    pool = make_pool(sources, settings.seed)
    model = RelBERT.from_pretrained(teacher, device=device)
    learner = load_student(student, model, template=template, pooling=pooling, device=device)
    # An adapter is of no use without the place of its base; elsewhere that is nobody's business.
    is_private = expanded(student).exists() and not settings.lora_rank
    base = Path(student).name if is_private else str(student)
    vectors = ModelVectors(model, cache_folder)
    return Distiller(vectors, learner, pool, settings, output, base=base, data=sources.described())


def make_plan(distiller: Distiller) -> Plan:
    """Count a run, and time the teacher and the student on one batch; the weights stay as they are."""
    pool, student = distiller.pool, distiller.student
    missing = distiller.teacher.missing([*pool.train, *pool.held_out])
    timed = missing[:BATCH_SIZE]
    start = time.perf_counter()
    distiller.teacher.model.encode(timed, truncate=True)
    teacher_seconds = (time.perf_counter() - start) * len(missing) / max(len(timed), 1)
    start = time.perf_counter()
    rows = distiller.batches(0)
    student.vectors_of_tokens([distiller.token_ids[row] for row in rows]).square().sum().backward()
    step_seconds = time.perf_counter() - start
    distiller.optimizer.zero_grad()
    evaluation_seconds = step_seconds / 3 * len(pool.held_out) / len(rows)
    evaluations = 2 + distiller.steps // distiller.settings.evaluate_every
    return Plan(
        counts=pool.counts,
        training_pairs=len(pool.train),
        held_out_pairs=len(pool.held_out),
        to_encode=len(missing),
        teacher_dim=distiller.teacher.model.dim,
        student_dim=student.dim,
        trainable_parameters=sum(weight.numel() for weight in distiller.trainable.values()),
        steps=distiller.steps,
        encoding_seconds=teacher_seconds,
        training_seconds=distiller.steps * step_seconds + evaluations * evaluation_seconds,
    )


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
