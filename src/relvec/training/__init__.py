"""Training: rated pairs become batches, batches become losses, losses change the language model.

`train(Recipe(...), output)` trains and saves a model; `plan_training` checks and estimates a run without training.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from relvec.errors import needed_for

if TYPE_CHECKING:
    from relvec.training.recipe import Recipe
    from relvec.training.run import plan_training, train

__all__ = ["Recipe", "plan_training", "train"]

_HOMES = {"Recipe": "recipe", "plan_training": "run", "train": "run"}


def __getattr__(name: str) -> Any:
    """Import on first use: the list of losses, below this package, is read by commands that need no torch."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needed_for("Training", "train"):
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
