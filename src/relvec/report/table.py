"""A table before it has a form: numbers with their spread, columns, rows, and which numbers are best."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Literal

OTHER_SIZE = "!"  # follows a number that was measured on a dataset of another size than the paper's
USED_DATASET = "*"  # follows a number of a system that was tuned on, or shown, questions of the dataset itself
NOT_COMPARABLE = (OTHER_SIZE, USED_DATASET)


@dataclass(frozen=True)
class Value:
    """A number: the mean over seeds, their standard deviation, and the 95 % interval of one seed."""

    mean: float
    deviation: float | None = None
    seeds: int = 1
    low: float | None = None
    high: float | None = None
    mark: str = ""

    @classmethod
    def over_seeds(cls, numbers: Sequence[float], intervals: Sequence[Sequence[float]] = (), mark: str = "") -> "Value":
        """The mean and the sample standard deviation; the bounds of the intervals are averaged.

        >>> Value.over_seeds([60, 62], [[55, 65], [57, 67]])
        Value(mean=61.0, deviation=1.4142135623730951, seeds=2, low=56.0, high=66.0, mark='')
        """
        return cls(
            mean=fmean(numbers),
            deviation=stdev(numbers) if len(numbers) > 1 else None,
            seeds=len(numbers),
            low=fmean(low for low, _ in intervals) if intervals else None,
            high=fmean(high for _, high in intervals) if intervals else None,
            mark=mark,
        )

    def text(self, decimals: int = 1) -> str:
        """
        >>> Value(61.04, deviation=1.41, seeds=2).text()
        '61.0 ± 1.4'
        """
        is_shown = self.deviation is not None and (decimals > 0 or self.deviation > 0)  # counts rarely differ
        spread = f" ± {self.deviation:.{decimals}f}" if is_shown else ""
        return f"{self.mean:.{decimals}f}{spread}{self.mark}"


@dataclass(frozen=True)
class Column:
    """A column of numbers: its key in the row's values, its heading, and which end of it is good.

    Neighbours of one `group`, such as the macro and micro F1 of a dataset, share a cell where there is little room.
    """

    key: str
    title: str
    best: Literal["highest", "lowest", "none"] = "highest"
    decimals: int = 1
    is_measured: bool = True
    group: str = ""


@dataclass(frozen=True)
class Row:
    """Labels, and numbers by column; `origin` says who published them, and is empty for what was measured."""

    labels: tuple[str, ...]
    values: dict[str, Value]
    origin: str = ""
    kind: str = ""

    @property
    def is_measured(self) -> bool:
        return not self.origin


@dataclass(frozen=True)
class Table:
    """Rows under columns, with all that a reader needs to judge them.

    The best numbers are sought down each column, or along each row if the systems are the columns.
    """

    name: str
    title: str
    description: str
    label_titles: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    best_along: Literal["column", "row"] = "column"
    checks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def has_origin(self) -> bool:
        """Whether the rows are systems, so that each says where it comes from."""
        return self.best_along == "column"

    def narrowed(self, most: int) -> "Table":
        """The table with the first of its measured columns, if the systems are the columns and there are too many."""
        measured = [column for column in self.columns if column.is_measured]
        if self.best_along == "column" or len(measured) <= most:
            return self
        note = f" Shown are the {most} best of {len(measured)} systems; the CSV file has all."
        kept = tuple(column for column in self.columns if column not in measured[most:])
        return replace(self, columns=kept, description=self.description + note)

    def best(self) -> set[tuple[int, str]]:
        """The places (row number, column key) of the best measured numbers, where there are at least two to compare."""
        by_line: dict[object, list[tuple[float, int, Column]]] = {}
        for number, row in enumerate(self.rows):
            for column in self.columns:
                value = row.values.get(column.key)
                is_measured = row.is_measured and column.is_measured
                if value is None or not is_measured or column.best == "none" or value.mark in NOT_COMPARABLE:
                    continue
                line = column.key if self.best_along == "column" else number
                # What looks the same in the table is equally good.
                shown = round(value.mean, column.decimals) * (1 if column.best == "highest" else -1)
                by_line.setdefault(line, []).append((shown, number, column))
        return {
            (number, column.key)
            for line in by_line.values()
            if len(line) > 1
            for shown, number, column in line
            if shown == max(line, key=lambda entry: entry[0])[0]
        }
