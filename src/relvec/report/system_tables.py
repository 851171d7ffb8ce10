"""Tables of measured systems: records -> one line for each number -> means over seeds -> rows, the best first."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

import pandas as pd

from relvec.evaluation.records import Record, portable
from relvec.report.measured_systems import (
    MeasuredSystem,
    gravest_mark,
    mark,
    measured_systems,
    settings_text,
    shared_settings,
    system_titles,
    warnings,
)
from relvec.report.published import PublishedRow
from relvec.report.table import Column, Number, ReportTable, TableRow, Value

SystemValues = tuple[MeasuredSystem, dict[str, Value]]
"""A system and its values by the key of the column."""
Means = Mapping[str, Sequence[str]]
"""Columns that are the mean of others: their keys, and those of the others."""


def metric(*path: str) -> Number:
    """What reads a number out of a record's metrics; None if it is not there."""

    def read(record: Record) -> float | None:
        found: Any = record.metrics
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found if isinstance(found, int | float) else None

    return read


def measured(
    records: Sequence[Record],
    columns: Sequence[Column],
    means: Means | None = None,
    order: str = "mean",
) -> list[SystemValues]:
    """The systems that have numbers, the best in a column first; those without it come last, by what they have."""
    found = measured_systems(records)
    numbers = _numbers(found, columns)
    if numbers.empty:
        return []
    numbers = pd.concat([numbers, *(_means(numbers, key, list(parts)) for key, parts in (means or {}).items())])
    over_seeds = numbers.groupby(["system", "column"]).agg(
        mean=("value", "mean"),
        deviation=("value", "std"),
        seeds=("value", "size"),
        low=("low", _mean_of_all),
        high=("high", _mean_of_all),
        mark=("mark", gravest_mark),
    )
    entries: dict[int, SystemValues] = {}
    for (place, key), *value in over_seeds.itertuples(name=None):
        entries.setdefault(place, (found[place], {}))[1][key] = Value(*value)
    is_lowest_best = any(column.key == order and column.best == "lowest" for column in columns)

    def rank(entry: SystemValues) -> tuple[bool, float]:
        values = entry[1]
        number = values[order].mean if order in values else fmean(value.mean for value in values.values())
        return order not in values, number if is_lowest_best else -number

    return sorted(entries.values(), key=rank)


def _numbers(found: Sequence[MeasuredSystem], columns: Sequence[Column]) -> pd.DataFrame:
    """One line for each number of each record."""
    lines = []
    for place, system in enumerate(found):
        for record in system.records:
            about = {
                "system": place,
                "seed": f"{record.fingerprint} {record.settings.get('seed')}",
                "mark": mark(record),
            }
            low, high = record.metrics.get("interval", (None, None))
            for column in columns:
                if column.dataset == record.dataset and (number := column.number(record)) is not None:
                    interval = {"low": low, "high": high} if column.has_interval else {}
                    lines.append({**about, "column": column.key, "value": number, **interval})
    names = {"system": int, "seed": str, "mark": str, "column": str, "value": float, "low": float, "high": float}
    return pd.DataFrame(lines, columns=list(names)).astype(names).dropna(subset="value")


def _means(numbers: pd.DataFrame, key: str, parts: list[str]) -> pd.DataFrame:
    """The mean of some columns for each seed that has them all; if no seed of a system has, of what there is."""
    used = numbers[numbers["column"].isin(parts)]
    by_seed = used.pivot_table("value", ["system", "seed"], "column").reindex(columns=parts).dropna()
    by_system = used.pivot_table("value", "system", "column").reindex(columns=parts).dropna()
    rest = by_system.drop(by_seed.index.unique("system"))
    rows = pd.concat([by_seed.reset_index(), rest.reset_index()])
    marks = used.groupby("system")["mark"].agg(gravest_mark)
    return rows[["system"]].assign(column=key, value=rows[parts].mean(axis=1), mark=rows["system"].map(marks))


def _mean_of_all(bounds: pd.Series) -> float:
    return float(bounds.mean(skipna=False))


def system_table(
    entries: Sequence[SystemValues],
    columns: Sequence[Column],
    description: str,
    *,
    labels: Mapping[str, Callable[[MeasuredSystem], str]] | None = None,
    published: Sequence[PublishedRow] = (),
    means: Means | None = None,
) -> ReportTable | None:
    """A row for each system: its labels, the settings by which it differs from others, the number of seeds.

    A column that would be empty, or that says 1 of every row, is left out. Published rows follow.
    """
    if not entries:
        return None
    found = [system for system, _ in entries]
    shared = shared_settings(found)
    texts = {
        title: [label(system) for system in found]
        for title, label in (labels or {"System": lambda system: system.name}).items()
    }
    settings = [settings_text(system.settings, shared) for system in found]
    seeds = [_seeds_text(values) for _, values in entries]
    texts |= {"Settings": settings} if any(settings) else {}
    texts |= {"Seeds": seeds} if set(seeds) != {"1"} else {}
    rows = [
        TableRow(own, values, kind=str(system.facts.get("kind", "")))
        for own, (system, values) in zip(zip(*texts.values(), strict=True), entries, strict=True)
    ]
    return ReportTable(
        description=description + (f" All measured rows: {settings_text(shared)}." if shared else ""),
        label_titles=tuple(texts),
        columns=tuple(columns),
        rows=(*rows, *(_published(row, list(texts), means or {}) for row in published)),
        warnings=warnings(found),
        commands=_commands(found),
    )


def _published(row: PublishedRow, titles: Sequence[str], means: Means) -> TableRow:
    values = {key: Value(number, mark=row.mark) for key, number in row.values.items()}
    for mean, keys in means.items():
        if all(key in values for key in keys):
            values[mean] = Value(fmean(values[key].mean for key in keys), mark=row.mark)
    labels = {"System": row.system, "Language model": row.base}
    return TableRow(tuple(labels.get(title, "") for title in titles), values, row.origin)


def systems_as_columns(
    entries: Sequence[SystemValues],
    lines: Sequence[Column],
    description: str,
    label_titles: tuple[str, str],
    published: Mapping[str, Mapping[str, Value]],
) -> ReportTable | None:
    """A column for each system and a row for each of `lines`, labelled by its group and title."""
    if not any(line.key in values for _, values in entries for line in lines):
        return None
    found = [system for system, _ in entries]
    by_column = {str(place): values for place, (_, values) in enumerate(entries)} | dict(published)
    return ReportTable(
        description=description,
        label_titles=label_titles,
        columns=(
            *(Column(str(place), title) for place, title in enumerate(system_titles(found))),
            *(Column(name, f"{name} (published)", is_measured=False) for name in published),
        ),
        rows=tuple(
            TableRow(
                (line.group, line.title),
                {column: values[line.key] for column, values in by_column.items() if line.key in values},
            )
            for line in lines
        ),
        best_along="row",
        warnings=warnings(found),
        commands=_commands(found),
    )


def _commands(found: Sequence[MeasuredSystem]) -> tuple[str, ...]:
    """The commands that made the systems' records, each once."""
    made = (record.command for system in found for record in system.records)
    return tuple(dict.fromkeys(portable(command) for command in made if command))


def _seeds_text(values: Mapping[str, Value]) -> str:
    counts = sorted({value.seeds for value in values.values()})
    return "-".join(dict.fromkeys((str(counts[0]), str(counts[-1]))))
