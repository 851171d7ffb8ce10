"""Distillation: a small student encoder learns to give the vectors of a large teacher.

`distill(teacher, student, output)` trains and saves a student.
"""

from typing import TYPE_CHECKING, Any

from relvec.errors import needed_for

if TYPE_CHECKING:
    from relvec.distillation.distiller import distill

__all__ = ["distill"]


def __getattr__(name: str) -> Any:
    """Import on first use: it brings torch."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needed_for("Distillation"):
        from relvec.distillation.distiller import distill
    return distill
