"""What all tables of systems share: labels, order, and the published rows beneath."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from relvec.report.measured import Measured
from relvec.report.published import PublishedRow
from relvec.report.sizes import title_of
from relvec.report.table import Row, Value

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
        """Published rows under the same titles, equal ones once; `means` are the columns that average others."""
        rows: list[Row] = []
        for row in published:
            values = {key: Value(number, mark=row.mark) for key, number in row.values.items()}
            for mean, keys in (means or {}).items():
                if all(key in values for key in keys):
                    values[mean] = Value(fmean(values[key].mean for key in keys), mark=row.mark)
            if all(values != earlier.values for earlier in rows):
                labels = {"System": row.system, "Language model": row.base}
                rows.append(Row(tuple(labels.get(title, "") for title in self.titles), values, row.origin))
        return tuple(rows)


def labelled(entries: Sequence[Entry], shown: Mapping[str, str]) -> Labelled:
    """The entries as rows. `shown` names the setting of each label column that follows the system.

    The other settings get a column if they differ, and the number of seeds if a row has more than one.
    """
    others = [system.other_settings(shown.values()) for system, _ in entries]
    counts = [_seeds(values.values()) for _, values in entries]
    has_settings, has_seeds = len(set(others)) > 1, any(count != "1" for count in counts)
    rows = []
    for (system, values), other, count in zip(entries, others, counts, strict=True):
        labels = [system.system, *(system.setting(name) for name in shown.values())]
        labels += ([other] if has_settings else []) + ([count] if has_seeds else [])
        rows.append(Row(tuple(labels), values, kind=str(system.facts.get("kind", ""))))
    return Labelled(
        ("System", *shown, *(["Settings"] if has_settings else []), *(["Seeds"] if has_seeds else [])),
        tuple(rows),
        "" if has_settings or not others[0] else f" All measured rows have {others[0]}.",
    )


def column_titles(systems: Sequence[Measured]) -> list[str]:
    """A heading for each system, with the settings by which it differs from others of its name.

    >>> column_titles([Measured("a", {"scoring": way, "classes": 2}, {}) for way in ("forward", "reverse")])
    ['a (scoring: forward)', 'a (scoring: reverse)']
    """
    titles = []
    for system in systems:
        same = [other.settings for other in systems if other.system == system.system]
        agreed = [name for name in system.settings if all(other.get(name) == system.settings[name] for other in same)]
        settings = system.other_settings(agreed)
        titles.append(f"{system.system} ({settings})" if settings else system.system)
    return titles


def dataset_titles(
    systems: Sequence[Measured], registry: Mapping[str, Any], *, only_measured: bool = False
) -> dict[str, str]:
    """The titles of the registry's datasets in its order, then those of other datasets that were measured."""
    found = {record.dataset: title_of(record) for system in systems for record in system.records}
    known = {name: dataset.title for name, dataset in registry.items() if not only_measured or name in found}
    return known | {name: found[name] for name in sorted(found.keys() - known.keys())}


def commands(systems: Sequence[Measured]) -> tuple[str, ...]:
    """The commands that made the systems' records, each once."""
    made = (record.command for system in systems for record in system.records)
    return tuple(dict.fromkeys(command for command in made if command))


def _seeds(values: Collection[Value]) -> str:
    counts = sorted({value.seeds for value in values})
    return "-".join(dict.fromkeys((str(counts[0]), str(counts[-1]))))
