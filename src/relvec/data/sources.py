"""Training data by name, file, folder or hub id."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from relvec.data.rated import BOTTOM, TOP, RatedRelation
from relvec.data.readers import KINDS, read_rated
from relvec.errors import RelvecError, did_you_mean
from relvec.hub.datasets import dataset_folder
from relvec.io.files import data_folder, expanded
from relvec.io.tables import kind_of

DEFAULT_SOURCE = "bundled"

PATTERNS = ("*train*.jsonl", "*valid*.jsonl")  # what is read of a dataset of the hub

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Source:
    """Training data with a name of its own.

    It is inside this package at `package_folder`, or at `data_file` below the data folder and else on the hub.
    """

    name: str
    description: str
    licence: str
    package_folder: str = ""
    data_file: str = ""
    hub_id: str = ""
    website: str = ""
    symmetric_relations: tuple[str, ...] = ()
    """Relations that hold in both directions, where the files do not say so."""


SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            name="bundled",
            description="relvec's own relations of many kinds, each with a definition and hard negatives",
            licence="public domain, except what is made from WordNet (its own licence)",
            package_folder="relations",
        ),
        Source(
            name="supplement",
            description="more relations of the same kind for training, without test questions or names to explain by",
            licence="public domain",
            package_folder="supplement",
        ),
        Source(
            name="semeval2012",
            description="SemEval-2012 Task 2, the paper's training data: 79 relations in 10 categories",
            licence="CC BY-SA 3.0",
            data_file="semeval2012/pairs.jsonl",
            hub_id="relbert/semeval2012_relational_similarity",
            website="https://sites.google.com/site/semeval2012task2",
            # Similarity, coordinates, opposites and contiguity. Not 3c to 3e and 4f, where one word is the stronger.
            symmetric_relations=("3a", "3b", "3f", "3g", "4a", "4b", "4c", "4d", "4e", "4g", "9e"),
        ),
    )
}


def load(
    name_or_path: str | Path | Sequence[str],
    *,
    data_dir: str | Path | None = None,
    top: int = TOP,
    bottom: int = BOTTOM,
    threshold: float | None = None,
) -> list[RatedRelation]:
    """Relations by the name of a source, from a file or a folder, or from a dataset of the hub; of several, all.

    >>> len(load("bundled")) >= 250
    True
    """
    rated: dict[str, Any] = {"top": top, "bottom": bottom, "threshold": threshold}
    if not isinstance(name_or_path, str | Path):
        return [relation for name in name_or_path for relation in load(name, data_dir=data_dir, **rated)]
    name = str(name_or_path)
    if name in SOURCES:
        place = _place(SOURCES[name], data_dir)
    elif expanded(name).exists():
        place = Path(name)
    elif _HUB_ID.fullmatch(name) and not name.startswith(".") and kind_of(name) not in KINDS:
        place = dataset_folder(name, PATTERNS)
    else:
        advice = did_you_mean(name, SOURCES, otherwise="check the path, or see `relvec data list`")
        raise RelvecError(f"There is no data {name}; {advice}.")
    relations = read_rated(place, **rated)
    symmetric = SOURCES[name].symmetric_relations if name in SOURCES else ()
    return [replace(relation, is_symmetric=True) if relation.name in symmetric else relation for relation in relations]


def describe(name_or_path: str) -> str:
    """A name with what it stands for; anything else as it is.

    >>> describe("my_pairs.csv")
    'my_pairs.csv'
    """
    source = SOURCES.get(name_or_path)
    return f"{name_or_path} ({source.description}; {source.licence})" if source else name_or_path


def _place(source: Source, data_dir: str | Path | None) -> Path:
    if source.package_folder:
        return Path(str(files("relvec.data"))) / source.package_folder
    folder = data_folder(data_dir)
    if folder is not None and (folder / source.data_file).is_file():
        return folder / source.data_file
    try:
        return dataset_folder(source.hub_id, PATTERNS)
    except RelvecError as error:
        fix = f"get it from {source.website} and give its folder, or have {source.data_file} below $RELVEC_DATA"
        raise RelvecError(f"{source.name} is neither on this machine nor available from the hub; {fix}.") from error
