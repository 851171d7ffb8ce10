"""Where a pair lies among relations: the pair in the middle, each relation as far from it as it really is."""

from typing import NamedTuple

import numpy as np

from relvec.naming import Catalogue
from relvec.similarity import Vectors, normalized

NEAREST = 10
"""How many relations get a name in the picture, and decide how it is turned."""


class Place(NamedTuple):
    """A relation in the plane, where the pair is at (0, 0) and the farthest relation at distance 1."""

    name: str
    x: float
    y: float
    rank: int | None
    """0 for the likeliest relation of the pair; None beyond the nearest."""
    is_reversed: bool


def chart(catalogue: Catalogue, vector: Vectors) -> list[Place]:
    """Every relation, at its distance from the pair's vector in the catalogue's space.

    Its direction is where it lies in the plane in which the nearest relations differ most: relations that are alike
    lie on one side. A relation that leads from tail to head is there only if it is among the nearest.
    """
    prototypes = catalogue.prototypes
    point = catalogue.space(vector[None])
    likelihoods = prototypes.log_likelihoods(point, catalogue.space.between)[0]
    nearest: dict[int, int] = {}  # the row of each relation, the likeliest first
    for row in np.argsort(-likelihoods, kind="stable"):
        nearest.setdefault(int(prototypes.relations[row]), int(row))
        if len(nearest) == NEAREST:
            break
    ranks = {row: rank for rank, row in enumerate(nearest.values())}
    offsets = prototypes.means - point
    middle = offsets[list(ranks)].mean(axis=0)
    _, _, axes = np.linalg.svd(offsets[list(ranks)] - middle, full_matrices=False)
    directions = normalized((offsets - middle) @ axes[:2].T)
    distances = np.linalg.norm(offsets, axis=1)
    inner = 0.6 * distances.min()  # so that differences are seen
    places = directions * ((distances - inner) / (distances.max() - inner))[:, None]
    shown = [row for row in range(len(places)) if row in ranks or not prototypes.is_reversed[row]]
    return [
        Place(
            catalogue.relations[prototypes.relations[row]].name,
            round(float(places[row, 0]), 4),
            round(float(places[row, 1]), 4),
            ranks.get(row),
            bool(prototypes.is_reversed[row]),
        )
        for row in shown
    ]
