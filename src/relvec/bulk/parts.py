"""Input files as parts: runs of rows, each of which becomes one shard."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from relvec.errors import RelvecError
from relvec.io.addresses import opened, read_whole
from relvec.io.files import lines_of
from relvec.io.tables import Row, is_vectors, kind_of, pyarrow, table_rows, text_rows
from relvec.pairs import Pair, pair_columns, table_columns

VECTOR = "vector"  # the column that a shard has besides those of its part
ROWS_PER_SHARD = 16_384
"""Minutes of work on one core, and 50 MB of vectors of 768 dimensions."""


@dataclass(frozen=True)
class Part:
    """The rows from `start` to `stop` of a file, counted from 0."""

    number: int
    file: str
    start: int
    stop: int

    @property
    def output(self) -> str:
        """The name of its shard."""
        return f"part-{self.number:05d}.parquet"


class Problem(NamedTuple):
    """A row that is left out: its line in a text file or its row in a parquet file, both counted from 1, and why."""

    row: int
    problem: str


class PartRows(NamedTuple):
    """The pairs of a part, their further columns (of pyarrow), the row of each pair, and the rows that are no pairs."""

    pairs: list[Pair]
    columns: dict[str, Any]
    rows: list[int]
    problems: list[Problem]


def split_into_parts(sizes: Sequence[tuple[str, int]], shards: int | None = None) -> list[Part]:
    """Files with their numbers of rows, cut evenly; with `shards`, into about so many parts. None spans two files.

    >>> [(part.file, part.start, part.stop) for part in split_into_parts([("a.csv", 5), ("b.csv", 2)], shards=3)]
    [('a.csv', 0, 2), ('a.csv', 2, 5), ('b.csv', 0, 2)]
    """
    total = sum(rows for _, rows in sizes)
    most = ROWS_PER_SHARD if shards is None else max(1, -(-total // shards))
    bounds = []
    for file, rows in sizes:
        count = -(-rows // most)
        bounds += [(file, rows * each // count, rows * (each + 1) // count) for each in range(count)]
    return [Part(number, *bound) for number, bound in enumerate(bounds)]


def count_rows(file: str) -> int:
    """How many rows a file has, bad ones included; of a parquet file only the end is read."""
    if kind_of(file) == ".parquet":
        with _parquet(file) as found:
            return int(found.metadata.num_rows)
    return sum(1 for _ in _text(file))


def read_part(part: Part) -> PartRows:
    """The pairs of a part; columns of parquet keep their types, those of text files are text."""
    arrow, _ = pyarrow()
    found = PartRows([], {}, [], [])
    if kind_of(part.file) == ".parquet":
        with _parquet(part.file) as file:
            columns = table_columns(_slice(file, part.start, part.stop)) or {}
        words = pair_columns(columns)
        if words is None:
            problem = f"{part.file} has the columns {', '.join(columns)}"
            raise RelvecError(f"{problem}; name the two word columns head and tail.")
        pairs = table_rows({name: columns.pop(name) for name in words}, f"{part.file}, row", part.start + 1)
        taken = arrow.array([at for at, row in enumerate(pairs) if _taken(found, row)], arrow.int64())
        more = {name: column for name, column in columns.items() if name != VECTOR and not is_vectors(column)}
        found.columns.update({name: column.take(taken).combine_chunks() for name, column in more.items()})
        return found
    kept = [row for row in islice(_text(part.file), part.start, part.stop) if _taken(found, row)]
    names = dict.fromkeys(name for row in kept for name in row.values)
    for name in names:
        if name not in (*(pair_columns(names) or ()), VECTOR):
            found.columns[name] = arrow.array([_as_text(row.values.get(name)) for row in kept], arrow.string())
    return found


def _taken(found: PartRows, row: Row) -> bool:
    """Add the pair of a row, or the problem with it."""
    try:
        if row.problem:
            raise RelvecError(row.problem)
        found.pairs.append(row._replace(where="").pair())
    except RelvecError as error:
        found.problems.append(Problem(row.number, str(error)))
        return False
    found.rows.append(row.number)
    return True


def _slice(file: Any, start: int, stop: int) -> Any:
    """Some rows of a parquet file, from the row groups that hold them."""
    first = before = 0
    groups: list[int] = []
    for group in range(file.metadata.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if first < stop and first + rows > start:
            before = before if groups else first
            groups.append(group)
        first += rows
    return file.read_row_groups(groups).slice(start - before, stop - start)


def _text(file: str) -> Iterator[Row]:
    return text_rows(lines_of(read_whole(file), file), file)


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@contextmanager
def _parquet(address: str) -> Iterator[Any]:
    """A parquet file of any filesystem, open."""
    _, parquet = pyarrow()
    with opened(address) as file:
        yield parquet.ParquetFile(file)
