"""Is a measured number the published one, but for the noise of a seed?

The paper has one run of each system and no deviation. Two runs of one system that differ in the seed alone differ by
chance. Taken for the standard deviation of a run is the standard error of its number on that many questions,

    sd = 100 sqrt(p (1 - p) / n),

2.4 points on SAT, where the authors later saw about 2 over their seeds. A difference of more than 1.96 sqrt(2) sd
happens to one pair of equal systems in twenty.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean
from typing import Any

from relvec.evaluation.records import Record
from relvec.report.published import PublishedRow, published

TWO_RUNS = 1.96 * sqrt(2)


@dataclass(frozen=True)
class Verdict:
    """A cell of a published table beside the mean of what was measured; `noise` is the largest difference by chance."""

    table: str
    system: str
    cell: str
    published: float
    measured: float
    noise: float

    @property
    def is_within(self) -> bool:
        return abs(self.measured - self.published) <= self.noise


@dataclass(frozen=True)
class Cell:
    """A measured number (%) and its standard deviation."""

    value: float
    deviation: float


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    """One for each published cell whose system was measured here under the name that it has there.

    >>> fields = {"task": "analogy", "dataset": "u2", "part": "test", "fingerprint": "a1", "settings": {}}
    >>> metrics = {"accuracy": 64.0, "questions": 228}
    >>> record = Record(system="RelBERT, manual prompt", metrics=metrics, **fields)
    >>> [(each.cell, each.published, each.is_within) for each in verdicts([record])]
    [('u2', 66.2, True)]
    """
    measured: dict[tuple[str, str], dict[str, list[Cell]]] = {}
    for record in records:
        if record.part == "test" and record.settings.get("scoring", "forward") == "forward":
            for kind, key, cell in _cells(record):
                measured.setdefault((kind, record.system), {}).setdefault(key, []).append(cell)
    return [
        Verdict(_table(row), row.system, key, number, fmean(cell.value for cell in cells), _noise(cells))
        for kind, names in _PUBLISHED.items()
        for name in names
        for row in published(name)
        for key, number in row.values.items()
        if (cells := measured.get((kind, row.system), {}).get(key))
    ]


_PUBLISHED: Mapping[str, tuple[str, ...]] = {
    "analogy": ("analogy", "analogy_language_models"),
    "categories": ("categories",),
    "bats_relations": ("bats_relations",),
    "classification": ("classification",),
    "per_class": ("per_class",),
}
"""The published tables that hold cells of each kind."""


def _table(row: PublishedRow) -> str:
    return row.source.rpartition(", ")[2].lower()


def _noise(cells: Sequence[Cell]) -> float:
    """The mean over several seeds is steadier than one of them; the published run stays one."""
    deviation = fmean(cell.deviation for cell in cells)
    return TWO_RUNS * deviation * sqrt((1 + 1 / len(cells)) / 2)


def _cells(record: Record) -> Iterator[tuple[str, str, Cell]]:
    """The numbers of a record by kind of table and by key, as published tables name them."""
    metrics: Mapping[str, Any] = record.metrics
    if record.task == "analogy":
        yield "analogy", record.dataset, _share(metrics["accuracy"], metrics["questions"])
        for name, found in metrics.get("by_category", {}).items():
            yield "categories", f"{record.dataset}/{name}", _share(found["accuracy"], found["questions"])
        if record.dataset == "bats":
            groups = {key.partition("/")[2]: key for row in published("bats_relations") for key in row.values}
            for name, found in metrics.get("by_relation", {}).items():
                if name in groups:
                    yield "bats_relations", groups[name], _share(found["accuracy"], found["questions"])
    elif record.task == "classification" and record.settings.get("classifier", "mlp") == "mlp":
        # A class may be predicted though no pair of the test part has it.
        tested = {name: found for name, found in metrics["by_class"].items() if found["pairs"]}
        classes = {name: _share(found["f1"], found["pairs"]) for name, found in tested.items()}
        pairs = sum(found["pairs"] for found in tested.values())
        # The classes' numbers are nearly independent, so their mean varies less than each.
        macro = sqrt(sum(cell.deviation**2 for cell in classes.values())) / len(classes)
        averages = {"macro": Cell(metrics["macro_f1"], macro), "micro": _share(metrics["micro_f1"], pairs)}
        for kind, cells in (("classification", averages), ("per_class", classes | averages)):
            for name, cell in cells.items():
                yield kind, f"{record.dataset}/{name}", cell


def _share(percent: float, count: int) -> Cell:
    """
    >>> _share(69.5, 374)
    Cell(value=69.5, deviation=2.38...)
    """
    share = min(max(percent / 100, 1 / (2 * count)), 1 - 1 / (2 * count))  # 0 and 100 % are not without noise
    return Cell(percent, 100 * sqrt(share * (1 - share) / count))
