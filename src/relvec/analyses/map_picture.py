"""Drawing a relation map: each relation in its colour beneath its name, and a few pairs in words."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relvec.analyses.relation_map import RelationMap
from relvec.errors import RelvecError, needed_for
from relvec.io.files import written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".svg", ".png")

# Okabe and Ito's colours, which colour-blind readers can tell apart; violet and brown stand for yellow and black, which
# do not show on paper or among letters. A ninth relation starts over with another marker.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC6699", "#E69F00", "#6A51A3", "#3BA3DB", "#8C6239")
_MARKERS = ("o", "^", "s")
_METHODS = {"pca": "PCA", "tsne": "t-SNE"}
_PAPER, _INK, _FAINT = "#FCFCFA", "#333333", "#8A8A8A"
_GAP = 9  # pixels between a label and the points or labels around it
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "text.parse_math": False,  # a word may hold dollars
    "svg.fonttype": "none",  # letters as text, not as outlines: a small file
    "svg.hashsalt": "relvec",  # else the ids differ from run to run
}

Box = NDArray[np.float64]
"""The lower left and the upper right corner, in pixels."""


def check_picture(path: str | Path) -> None:
    """A map can be drawn to this file: its ending is known and matplotlib is there."""
    if Path(path).suffix.lower() not in FORMATS:
        raise RelvecError(f"Cannot draw to {path}; give a file that ends in {' or '.join(FORMATS)}.")
    with needed_for("Drawing a map"):
        import matplotlib.figure  # noqa: F401


def draw_map(found: RelationMap, path: str | Path, labels_per_relation: int = 3) -> None:
    """Write the map as .svg or .png; the same map gives the same bytes."""
    check_picture(path)
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(found.relations))
    of_relation = np.array([names.index(relation) for relation in found.relations])
    with rc_context(_STYLE):
        figure = Figure(figsize=(8, 5.4), dpi=150, facecolor=_PAPER, layout="constrained")
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_subplot(facecolor=_PAPER)
        for number, name in enumerate(names):
            x, y = found.coordinates[of_relation == number].T
            marker = _MARKERS[number // len(_COLOURS) % len(_MARKERS)]
            axes.scatter(x, y, s=30, c=_colour(number), marker=marker, edgecolors=_PAPER, linewidths=0.6, label=name)
        axes.set(xticks=[], yticks=[])
        axes.set_aspect("equal", adjustable="datalim")  # else distances would lie
        axes.margins(0.1)
        axes.spines[:].set_visible(False)
        title = f"Relation vectors of {found.system} ({_METHODS[found.method]})"
        axes.set_title(title, loc="left", fontsize=8, color=_FAINT)
        canvas.draw()  # settles where the points lie on the picture
        labels = _Labels(axes, axes.transData.transform(found.coordinates), of_relation)
        unnamed = [
            number
            for number, name in enumerate(names)
            if not labels.place(name, np.flatnonzero(of_relation == number), 9.5, _colour(number), "bold")
        ]
        for turn in _turns(labels.points, of_relation, labels_per_relation):
            any(labels.place(":".join(found.pairs[each]), np.array([each]), 7.5, _INK) for each in turn)
        if unnamed:
            handles = [axes.collections[number] for number in unnamed]
            figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=8, handletextpad=0.3)
        metadata: dict[str, Any] = (
            {"Date": None, "Creator": None} if Path(path).suffix.lower() == ".svg" else {"Software": None}
        )
        with written_whole(path) as partial:
            figure.savefig(partial, metadata=metadata)


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _turns(points: NDArray[np.float64], of_relation: NDArray[np.intp], count: int) -> Iterator[list[int]]:
    """For each pair to name, the points that may have it, best first; the relations take turns."""
    for number in range(count):
        for relation in range(int(of_relation.max()) + 1):
            own = np.flatnonzero(of_relation == relation)
            distances = np.linalg.norm(points[own] - np.median(points[own], axis=0), axis=1)
            yield own[np.argsort(distances, kind="stable")][number::count].tolist()


@dataclass
class _Labels:
    """Labels beside points, none of which covers a point or another label. All places are in pixels."""

    axes: "Axes"
    points: NDArray[np.float64]
    of_relation: NDArray[np.intp]
    taken: list[Box] = field(default_factory=list)

    def place(self, text: str, own: NDArray[np.intp], size: float, colour: str, weight: str = "normal") -> bool:
        """Write the text beside, above or below its own points, where it covers nothing; False if nowhere."""
        low, high = self.points[own].min(axis=0), self.points[own].max(axis=0)
        middle = np.median(self.points[own], axis=0)
        for x, y, horizontal, vertical in (
            (middle[0], high[1] + _GAP, "center", "bottom"),
            (middle[0], low[1] - _GAP, "center", "top"),
            (high[0] + _GAP, middle[1], "left", "center"),
            (low[0] - _GAP, middle[1], "right", "center"),
        ):
            at = self.axes.transData.inverted().transform((x, y))
            label = self.axes.text(
                at[0], at[1], text, ha=horizontal, va=vertical, fontsize=size, color=colour, fontweight=weight
            )
            box = np.asarray(label.get_window_extent().get_points())
            if self._is_free(box, int(self.of_relation[own[0]])):
                self.taken.append(box)
                return True
            label.remove()
        return False

    def _is_free(self, box: Box, relation: int) -> bool:
        """Whether a box lies on the picture and covers no label and no point; it keeps clear of other relations."""
        frame = self.axes.get_window_extent()
        gaps = np.where(self.of_relation == relation, _GAP / 2, 2 * _GAP)[:, None]
        is_covered = ((self.points > box[0] - gaps) & (self.points < box[1] + gaps)).all(axis=1)
        is_inside = frame.contains(*box[0]) and frame.contains(*box[1])
        wide = box + np.array([[-_GAP / 2], [_GAP / 2]])
        covers_label = any((wide[0] < other[1]).all() and (other[0] < wide[1]).all() for other in self.taken)
        return is_inside and not covers_label and not is_covered.any()
