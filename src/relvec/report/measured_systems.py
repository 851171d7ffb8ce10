"""Records by system: which are seeds of one another, and how a table calls systems and datasets."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from typing import Any

from relvec.data.benchmarks.registry import BENCHMARKS
from relvec.evaluation.portable import portable_path
from relvec.evaluation.records import Record

# What is not worth telling of a row: the paper's way, and the defaults of fine-tuning.
USUAL = {
    "scoring": "forward",
    "out_of_vocabulary": "wrong",
    "classifier": "mlp",
    "epochs": 3,
    "learning_rate": 3e-5,
    "batch_size": 32,
    "lora_rank": 0,
}
# How settings are called where their own names are no help.
_CALLED = {"scoring": "", "classifier": "", "out_of_vocabulary": "unknown words:", "fallback": "answers of"}


@dataclass(frozen=True)
class MeasuredSystem:
    """A system with its unusual settings (except the seed), and its records: one for each dataset and seed."""

    name: str
    settings: dict[str, Any]
    records: list[Record]

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.records[0].facts


def measured_systems(records: Sequence[Record]) -> list[MeasuredSystem]:
    """The records of one task and part by system and settings, in the order of the names."""

    def key(record: Record) -> str:
        return json.dumps([record.system, _unusual(record.settings)], default=str)

    groups = [list(group) for _, group in groupby(sorted(records, key=key), key)]
    return [MeasuredSystem(group[0].system, _unusual(group[0].settings), group) for group in groups]


def _unusual(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in sorted(settings.items())
        if name != "seed" and value not in (None, [], USUAL.get(name))
    }


def shared_settings(alike: Sequence[MeasuredSystem]) -> dict[str, Any]:
    """The settings that all of some systems have."""
    first = alike[0].settings
    return {name: first[name] for name in first if all(each.settings.get(name) == first[name] for each in alike)}


def settings_text(settings: Mapping[str, Any], without: Collection[str] = ()) -> str:
    """
    >>> settings_text({"out_of_vocabulary": "chance", "scoring": "reverse", "shots": 5}, without=["shots"])
    'unknown words: chance, reverse'
    """
    texts = []
    for name, value in settings.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if name not in without:
            texts.append(f"{_CALLED.get(name, name.replace('_', ' '))} {text}".strip())
    return ", ".join(texts)


def system_titles(found: Sequence[MeasuredSystem]) -> list[str]:
    """A heading for each system, with the settings by which it differs from others of its name.

    >>> system_titles([MeasuredSystem("a", {}, []), MeasuredSystem("a", {"scoring": "reverse"}, [])])
    ['a', 'a (reverse)']
    """
    titles = []
    for system in found:
        same = shared_settings([other for other in found if other.name == system.name])
        settings = settings_text(system.settings, same)
        titles.append(f"{system.name} ({settings})" if settings else system.name)
    return titles


def dataset_title(dataset: str) -> str:
    """
    >>> dataset_title("khn"), dataset_title("mine.jsonl")
    ('K&H+N', 'mine.jsonl')
    """
    return BENCHMARKS[dataset].title if dataset in BENCHMARKS else dataset


def dataset_titles(records: Sequence[Record], known: Collection[str], *, only_measured: bool = False) -> dict[str, str]:
    """The titles of known datasets in their order, then those of other datasets that were measured."""
    found = {record.dataset for record in records}
    first = [name for name in known if not only_measured or name in found]
    return {name: dataset_title(name) for name in [*first, *sorted(found.difference(first))]}


def with_short_datasets(records: Sequence[Record]) -> list[Record]:
    """The records with the datasets of users by the names of their files, where these tell them apart."""
    paths = {*BENCHMARKS, *(record.dataset for record in records)}
    counts = Counter(PurePath(path).name for path in paths)
    short = {path: name if counts[name := PurePath(path).name] == 1 else portable_path(path) for path in paths}
    return [
        record if record.dataset in BENCHMARKS else record.changed({"dataset": short[record.dataset]})
        for record in records
    ]
