"""Pictures of a search, where matplotlib is there."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from relvec.io.files import written_whole
from relvec.prompts.learned import PromptResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE_NAME = "loss.svg"

_BLUE, _ORANGE = "#0072B2", "#E69F00"


def draw_history(result: PromptResult, path: Path) -> None:
    """The training loss of a search, step by step, and the validation loss where it was computed on the way."""
    losses = [entry["loss"] for entry in result.history]
    if (canvas := _canvas()) is None or not losses:
        return
    figure, axes = canvas
    axes.step(range(len(losses)), losses, where="post", color=_BLUE, label="training")
    validation = {step: e["validation_loss"] for step, e in enumerate(result.history) if "validation_loss" in e}
    if validation:
        axes.plot(list(validation), list(validation.values()), "s-", color=_ORANGE, label="validation")
        axes.legend(frameon=False)
    axes.set(xlabel="step", ylabel="loss", title=f"{result.method} on {Path(result.base).name}")
    _save(figure, path)


def draw_grid(results: Sequence[PromptResult], path: Path) -> None:
    """The training and the validation loss of each prompt of a search over lengths."""
    if (canvas := _canvas()) is None:
        return
    figure, axes = canvas
    names = [str(result.lengths) for result in results]
    axes.plot(names, [result.train_loss for result in results], "o", color=_BLUE, label="training")
    axes.plot(names, [result.validation_loss for result in results], "s", color=_ORANGE, label="validation")
    axes.set(xlabel="triggers before, between and after the words", ylabel="loss")
    axes.legend(frameon=False)
    _save(figure, path)


def _canvas() -> "tuple[Figure, Axes] | None":
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: "Figure", path: Path) -> None:
    from matplotlib import rc_context

    # No date and fixed ids, so that the same losses give the same file.
    with rc_context({"svg.hashsalt": "relvec"}), written_whole(path) as partial:
        figure.savefig(partial, metadata={"Date": None})
