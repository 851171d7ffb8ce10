"""Pairs with the name of their relation: the datasets of lexical relation classification."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from relvec.errors import RelvecError, did_you_mean
from relvec.hub.datasets import benchmark_file
from relvec.io.paths import expanded
from relvec.pairs import Pair, as_label, as_pair, json_rows, read_lines

Part = Literal["train", "valid", "test"]

HUB_ID = "relbert/lexical_relation_classification"


@dataclass(frozen=True)
class LabelledPairs:
    """Pairs and the label of each."""

    pairs: tuple[Pair, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class ClassificationDataset:
    """A dataset with a name; `counts` are its pairs in each part, `classes` turns its labels into the paper's."""

    name: str
    title: str
    counts: dict[str, int]
    classes: dict[str, str]
    hub_folder: str


CLASSIFICATION_DATASETS: dict[str, ClassificationDataset] = {
    dataset.name: dataset
    for dataset in (
        ClassificationDataset(
            name="bless",
            title="BLESS",
            counts={"train": 18582, "valid": 1327, "test": 6637},
            classes={
                "random": "random",
                "mero": "meronym",
                "event": "event",
                "hyper": "hypernym",
                "coord": "co-hyponym",
                "attri": "attribute",
            },
            hub_folder="BLESS",
        ),
        ClassificationDataset(
            name="cogalexv",
            title="CogALexV",
            counts={"train": 3054, "test": 4260},
            classes={
                "RANDOM": "random",
                "PART_OF": "meronym",
                "HYPER": "hypernym",
                "ANT": "antonym",
                "SYN": "synonym",
            },
            hub_folder="CogALexV",
        ),
        ClassificationDataset(
            name="evalution",
            title="EVALution",
            counts={"train": 5160, "valid": 372, "test": 1846},
            classes={
                "MadeOf": "meronym",
                "PartOf": "part of",
                "IsA": "hypernym",
                "HasProperty": "attribute",
                "HasA": "possession",
                "Antonym": "antonym",
                "Synonym": "synonym",
            },
            hub_folder="EVALution",
        ),
        ClassificationDataset(
            name="khn",
            title="K&H+N",
            counts={"train": 40256, "valid": 2876, "test": 14377},
            classes={"false": "random", "mero": "meronym", "hypo": "hypernym", "sibl": "co-hyponym"},
            hub_folder="K&H+N",
        ),
        ClassificationDataset(
            name="root09",
            title="ROOT09",
            counts={"train": 8933, "valid": 638, "test": 3191},
            classes={"RANDOM": "random", "HYPER": "hypernym", "COORD": "co-hyponym"},
            hub_folder="ROOT09",
        ),
    )
}


def load_labelled(name: str, data_dir: str | Path | None = None) -> dict[Part, LabelledPairs]:
    """The parts of a dataset by name, or of a folder of the user's with train, test and perhaps valid .jsonl files.

    The labels of a named dataset become the paper's classes.
    """
    files = _files(name, data_dir)
    named = CLASSIFICATION_DATASETS.get(name)
    train = read_labelled(files["train"], named.classes if named else None)
    classes = named.classes if named else {label: label for label in train.labels}
    taught = {label: name for label, name in classes.items() if name in set(train.labels)}
    return {part: train if part == "train" else read_labelled(path, taught) for part, path in files.items()}


def _files(name: str, data_dir: str | Path | None) -> dict[Part, Path]:
    """Where the parts of a dataset are; the validation part may be missing."""
    names: tuple[Part, ...] = ("train", "valid", "test")
    if name in CLASSIFICATION_DATASETS:
        dataset = CLASSIFICATION_DATASETS[name]
        hub = {part: f"dataset/{dataset.hub_folder}/{'val' if part == 'valid' else part}.jsonl" for part in names}
        return {
            part: benchmark_file(f"lexrel/{name}/{part}.jsonl", HUB_ID, hub[part], data_dir)
            for part in names
            if part in dataset.counts
        }
    folder = expanded(name)
    if not folder.is_dir():
        advice = did_you_mean(name, CLASSIFICATION_DATASETS, otherwise="check the name, or give a folder")
        raise RelvecError(f"There is no classification dataset {name}; {advice}.")
    for part in ("train", "test"):
        if not (folder / f"{part}.jsonl").is_file():
            raise RelvecError(f"There is no {part}.jsonl in {folder}; put it there.")
    return {part: path for part in names if (path := folder / f"{part}.jsonl").is_file()}


def read_labelled(path: str | Path, classes: dict[str, str] | None = None) -> LabelledPairs:
    """Pairs from JSON Lines with `head`, `tail` and `relation`; `classes` names the labels that may occur."""
    name, lines = read_lines(path)
    pairs: list[Pair] = []
    labels: list[str] = []
    for where, row in json_rows(lines, name):
        if not isinstance(row, dict) or not {"head", "tail", "relation"} <= row.keys():
            raise RelvecError(f'{where}no "head", "tail" and "relation"; write all three.')
        label = as_label(row["relation"], f"{where}relation: ")
        if not label:
            raise RelvecError(f"{where}the relation has no name; write one.")
        if classes is not None and label not in classes:
            advice = did_you_mean(label, classes, otherwise=f"known are {', '.join(classes)}")
            raise RelvecError(f"{where}unknown label {label!r}; {advice}.")
        pairs.append(as_pair((row["head"], row["tail"]), where))
        labels.append(classes[label] if classes is not None else label)
    if not pairs:
        raise RelvecError(f"{name} holds no pair; write one a line.")
    return LabelledPairs(tuple(pairs), tuple(labels))


def checksum(parts: Mapping[Part, LabelledPairs]) -> str:
    """A checksum of all pairs and labels.

    >>> checksum({"train": LabelledPairs((("oak", "tree"),), ("hypernym",))})[:8]
    '589da6c4'
    """
    return hashlib.sha256(repr(dict(parts)).encode()).hexdigest()
