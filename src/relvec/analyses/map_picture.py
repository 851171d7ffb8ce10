"""Drawing a relation map: colours that the colour-blind tell apart, a legend, a few pairs by name."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relvec.analyses.relation_map import RelationMap
from relvec.errors import RelvecError
from relvec.io.files import written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".svg", ".png")

# The palette of Okabe and Ito; a ninth relation starts over with another marker.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000")
_MARKERS = ("o", "^", "s")
_METHODS = {"pca": "PCA", "tsne": "t-SNE"}
_PIXELS_PER_INCH = 150
_MARKER_PIXELS = 8  # a label keeps this far from the middle of a point
# Where a label may stand beside its point, in points, and how it is aligned there.
_PLACES = ((7, 0, "left", "center"), (-7, 0, "right", "center"), (0, 7, "center", "bottom"), (0, -7, "center", "top"))


def check_picture(path: str | Path) -> None:
    """A map can be drawn to this file: its ending is known and matplotlib is there."""
    if Path(path).suffix.lower() not in FORMATS:
        raise RelvecError(f"Cannot draw to {path}; give a file that ends in {' or '.join(FORMATS)}.")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise RelvecError("Drawing a map needs matplotlib; run pip install 'relvec[evaluate]'.") from error


def draw_map(found: RelationMap, path: str | Path, labels_per_relation: int = 3) -> None:
    """Write the map as .svg or .png; the same map gives the same bytes."""
    check_picture(path)
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(found.relations))
    of_relation = np.array([names.index(relation) for relation in found.relations])
    # A word may hold dollars, which are no mathematics.
    with rc_context({"svg.hashsalt": "relvec", "font.family": "DejaVu Sans", "font.size": 9, "text.parse_math": False}):
        figure = Figure(figsize=(10, 6.5), dpi=_PIXELS_PER_INCH, layout="constrained")
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        for number, name in enumerate(names):
            x, y = found.coordinates[of_relation == number].T
            marker = _MARKERS[number // len(_COLOURS) % len(_MARKERS)]
            colour = _COLOURS[number % len(_COLOURS)]
            axes.scatter(x, y, s=34, c=colour, marker=marker, edgecolors="#00000080", linewidths=0.5, label=name)
        axes.set(xticks=[], yticks=[])
        axes.set_aspect("equal", adjustable="datalim")  # else distances would lie
        axes.margins(0.08)
        axes.spines[:].set_color("#BBBBBB")
        axes.set_title(f"Relation vectors of {found.system} ({_METHODS[found.method]})", loc="left")
        figure.legend(loc="outside right upper", frameon=False, handletextpad=0.3)
        canvas.draw()  # settles where the points lie on the picture
        _label(axes, found, of_relation, labels_per_relation)
        metadata: dict[str, Any] = {"Date": None} if Path(path).suffix.lower() == ".svg" else {"Software": None}
        with written_whole(path) as partial:
            figure.savefig(partial, metadata=metadata)


def _label(axes: "Axes", found: RelationMap, of_relation: NDArray[np.intp], count: int) -> None:
    """Name the pairs nearest to the middle of their relation, but none whose name would cover a point or a name."""
    points = axes.transData.transform(found.coordinates)
    frame = axes.get_window_extent()
    taken: list[NDArray[np.float64]] = []
    for turn in _turns(points, of_relation, count):
        for place in turn:
            box = _free_place(axes, ":".join(found.pairs[place]), found.coordinates[place], points, taken, frame)
            if box is not None:
                taken.append(box)
                break


def _turns(points: NDArray[np.float64], of_relation: NDArray[np.intp], count: int) -> list[list[int]]:
    """For each label to set, the points that may have it, best first; the relations take turns."""
    turns = []
    for number in range(count):
        for relation in range(int(of_relation.max()) + 1):
            own = np.flatnonzero(of_relation == relation)
            distances = np.linalg.norm(points[own] - np.median(points[own], axis=0), axis=1)
            turns.append(own[np.argsort(distances, kind="stable")][number::count].tolist())
    return turns


def _free_place(
    axes: "Axes",
    text: str,
    at: NDArray[np.float64],
    points: NDArray[np.float64],
    taken: list[NDArray[np.float64]],
    frame: Any,
) -> NDArray[np.float64] | None:
    """Write the text beside its point where it covers nothing, and return its box; None if there is no such place."""
    for right, up, horizontal, vertical in _PLACES:
        label = axes.annotate(
            text,
            (at[0], at[1]),
            (right, up),
            textcoords="offset points",
            ha=horizontal,
            va=vertical,
            fontsize=7.5,
            color="#222222",
        )
        box = label.get_window_extent().get_points()
        is_inside = frame.contains(*box[0]) and frame.contains(*box[1])
        covers_point = bool(((points > box[0] - _MARKER_PIXELS) & (points < box[1] + _MARKER_PIXELS)).all(axis=1).any())
        covers_label = any(bool((box[0] < other[1]).all() and (other[0] < box[1]).all()) for other in taken)
        if is_inside and not covers_point and not covers_label:
            return np.asarray(box)
        label.remove()
    return None
