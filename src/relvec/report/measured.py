"""Saved records as the measured rows of tables: seeds of one system together, its datasets side by side."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from statistics import fmean
from typing import Any

from relvec.data.benchmarks.analogy import ANALOGY_DATASETS
from relvec.data.benchmarks.classification import CLASSIFICATION_DATASETS
from relvec.evaluation.portable import portable, portable_facts
from relvec.evaluation.records import Record
from relvec.report.published import PublishedRow
from relvec.report.sizes import has_other_size, title_of
from relvec.report.table import NOT_COMPARABLE, OTHER_SIZE, USED_DATASET, Row, Value

Metric = Callable[[Record], float | None]

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


def metric(*path: str) -> Metric:
    """What reads a number out of a record's metrics; None if it is not there.

    >>> metric("by_category", "Lexical", "accuracy")(Record("analogy", "x", "bats", "test", "", {}, {})) is None
    True
    """

    def read(record: Record) -> float | None:
        found: Any = record.metrics
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found if isinstance(found, int | float) and found == found else None

    return read


@dataclass(frozen=True)
class Measured:
    """A system with its unusual settings (but the seed), and its records, one a seed, by dataset."""

    system: str
    settings: dict[str, Any]
    by_dataset: dict[str, list[Record]]

    @property
    def records(self) -> list[Record]:
        return [record for records in self.by_dataset.values() for record in records]

    @property
    def facts(self) -> dict[str, Any]:
        return self.records[0].facts

    def values(self, cells: Mapping[str, tuple[str, Metric]], has_interval: bool = False) -> dict[str, Value]:
        """The mean over seeds of each cell, a metric on a dataset; cells without a number are left out.

        The interval of a record belongs to one of its metrics; `has_interval` says that the cells are of that one.
        """
        values = {}
        for key, (dataset, number) in cells.items():
            records = [record for record in self.by_dataset.get(dataset, []) if number(record) is not None]
            numbers = [found for record in records if (found := number(record)) is not None]
            if not numbers:
                continue
            intervals = [found for record in records if has_interval and (found := record.metrics.get("interval"))]
            values[key] = Value.over_seeds(
                numbers,
                intervals if len(intervals) == len(records) else [],
                _gravest({mark for record in records for mark in _marks(record)}),
            )
        return values

    def mean(self, datasets: Sequence[str], number: Metric) -> Value | None:
        """The mean over datasets if there is a number of each, over the seeds that have them all.

        Where no single seed has them all, it is the mean of what there is.
        """
        means = self.values({dataset: (dataset, number) for dataset in datasets})
        if len(means) < len(datasets):
            return None
        by_seed: dict[str, list[float]] = {}
        for dataset in datasets:
            for record in self.by_dataset[dataset]:
                if (found := number(record)) is not None:
                    by_seed.setdefault(f"{record.fingerprint} {record.settings.get('seed')}", []).append(found)
        mark = _gravest({value.mark for value in means.values()})
        if complete := [fmean(numbers) for numbers in by_seed.values() if len(numbers) == len(datasets)]:
            return Value.over_seeds(complete, mark=mark)
        return Value(fmean(value.mean for value in means.values()), mark=mark)


def measured(records: Sequence[Record]) -> list[Measured]:
    """The records of one task and part, by system and settings, in the order of their names; copies count once."""
    distinct = {
        (record.system, record.dataset, _text(record.settings), record.fingerprint): record for record in records
    }
    groups: dict[str, Measured] = {}
    for record in distinct.values():
        settings = {name: value for name, value in sorted(record.settings.items()) if _is_told(name, value)}
        group = groups.setdefault(_text([record.system, settings]), Measured(record.system, settings, {}))
        group.by_dataset.setdefault(record.dataset, []).append(record)
    return [groups[key] for key in sorted(groups)]


def with_short_datasets(records: Sequence[Record]) -> list[Record]:
    """The records with the paths of a user's datasets cut to the shortest ends that tell them apart."""
    paths = {record.dataset for record in records}
    known = {*ANALOGY_DATASETS, *CLASSIFICATION_DATASETS}

    def short(path: str) -> str:
        parts = PurePath(path).parts
        ends = ["/".join(parts[-count:]) for count in range(1, len(parts) + 1)]
        taken = [f"/{other}" for other in {*paths, *known} - {path}]
        return next((end for end in ends if not any(other.endswith(f"/{end}") for other in taken)), path)

    return [
        record if record.dataset in known else record.changed({"dataset": short(record.dataset)}) for record in records
    ]


Entry = tuple[Measured, dict[str, Value]]


def ranked(entries: Sequence[Entry], key: str = "mean", lowest_first: bool = False) -> list[Entry]:
    """The entries that have numbers, in the order of a column; those without it come last, by what they have."""

    def place(entry: Entry) -> tuple[bool, float]:
        values = entry[1]
        number = values[key].mean if key in values else fmean(value.mean for value in values.values())
        return key not in values, number if lowest_first else -number

    return sorted((entry for entry in entries if entry[1]), key=place)


@dataclass(frozen=True)
class Labelled:
    """The titles of the label columns, the measured rows, and a sentence on the settings that all of them share."""

    titles: tuple[str, ...]
    rows: tuple[Row, ...]
    shared: str

    def published(
        self, published: Sequence[PublishedRow], means: Mapping[str, Sequence[str]] | None = None
    ) -> tuple[Row, ...]:
        """Published rows under the same titles; `means` are the columns that average others."""
        rows: list[Row] = []
        for row in published:
            values = {key: Value(number, mark=row.mark) for key, number in row.values.items()}
            for mean, keys in (means or {}).items():
                if all(key in values for key in keys):
                    values[mean] = Value(fmean(values[key].mean for key in keys), mark=row.mark)
            labels = {"System": row.system, "Language model": row.base}
            rows.append(Row(tuple(labels.get(title, "") for title in self.titles), values, row.origin))
        return tuple(rows)


def labelled(entries: Sequence[Entry]) -> Labelled:
    """The entries as rows: the system, the settings by which it differs from others, and the number of seeds.

    A column that would be empty, or that says 1 of every row, is left out.
    """
    systems = [system for system, _ in entries]
    shared = {name: value for name, value in systems[0].settings.items() if _all_have(systems, name, value)}
    settings = [_told(system.settings, shared) for system in systems]
    seeds = [_seeds(values.values()) for _, values in entries]
    columns = {"System": [system.system for system in systems]}
    columns |= {"Settings": settings} if any(settings) else {}
    columns |= {"Seeds": seeds} if any(count != "1" for count in seeds) else {}
    return Labelled(
        tuple(columns),
        tuple(
            Row(labels, values, kind=str(system.facts.get("kind", "")))
            for labels, (system, values) in zip(zip(*columns.values(), strict=True), entries, strict=True)
        ),
        f" All measured rows: {_told(shared)}." if shared else "",
    )


def column_titles(systems: Sequence[Measured]) -> list[str]:
    """A heading for each system, with the settings by which it differs from others of its name.

    >>> column_titles([Measured("a", {}, {}), Measured("a", {"scoring": "reverse"}, {})])
    ['a', 'a (reverse)']
    """
    titles = []
    for system in systems:
        same = [other for other in systems if other.system == system.system]
        settings = _told(
            system.settings, {name for name, value in system.settings.items() if _all_have(same, name, value)}
        )
        titles.append(f"{system.system} ({settings})" if settings else system.system)
    return titles


def dataset_titles(
    systems: Sequence[Measured], registry: Mapping[str, Any], *, only_measured: bool = False
) -> dict[str, str]:
    """The titles of the registry's datasets in its order, then those of other datasets that were measured."""
    found = {record.dataset: title_of(record) for system in systems for record in system.records}
    known = {name: dataset.title for name, dataset in registry.items() if not only_measured or name in found}
    return known | {name: found[name] for name in sorted(found.keys() - known.keys())}


_UNTOLD = {"dtype": "float32"}  # what a fact is where a record does not tell it


def seed_warnings(systems: Sequence[Measured]) -> tuple[str, ...]:
    """One line for each system whose records are no seeds of one another, though they share the name."""
    warnings = []
    for system in systems:
        facts = [portable_facts(record.facts) for record in system.records]
        differing = []
        for fact in ("kind", "base", "template", "pooling", "dtype", "data", "loss"):
            found = sorted({_fact_text(told.get(fact, _UNTOLD.get(fact, "none"))) for told in facts})
            if len(found) > 1:
                problem = f"{system.system} averages different systems ({fact}: {', '.join(found)})"
                differing.append(f"{problem}; evaluate them under different names.")
        if not differing and (found := _of_one_seed(system)):
            problem = f"{system.system} averages results that are no seeds of one another ({', '.join(found)})"
            differing.append(f"{problem}; remove the outdated ones, or evaluate them under different names.")
        warnings += differing
    return tuple(warnings)


def tuning_warnings(systems: Sequence[Measured]) -> tuple[str, ...]:
    """One line with the systems that used questions of the datasets they were measured on."""
    found = dict.fromkeys(system.system for system in systems if any(map(used_dataset, system.records)))
    problem = f"Tuned on, or shown, questions of the same datasets, hence the {USED_DATASET}"
    return (f"{problem}: {', '.join(found)}.",) if found else ()


def used_dataset(record: Record) -> bool:
    """Whether the record's configuration shows that its system was tuned on questions of the dataset, or shown some.

    >>> used_dataset(Record("analogy", "x", "sat", "test", "", {}, {"configuration": {"valid_accuracy": 50.0}}))
    True
    """
    configuration = record.metrics.get("configuration")
    if record.task != "analogy" or not isinstance(configuration, dict):
        return False
    return "valid_accuracy" in configuration or bool(configuration.get("shots"))


def commands(systems: Sequence[Measured]) -> tuple[str, ...]:
    """The commands that made the systems' records, each once."""
    made = (record.command for system in systems for record in system.records)
    return tuple(dict.fromkeys(portable(command) for command in made if command))


def _of_one_seed(system: Measured) -> list[str]:
    """The fingerprints of several records of one dataset that have the same seed, or are of a baseline without any."""
    prints: dict[str, set[str]] = {}
    for record in system.records:
        seed = record.facts.get("seed")
        # A model may come without a record of its training, and then nobody knows its seed.
        if seed is not None or record.facts.get("kind") == "baseline":
            key = _text([record.dataset, seed, record.settings.get("seed")])
            prints.setdefault(key, set()).add(record.fingerprint[:8])
    return sorted({each for found in prints.values() if len(found) > 1 for each in found})


def _fact_text(value: Any) -> str:
    return " + ".join(map(str, value)) if isinstance(value, list) else str(value)


def _marks(record: Record) -> list[str]:
    return [OTHER_SIZE] * has_other_size(record) + [USED_DATASET] * used_dataset(record)


def _gravest(marks: Collection[str]) -> str:
    return next((mark for mark in NOT_COMPARABLE if mark in marks), "")


def _is_told(name: str, value: Any) -> bool:
    return name != "seed" and value not in (None, [], USUAL.get(name))


def _all_have(systems: Sequence[Measured], name: str, value: Any) -> bool:
    return all(system.settings.get(name) == value for system in systems)


def _told(settings: Mapping[str, Any], but: Collection[str] = ()) -> str:
    texts = []
    for name, value in settings.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if name not in but:
            texts.append(f"{_CALLED.get(name, name.replace('_', ' '))} {text}".strip())
    return ", ".join(texts)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _seeds(values: Collection[Value]) -> str:
    counts = sorted({value.seeds for value in values})
    return "-".join(dict.fromkeys((str(counts[0]), str(counts[-1]))))
