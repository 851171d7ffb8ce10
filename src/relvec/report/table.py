"""A table before it has a form: numbers with their spread, columns, rows, and which numbers are best."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Literal

from relvec.evaluation.records import Record

OTHER_SIZE = "!"  # follows a number that was measured on a dataset of another size than the paper's
USED_DATASET = "*"  # follows a number of a system that was tuned on, or shown, questions of the dataset itself
NOT_COMPARABLE = (OTHER_SIZE, USED_DATASET)

Number = Callable[[Record], float | None]


@dataclass(frozen=True)
class Value:
    """A number: the mean over seeds, their standard deviation, and the 95 % interval of one seed; nan if unknown."""

    mean: float
    deviation: float = nan
    seeds: int = 1
    low: float = nan
    high: float = nan
    mark: str = ""

    def text(self, decimals: int = 1) -> str:
        """
        >>> Value(61.04, deviation=1.41, seeds=2).text()
        '61.0 ± 1.4'
        """
        is_shown = not isnan(self.deviation) and (decimals > 0 or self.deviation > 0)  # counts rarely differ
        spread = f" ± {self.deviation:.{decimals}f}" if is_shown else ""
        return f"{self.mean:.{decimals}f}{spread}{self.mark}"


@dataclass(frozen=True)
class Column:
    """A column: its key in the row's values, its heading, and where a record of `dataset` has the number.

    Neighbours of one `group`, such as the macro and micro F1 of a dataset, share a cell of text. `has_interval` says
    that the interval of a record belongs to this number.
    """

    key: str
    title: str
    dataset: str = ""
    number: Number = lambda _: None
    best: Literal["highest", "lowest", "none"] = "highest"
    decimals: int = 1
    group: str = ""
    has_interval: bool = False
    is_measured: bool = True


@dataclass(frozen=True)
class TableRow:
    """Labels, and numbers by column; `origin` says who published them, and is empty for what was measured."""

    labels: tuple[str, ...]
    values: dict[str, Value]
    origin: str = ""
    kind: str = ""

    @property
    def is_measured(self) -> bool:
        return not self.origin


@dataclass(frozen=True)
class ReportTable:
    """Rows under columns, with all that a reader needs to judge them.

    The best numbers are sought down each column, or along each row if the systems are the columns.
    """

    description: str
    label_titles: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    best_along: Literal["column", "row"] = "column"
    warnings: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    name: str = ""
    title: str = ""

    @property
    def has_origin(self) -> bool:
        """Whether the rows are systems, so that each says where it comes from."""
        return self.best_along == "column"

    def narrowed(self, most: int) -> "ReportTable":
        """The table with the first of its measured columns, if the systems are the columns and there are too many."""
        measured = [column for column in self.columns if column.is_measured]
        if self.best_along == "column" or len(measured) <= most:
            return self
        note = f" Shown are the {most} best of {len(measured)} systems; the CSV file has all."
        kept = tuple(column for column in self.columns if column not in measured[most:])
        return replace(self, columns=kept, description=self.description + note)

    def best(self) -> set[tuple[int, str]]:
        """The places (row number, column key) of the best measured numbers, where there are at least two to compare."""
        by_line: dict[object, list[tuple[float, int, str]]] = {}
        for number, row in enumerate(self.rows):
            for column in self.columns:
                value = row.values.get(column.key)
                is_measured = row.is_measured and column.is_measured
                if value is None or not is_measured or column.best == "none" or value.mark in NOT_COMPARABLE:
                    continue
                line = column.key if self.best_along == "column" else number
                # What looks the same in the table is equally good.
                shown = round(value.mean, column.decimals) * (1 if column.best == "highest" else -1)
                by_line.setdefault(line, []).append((shown, number, column.key))
        return {
            (number, key)
            for line in by_line.values()
            if len(line) > 1
            for shown, number, key in line
            if shown == max(line)[0]
        }
