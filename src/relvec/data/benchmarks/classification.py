"""Pairs with the name of their relation: the datasets of lexical relation classification."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from relvec.data.benchmarks.registry import benchmarks_of, find_files
from relvec.errors import RelvecError, one_of
from relvec.io.tables import Part as Part
from relvec.io.tables import read_rows
from relvec.pairs import Pair

CLASSIFICATION_DATASETS = benchmarks_of("classification")


@dataclass(frozen=True)
class LabelledPairs:
    """Pairs and the label of each."""

    pairs: tuple[Pair, ...]
    labels: tuple[str, ...]


def load_labelled(name: str, data_dir: str | Path | None = None) -> dict[Part, LabelledPairs]:
    """The parts of a dataset by name, or of a folder of the user's with train, test and perhaps valid files.

    The labels of a named dataset become the paper's classes.
    """
    files = find_files("classification", name, get_args(Part), data_dir)
    named = CLASSIFICATION_DATASETS.get(name)
    train = read_labelled(files["train"], named.classes if named else None)
    classes = named.classes if named else {label: label for label in train.labels}
    taught = {label: name for label, name in classes.items() if name in set(train.labels)}
    return {part: train if part == "train" else read_labelled(file, taught) for part, file in files.items()}


def read_labelled(source: Any, classes: dict[str, str] | None = None) -> LabelledPairs:
    """Pairs from a table with `head`, `tail` and `relation`; `classes` names the labels that may occur."""
    pairs: list[Pair] = []
    labels: list[str] = []
    for row in read_rows(source):
        pairs.append(row.pair())
        label = row.relation()
        if not label:
            raise RelvecError(f"{row.where}no relation; write head, tail and relation.")
        labels.append(label if classes is None else classes[one_of("label", label, classes, row.where)])
    return LabelledPairs(tuple(pairs), tuple(labels))
