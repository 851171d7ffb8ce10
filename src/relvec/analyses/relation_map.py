"""A map of relation vectors: pairs of one relation should lie together, whatever their words."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from relvec.data.benchmarks.classification import CLASSIFICATION_DATASETS, load_labelled
from relvec.data.sources import load
from relvec.errors import RelvecError, did_you_mean, needed_for
from relvec.io.files import written_whole
from relvec.model.cached_vectors import PairVectors
from relvec.pairs import Pair
from relvec.similarity import Vectors, normalized

Method = Literal["pca", "tsne"]
METHODS: tuple[Method, ...] = ("pca", "tsne")

MOST_RELATIONS = 24
PAIRS_PER_RELATION = 60
COLUMNS = ("head", "tail", "relation", "x", "y")


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
        with written_whole(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
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
    if data in CLASSIFICATION_DATASETS:
        test = load_labelled(data, data_dir)["test"]
        groups: dict[str, list[Pair]] = {}
        for pair, label in zip(test.pairs, test.labels, strict=True):
            groups.setdefault(label, []).append(pair)
    else:
        groups = {relation.name: list(relation.positives) for relation in load(data, data_dir=data_dir)}
    for name in relations:
        if name not in groups:
            advice = did_you_mean(name, groups, otherwise=f"the first are {', '.join(list(groups)[:8])}")
            raise RelvecError(f"{data} has no relation {name!r}; {advice}.")
    chosen = list(dict.fromkeys(relations or groups))
    if len(chosen) > MOST_RELATIONS:
        raise RelvecError(f"{len(chosen)} relations are too many for a map; choose up to {MOST_RELATIONS} of {data}.")
    return {name: _spread(groups[name], limit) for name in chosen}


def _spread(pairs: list[Pair], limit: int) -> list[Pair]:
    distinct = list(dict.fromkeys(pairs))
    count = min(limit, len(distinct))
    return [distinct[place * len(distinct) // count] for place in range(count)]
