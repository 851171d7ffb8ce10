"""A map of relation vectors: pairs of one relation should lie together, whatever their words."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from relvec.data.benchmarks.classification import CLASSIFICATION_DATASETS, load_labelled
from relvec.data.benchmarks.registry import benchmark_name
from relvec.data.sources import load
from relvec.errors import RelvecError, needed_for, one_of
from relvec.io.files import atomic_write
from relvec.model.cached_vectors import PairVectors
from relvec.pairs import Pair
from relvec.similarity import Vectors, normalized

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Method = Literal["pca", "tsne"]
METHODS: dict[Method, str] = {"pca": "PCA", "tsne": "t-SNE"}

MOST_RELATIONS = 24
PAIRS_PER_RELATION = 60
COLUMNS = ("head", "tail", "relation", "x", "y")
PICTURE_FORMATS = (".svg", ".png")

# Okabe and Ito's colours, which colour-blind readers can tell apart; violet and brown stand for yellow and black, which
# do not show on paper or among letters. A ninth relation starts over with another marker.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC6699", "#E69F00", "#6A51A3", "#3BA3DB", "#8C6239")
_MARKERS = ("o", "^", "s")
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


@dataclass(frozen=True)
class RelationMap:
    """Pairs, the relation of each, and where each lies: [pairs, 2]."""

    system: str
    method: Method
    pairs: tuple[Pair, ...]
    relations: tuple[str, ...]
    coordinates: NDArray[np.float64]

    def points(self) -> list[dict[str, Any]]:
        """Each pair with its relation, x and y.

        >>> RelationMap("tiny", "pca", (("Paris", "France"),), ("capital",), np.array([[0.5, -1.0]])).points()
        [{'pair': ['Paris', 'France'], 'relation': 'capital', 'x': 0.5, 'y': -1.0}]
        """
        rows = zip(self.pairs, self.relations, self.coordinates.round(5).tolist(), strict=True)
        return [{"pair": list(pair), "relation": relation, "x": x, "y": y} for pair, relation, (x, y) in rows]

    def save_coordinates(self, path: str | Path) -> None:
        """Write head, tail, relation, x and y as csv."""
        with atomic_write(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(COLUMNS)
            rows.writerows([*point["pair"], point["relation"], point["x"], point["y"]] for point in self.points())


def relation_map(
    vectors: PairVectors, groups: Mapping[str, Sequence[Pair]], method: Method = "pca", seed: int = 0
) -> RelationMap:
    """Lay out the pairs of each relation in the plane; pairs without a vector are left out.

    All vectors get length 1 first, since only their direction counts. `pca` projects them onto the two directions in
    which they differ most; `tsne` keeps close what is close and says little of large distances.

    >>> from relvec import RelBERT
    >>> from relvec.model.cached_vectors import ModelVectors
    >>> vectors = ModelVectors(RelBERT.from_pretrained(tiny_model), "cache")
    >>> groups = {"capital": [("Paris", "France"), ("Tokyo", "Japan")], "maker": [("baker", "bread")]}
    >>> relation_map(vectors, groups).coordinates.shape
    (3, 2)
    """
    pairs = [pair for group in groups.values() for pair in group]
    names = [name for name, group in groups.items() for _ in group]
    found, known = vectors.vectors(pairs)
    if known.sum() < 3:
        raise RelvecError(f"{vectors.name} knows {known.sum()} of the pairs, a map needs 3; choose more relations.")
    kept = np.flatnonzero(known)
    rows = normalized(found[kept])
    coordinates = _pca(rows) if method == "pca" else _tsne(rows, seed)
    return RelationMap(vectors.name, method, tuple(pairs[k] for k in kept), tuple(names[k] for k in kept), coordinates)


def _pca(rows: Vectors) -> NDArray[np.float64]:
    centred = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    left, lengths, _ = np.linalg.svd(centred, full_matrices=False)
    coordinates: NDArray[np.float64] = left[:, :2] * lengths[:2]
    # A direction may be turned round freely: the farthest pair shall lie right of, and above, the middle.
    farthest = np.abs(coordinates).argmax(axis=0)
    return coordinates * np.where(coordinates[farthest, [0, 1]] < 0, -1.0, 1.0)


def _tsne(rows: Vectors, seed: int) -> NDArray[np.float64]:
    with needed_for("The method tsne"):
        from sklearn.manifold import TSNE
    perplexity = min(30.0, (len(rows) - 1) / 3)
    layout = TSNE(2, perplexity=perplexity, metric="cosine", init="pca", random_state=seed, n_jobs=1)
    return np.asarray(layout.fit_transform(rows), dtype=np.float64)


def load_groups(
    data: str,
    relations: Sequence[str] = (),
    *,
    data_dir: str | Path | None = None,
    limit: int = PAIRS_PER_RELATION,
) -> dict[str, list[Pair]]:
    """The good pairs of some relations (by default all) of training data, or of a classification dataset's test part.

    Of a relation with more than `limit` pairs, as many are taken at even distances.

    >>> [len(pairs) > 5 for pairs in load_groups("bundled", ["animal-to-young"]).values()]
    [True]
    """
    data = benchmark_name("classification", data)
    if data in CLASSIFICATION_DATASETS:
        test = load_labelled(data, data_dir)["test"]
        groups: dict[str, list[Pair]] = {}
        for pair, label in zip(test.pairs, test.labels, strict=True):
            groups.setdefault(label, []).append(pair)
    else:
        groups = {relation.name: list(relation.positives) for relation in load(data, data_dir=data_dir)}
    for name in relations:
        one_of("relation", name, groups, where=f"{data}: ")
    chosen = list(dict.fromkeys(relations or groups))
    if len(chosen) > MOST_RELATIONS:
        raise RelvecError(f"{len(chosen)} relations are too many for a map; choose up to {MOST_RELATIONS} of {data}.")
    return {name: _spread(groups[name], limit) for name in chosen}


def _spread(pairs: list[Pair], limit: int) -> list[Pair]:
    distinct = list(dict.fromkeys(pairs))
    count = min(limit, len(distinct))
    return [distinct[place * len(distinct) // count] for place in range(count)]


def check_picture(path: str | Path) -> None:
    """A map can be drawn to this file: its ending is known and matplotlib is there."""
    if Path(path).suffix.lower() not in PICTURE_FORMATS:
        raise RelvecError(f"Cannot draw to {path}; give a file that ends in {' or '.join(PICTURE_FORMATS)}.")
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
        title = f"Relation vectors of {found.system} ({METHODS[found.method]})"
        axes.set_title(title, loc="left", fontsize=8, color=_FAINT)
        canvas.draw()  # settles where the points lie on the picture
        figure.set_layout_engine("none")  # and they stay there
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
            beside: Any = {"loc": "upper left", "bbox_to_anchor": (1, 1)}
            figure.legend(handles=handles, frameon=False, fontsize=8, handletextpad=0.3, **beside)
        metadata: dict[str, Any] = (
            {"Date": None, "Creator": None} if Path(path).suffix.lower() == ".svg" else {"Software": None}
        )
        with atomic_write(path) as partial:
            figure.savefig(partial, metadata=metadata, bbox_inches="tight")


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
