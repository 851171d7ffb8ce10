"""Saved records as the rows of a table: seeds of one system together, its datasets side by side."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from relvec.evaluation.records import Record
from relvec.report.sizes import has_other_size
from relvec.report.table import OTHER_SIZE, Value

Metric = Callable[[Record], Any]


def metric(*path: str) -> Metric:
    """What reads a number out of a record's metrics; None if it is not there.

    >>> metric("by_category", "Lexical", "accuracy")(Record("analogy", "x", "bats", "test", "", {}, {})) is None
    True
    """

    def read(record: Record) -> Any:
        found: Any = record.metrics
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found

    return read


@dataclass(frozen=True)
class Measured:
    """A system with its settings (but the seed), and its records, one a seed, by dataset."""

    system: str
    settings: dict[str, Any]
    by_dataset: dict[str, list[Record]]

    @property
    def records(self) -> list[Record]:
        return [record for records in self.by_dataset.values() for record in records]

    @property
    def facts(self) -> dict[str, Any]:
        return self.records[0].facts

    def setting(self, name: str) -> str:
        """A setting as text; empty if there is none of that name."""
        return str(self.settings.get(name, ""))

    def other_settings(self, shown: Collection[str] = ()) -> str:
        """The settings that are not shown elsewhere, as text."""
        rest = {name: value for name, value in self.settings.items() if name not in shown and value not in (None, [])}
        return ", ".join(f"{name.replace('_', ' ')}: {_text(value)}" for name, value in sorted(rest.items()))

    def values(self, cells: Mapping[str, tuple[str, Metric]], interval: Metric | None = None) -> dict[str, Value]:
        """The mean over seeds of each cell, a metric on a dataset; cells without a number are left out."""
        values = {}
        for key, (dataset, number) in cells.items():
            records = [record for record in self.by_dataset.get(dataset, []) if _is_number(number(record))]
            if not records:
                continue
            intervals = [found for record in records if interval and (found := interval(record))]
            values[key] = Value.over_seeds(
                [number(record) for record in records],
                intervals if len(intervals) == len(records) else [],
                OTHER_SIZE if any(has_other_size(record) for record in records) else "",
            )
        return values

    def mean(self, datasets: Sequence[str], number: Metric) -> Value | None:
        """The mean over datasets, if there is a number of each; the spread is over seeds that have them all."""
        means = self.values({dataset: (dataset, number) for dataset in datasets})
        if len(means) < len(datasets):
            return None
        by_seed: dict[str, list[float]] = {}
        for dataset in datasets:
            for record in self.by_dataset[dataset]:
                by_seed.setdefault(f"{record.fingerprint} {record.settings.get('seed')}", []).append(number(record))
        mark = OTHER_SIZE if any(value.mark for value in means.values()) else ""
        if all(len(numbers) == len(datasets) for numbers in by_seed.values()):
            return Value.over_seeds([fmean(numbers) for numbers in by_seed.values()], mark=mark)
        # Seeds cannot be told apart, for instance because each dataset has a fingerprint of its own.
        return Value(fmean(value.mean for value in means.values()), mark=mark)


def measured(records: Sequence[Record]) -> list[Measured]:
    """The records of one task and part, by system and settings, in the order of their names."""
    groups: dict[str, Measured] = {}
    for record in records:
        settings = {name: value for name, value in record.settings.items() if name != "seed"}
        key = json.dumps([record.system, settings], sort_keys=True, default=str)
        group = groups.setdefault(key, Measured(record.system, settings, {}))
        group.by_dataset.setdefault(record.dataset, []).append(record)
    return [groups[key] for key in sorted(groups)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and value == value


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
