"""The one reader of tables: .csv, .tsv, .jsonl, .parquet, lines of `head:tail`, stdin (`-`), and data frames.

Every row has its place, for error messages, and its values by lower-cased column name. A table of two columns without
such names holds heads and tails. Text files may be gzipped. A file ending that says nothing, and stdin, are judged by
the first line.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from relvec.errors import RelvecError, counted, errors_as, needed_for
from relvec.io.files import expanded, read_lines, unpacked
from relvec.pairs import (
    Pair,
    as_pair,
    as_word,
    column_names,
    column_values,
    is_missing,
    pair_columns,
    parse_pair,
    table_columns,
)

RELATION_COLUMNS = ("relation", "predicate")

Part = Literal["train", "valid", "test"]
"""The parts of a dataset."""

_PARTS: dict[str, Part] = {"train": "train", "test": "test"}
_PARTS.update(dict.fromkeys(("valid", "validation", "val", "dev"), "valid"))


class Row(NamedTuple):
    """`where` starts the errors about it, as in `pairs.csv, line 3: `; a row that cannot be read has its `problem`."""

    where: str
    values: dict[str, Any]
    problem: str = ""

    @property
    def number(self) -> int:
        """The line, or the row, that `where` names."""
        return int(self.where.removesuffix(": ").rpartition(" ")[2])

    def pair(self) -> Pair:
        found = pair_columns(self.values)
        if found is None:
            names = ", ".join(self.values)
            raise RelvecError(f"{self.where}no head and tail among {names}; name the two word columns head and tail.")
        return as_word(self.values[found[0]], self.where), as_word(self.values[found[1]], self.where)

    def label(self, *names: str) -> str:
        """The text in the first of these columns that is there; "" for none, and for a missing value."""
        value = next((self.values[name] for name in names if name in self.values), "")
        if isinstance(value, dict | list):
            raise RelvecError(f"{self.where}{names[0]}: {value!r} is not a name; write a string.")
        if not isinstance(value, str):
            value = "" if is_missing(value) else str(value)
        return " ".join(value.split())

    def relation(self) -> str:
        return self.label(*RELATION_COLUMNS)

    def items(self, name: str, fix: str) -> list[Any]:
        """The list in a column."""
        value = self.values.get(name)
        if value is None or isinstance(value, str) or not isinstance(value, Iterable):
            raise RelvecError(f"{self.where}no list {name!r}; {fix}.")
        return list(value)


def read_rows(source: Any, of: str = "pair") -> Iterator[Row]:
    """The rows of a file or a data frame, at least one; `of` says in errors what a row should be."""
    columns = None if isinstance(source, str | Path) else table_columns(source)
    if columns is not None:
        name, rows = "The table", table_rows(columns, "Row")
    elif kind_of(source) == ".parquet":
        name = str(source)
        rows = table_rows(table_columns(read_parquet(expanded(source))) or {}, f"{name}, row")
    else:
        name, lines = read_lines(source)
        rows = text_rows(lines, name)
    number = 0
    for number, row in enumerate(rows, start=1):  # noqa: B007 - counted
        if row.problem:
            raise RelvecError(f"{row.where}{row.problem}")
        yield row
    if not number:
        raise RelvecError(f"{name} holds no {of}; write one a line.")


def text_rows(lines: list[str], name: str) -> Iterator[Row]:
    """The rows of a text file, also those with a problem.

    >>> [row.problem for row in text_rows(["cup:tea", "cup"], "pairs.txt")]
    ['', "'cup' has no colon; write head:tail."]
    """
    return (_READERS.get(kind_of(name)) or _judged(lines))(lines, name)


def read_pairs(source: Any) -> list[Pair]:
    """The pairs of a table."""
    return [row.pair() for row in read_rows(source)]


def read_related_pairs(source: Any) -> list[tuple[Pair, str]]:
    r"""Pairs, each with the value of the column `relation` (or `predicate`), else with "".

    >>> _ = Path("pairs.tsv").write_text("head\ttail\trelation\nParis\tFrance\tcapital\n")
    >>> read_related_pairs("pairs.tsv")
    [(('Paris', 'France'), 'capital')]
    """
    return [(row.pair(), row.relation()) for row in read_rows(source)]


def read_pairs_and_columns(source: Any) -> tuple[list[Pair], dict[str, list[Any]]]:
    r"""Pairs, and what else the table says of each, such as an id, by lower-cased column name.

    A column that a file of vectors has for something else, such as `vectors`, is left out.

    >>> _ = Path("pairs.tsv").write_text("id\thead\ttail\n7\tParis\tFrance\n")
    >>> read_pairs_and_columns("pairs.tsv")
    ([('Paris', 'France')], {'id': ['7']})
    """
    rows = list(read_rows(source))
    words = {"head", "tail", "vector", "vectors", *(name for row in rows for name in pair_columns(row.values) or ())}
    names = dict.fromkeys(name for row in rows for name in row.values if name not in words)
    return [row.pair() for row in rows], {name: _of_one_type([row.values.get(name) for row in rows]) for name in names}


def _of_one_type(values: list[Any]) -> list[Any]:
    """Numbers as they are; texts, and values of several kinds, as texts."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) == 1 and kinds <= {int, float, bool}:
        return values
    return ["" if value is None else str(value) for value in values]


def kind_of(path: str | Path) -> str:
    """The file ending that tells how to read it.

    >>> kind_of("pairs.CSV.gz")
    '.csv'
    """
    return Path(Path(path).name.removesuffix(".gz")).suffix.lower()


def part_of(path: Path) -> Part | None:
    """The part of a dataset that a file name tells, if any.

    >>> part_of(Path("semeval-dev.jsonl")), part_of(Path("pairs.csv"))
    ('valid', None)
    """
    return next((_PARTS[word] for word in re.split("[^a-z]+", path.name.lower()) if word in _PARTS), None)


def tsv_cell(word: str) -> str:
    """The word as it is read back from a .tsv file; a word has no tab."""
    doubled = word.replace('"', '""')
    return f'"{doubled}"' if word.startswith('"') else word


def _judged(lines: list[str]) -> "_Reader":
    first = next((line for line in lines if line.strip()), "")
    if first.lstrip().startswith(("{", "[")):
        return _read_jsonl
    if "\t" in first:
        return _read_tsv
    return _read_csv if "," in first and ":" not in first else _read_colon


def _read_colon(lines: list[str], name: str) -> Iterator[Row]:
    for where, line in _filled(lines, name):
        try:
            yield _words(where, parse_pair(line.strip()))
        except RelvecError as error:
            yield Row(where, {}, str(error))


def _read_csv(lines: list[str], name: str) -> Iterator[Row]:
    return _text_rows(_csv_cells(lines, name), name, "comma")


def _csv_cells(lines: list[str], name: str) -> Iterator[tuple[int, list[str]]]:
    # Strict, or an open quote takes all that follows. A quote may follow a space: words are stripped anyway.
    rows = csv.reader(io.StringIO("\n".join(lines)), strict=True, skipinitialspace=True)
    start = 1
    try:
        for row in rows:
            yield rows.line_num, row
            start = rows.line_num + 1
    except csv.Error as error:
        problem = f"{name}, line {start}: a quote is not closed"
        raise RelvecError(f"{problem} ({error}); close it, or double a quote within a cell.") from error


def _read_tsv(lines: list[str], name: str) -> Iterator[Row]:
    """A cell that is quoted as a whole, as pandas writes one with a quote in it, is unquoted."""
    split = (list(map(_unquoted, line.split("\t"))) if '"' in line else line.split("\t") for line in lines)
    return _text_rows(enumerate(split, start=1), name, "tab")


def _unquoted(cell: str) -> str:
    is_quoted = len(cell) > 1 and cell.startswith('"') and cell.endswith('"')
    return cell[1:-1].replace('""', '"') if is_quoted else cell


def _text_rows(rows: Iterable[tuple[int, list[str]]], name: str, separator: str) -> Iterator[Row]:
    names: list[str] = []
    for number, cells in rows:
        where = f"{name}, line {number}: "
        if not any(cell.strip() for cell in cells):
            continue
        if not names:
            is_header = pair_columns([cell.strip().lower() for cell in cells]) is not None
            names = column_names(cells, where) if is_header else ["head", "tail"]
            if is_header:
                continue
            if len(cells) > len(names):  # it may be a header; who asks for its pair is told the columns
                yield Row(where, dict.fromkeys(cell.strip() for cell in cells))
                continue
        if len(cells) != len(names):
            fix = f"separate two words by one {separator}, or name the columns head and tail in a first line"
            yield Row(where, {}, f"{counted(len(cells), 'column')} where {len(names)} are expected; {fix}.")
            continue
        yield Row(where, dict(zip(names, cells, strict=True)))


def _read_jsonl(lines: list[str], name: str) -> Iterator[Row]:
    for where, line in _filled(lines, name):
        try:
            found = _json(line)
            if isinstance(found, dict):
                yield Row(where, {key.strip().lower(): value for key, value in found.items()})
            else:
                yield _words(where, as_pair(found))
        except RelvecError as error:
            yield Row(where, {}, str(error))


def json_rows(lines: list[str], name: str) -> Iterator[tuple[str, Any]]:
    """The place of each line of JSON Lines, for error messages, and what it holds; empty lines are skipped."""
    for where, line in _filled(lines, name):
        yield where, _json(line, where)


def _filled(lines: list[str], name: str) -> Iterator[tuple[str, str]]:
    return ((f"{name}, line {number}: ", line) for number, line in enumerate(lines, start=1) if line.strip())


def _json(line: str, where: str = "") -> Any:
    try:
        return json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        reason = getattr(error, "msg", "nested too deep")
        raise RelvecError(f"{where}not JSON ({reason}); write one object or list a line.") from error


def _words(where: str, pair: Pair) -> Row:
    return Row(where, {"head": pair[0], "tail": pair[1]})


def table_rows(columns: dict[str, Any], where: str, first: int = 1) -> Iterator[Row]:
    """The rows of columns by name, counted from `first`; vectors, neither words nor labels, are left out."""
    kept = {name: column_values(column) for name, column in columns.items() if not is_vectors(column)}
    for number, values in enumerate(zip(*kept.values(), strict=True), start=first):
        yield Row(f"{where} {number}: ", dict(zip(kept, values, strict=True)))


def pyarrow() -> tuple[Any, Any]:
    """The modules `pyarrow` and `pyarrow.parquet`."""
    with needed_for("A parquet file"):
        import pyarrow
        import pyarrow.parquet
    return pyarrow, pyarrow.parquet


def read_parquet(path: Path) -> Any:
    """The file as a `pyarrow.Table`."""
    arrow, parquet = pyarrow()
    with unpacked(path):
        pass  # it is there and can be read: what is wrong from here on is in the file
    with errors_as(f"{path} is not a complete parquet file", "write it again", arrow.ArrowException, OSError):
        return parquet.read_table(path, page_checksum_verification=True)


def is_vectors(column: Any) -> bool:
    """Whether this is a column of pyarrow that holds lists of numbers."""
    kind = getattr(getattr(column, "type", None), "value_type", None)
    return str(kind) in ("halffloat", "float", "double")


_Reader = Callable[[list[str], str], Iterator[Row]]
_READERS: dict[str, _Reader] = {
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".csv": _read_csv,
    ".tsv": _read_tsv,
}
TABLES = (*_READERS, ".parquet")
