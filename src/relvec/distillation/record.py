"""What the card of a student says about its training."""

from typing import Any

from relvec.distillation.pool import Pool
from relvec.distillation.settings import DistillationSettings
from relvec.model.cached_vectors import ModelVectors
from relvec.training.loop import Course


def record_of(
    settings: DistillationSettings, teacher: ModelVectors, pool: Pool, course: Course, steps: int, kept: float
) -> dict[str, Any]:
    """The recipe and the scores; `kept` is the correlation that the student's dimension allows."""
    before, after = course.first, course.best
    others = {name: value for name, value in settings.as_dict().items() if name not in ("steps", "epochs")}
    return {
        "recipe": {
            "method": "distillation",
            "teacher": teacher.name,
            "teacher_fingerprint": teacher.fingerprint,
            **{name.replace(" ", "_"): count for name, count in pool.counts.items()},
            "training_pairs": len(pool.train),
            "steps": steps,
            **others,
        },
        "metrics": {
            "held-out pairs": len(pool.held_out),
            "mean cosine to the target before training": round(before["cosine"], 4),
            "mean cosine to the target": round(after["cosine"], 4),
            "correlation with the teacher's cosines before training": round(before["correlation"], 4),
            "correlation with the teacher's cosines": round(after["correlation"], 4),
            "correlation that the reduced dimension allows": round(kept, 4),
            "step": course.best_step,
        },
    }
