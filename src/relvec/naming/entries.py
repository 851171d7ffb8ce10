"""Entries of the catalogue: relations that say the same of two words are one."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relvec.data.rated import RatedRelation


@dataclass(frozen=True)
class Entries:
    """What a catalogue lists, and of each relation which of it the relation says, and whether the other way round."""

    listed: list[RatedRelation]
    numbers: NDArray[np.int64]
    is_reversed: NDArray[np.bool_]


def bundled_groups() -> list[dict[str, Any]]:
    """Which of the bundled relations say the same, by `entries.toml`."""
    groups: list[dict[str, Any]] = tomllib.loads((files("relvec.naming") / "entries.toml").read_text("utf-8"))["entry"]
    return groups


def entries_of(relations: Sequence[RatedRelation], groups: Sequence[Mapping[str, Any]] = ()) -> Entries:
    """One entry for the relations of each group, and for each relation that is in none.

    >>> pairs = [(("cat", "animal"),), (("flower", "rose"),), (("hot", "cold"),)]
    >>> kind, exemplar, contrast = (RatedRelation(n, "", p, ()) for n, p in zip(("a", "b", "c"), pairs, strict=True))
    >>> group = {"name": "kind-of", "sentence": "X is a Y", "definition": "", "relations": ["a"], "reversed": ["b"]}
    >>> entries = entries_of([kind, exemplar, contrast], [group])
    >>> [(entry.name, entry.positives) for entry in entries.listed]
    [('kind-of', (('cat', 'animal'), ('rose', 'flower'))), ('c', (('hot', 'cold'),))]
    >>> entries.numbers.tolist(), entries.is_reversed.tolist()
    ([0, 0, 1], [False, True, False])
    """
    group_of = {name: group for group in groups for name in [*group["relations"], *group.get("reversed", ())]}
    found: dict[str, RatedRelation] = {}
    is_reversed = []
    for relation in relations:
        group = group_of.get(relation.name, {})
        said = replace(relation, **{key: group[key] for key in ("name", "sentence", "definition") if group})
        is_reversed.append(relation.name in group.get("reversed", ()))
        if is_reversed[-1]:
            said = replace(said, positives=tuple(pair[::-1] for pair in said.positives))
        known = found.get(said.name, replace(said, positives=()))
        is_symmetric = known.is_symmetric or said.is_symmetric
        found[said.name] = replace(known, positives=(*known.positives, *said.positives), is_symmetric=is_symmetric)
    names = [*found]
    numbers = [names.index(group_of.get(relation.name, {}).get("name", relation.name)) for relation in relations]
    return Entries(list(found.values()), np.array(numbers), np.array(is_reversed))
