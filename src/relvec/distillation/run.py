"""From names to a trained student, and what a run will cost."""

import time
from pathlib import Path

from relvec.distillation.distiller import Distiller
from relvec.distillation.pool import Sources, make_pool
from relvec.distillation.settings import DistillationSettings
from relvec.errors import RelvecError
from relvec.io.files import expanded
from relvec.model.cached_vectors import ModelVectors
from relvec.model.relation_model import BATCH_SIZE, RelBERT
from relvec.model.torch_backend import TorchRelBERT
from relvec.prompts import Template
from relvec.training.loop import Course


def distill(
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
    show_progress: bool | None = None,
) -> Course:
    """Teach the encoder `student` the vectors of the model `teacher`, and save it to the folder `output`.

    `backend` is the teacher's.
    The student has the teacher's template and pooling unless told otherwise. The same call again resumes a killed run.

    >>> few = Sources(limit=20)
    >>> course = distill(tiny_model, tiny_model, "student", few, DistillationSettings(steps=1, batch_size=8))
    >>> sorted(course.best)
    ['correlation', 'cosine']
    """
    made = make_distiller(
        teacher, student, output, sources, settings, template=template, pooling=pooling, device=device, backend=backend
    )
    return made.fit(show_progress)


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
    cache_folder: str | Path | None = None,
) -> Distiller:
    """The distiller of a run; whatever can go wrong before the first pair is encoded goes wrong here."""
    sources, settings = sources or Sources(), settings or DistillationSettings()
    pool = make_pool(sources, settings.seed)
    model = RelBERT.from_pretrained(teacher, backend=backend, device=device)
    learner = load_student(student, model, template=template, pooling=pooling, device=device)
    # An adapter is of no use without the place of its base; elsewhere that is nobody's business.
    is_private = expanded(student).exists() and not settings.lora_rank
    base = Path(student).name if is_private else str(student)
    vectors = ModelVectors(model, cache_folder)
    return Distiller(vectors, learner, pool, settings, output, base=base, data=sources.described())


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
    if template is None and chosen.tokens is not None and plain.tokenizer.get_vocab() != teacher.tokenizer.get_vocab():
        problem = f"The learned prompt of the teacher {teacher.name} is not in the vocabulary of the student {base}"
        raise RelvecError(f"{problem}; give a --template.")
    return TorchRelBERT(plain.encoder, plain.tokenizer, chosen, pooling, name=plain.name)


def make_plan(distiller: Distiller) -> dict[str, float]:
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
    return {
        **{name.replace(" ", "_"): count for name, count in pool.counts.items()},
        "training_pairs": len(pool.train),
        "held_out_pairs": len(pool.held_out),
        "to_encode": len(missing),
        "teacher_dim": distiller.teacher.model.dim,
        "student_dim": student.dim,
        "trainable_parameters": sum(weight.numel() for weight in distiller.weights.values()),
        "steps": distiller.steps,
        "encoding_seconds": teacher_seconds,
        "training_seconds": distiller.steps * step_seconds + evaluations * evaluation_seconds,
    }
