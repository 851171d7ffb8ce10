"""Word pairs: what counts as one, and how they are read from text, files, frames and streams."""

import csv
import gzip
import io
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relvec.errors import RelvecError
from relvec.io.parquet import read_table

Pair = tuple[str, str]
_Row = tuple[Pair, str]

HEAD_COLUMNS = ("head", "h", "subj", "subject", "source", "from", "word1")
TAIL_COLUMNS = ("tail", "t", "obj", "object", "target", "to", "word2")
RELATION_COLUMNS = ("relation", "predicate")


@dataclass(frozen=True)
class Prototype:
    """The relation that several example pairs share; it stands wherever a pair can stand.

    Its vector is the mean of the vectors of its pairs.

    >>> Prototype([("barista", "coffee"), ("baker", "bread")]).reversed().pairs
    (('coffee', 'barista'), ('bread', 'baker'))
    """

    pairs: tuple[Pair, ...]

    def __init__(self, pairs: Iterable[Sequence[str]]) -> None:
        object.__setattr__(self, "pairs", tuple(as_pair(pair) for pair in pairs))
        if not self.pairs:
            raise RelvecError("A prototype needs at least one example pair; give it some.")

    def reversed(self) -> "Prototype":
        return Prototype((tail, head) for head, tail in self.pairs)


Relation = Pair | Prototype


def turned(relation: Relation) -> Relation:
    """The relation from tail to head.

    >>> turned(("Paris", "France"))
    ('France', 'Paris')
    """
    return relation.reversed() if isinstance(relation, Prototype) else (relation[1], relation[0])


def as_word(word: Any, where: str = "") -> str:
    """The word with outer blanks removed and inner runs of blanks made one space.

    >>> as_word("  ice   cream ")
    'ice cream'
    """
    if not isinstance(word, str):
        raise RelvecError(f"{where}{word!r} is not a word; give two strings for each pair.")
    cleaned = " ".join(word.split())
    if not cleaned:
        raise RelvecError(f"{where}a word of the pair is empty; give both words.")
    return _as_utf8(cleaned, where)


def as_label(value: Any, where: str = "") -> str:
    """A name that is no word of a pair, that of a relation for instance, with outer blanks removed; "" for none.

    >>> as_label(" part of "), as_label(7), as_label(None)
    ('part of', '7', '')
    """
    if value is None:
        return ""
    if not isinstance(value, str | int | float):
        raise RelvecError(f"{where}{value!r} is not a name; write a string.")
    return _as_utf8(str(value).strip(), where)


def _as_utf8(text: str, where: str) -> str:
    """The text, unless it has half of a surrogate pair, as JSON may: such a text cannot be written to a file."""
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise RelvecError(f"{where}{text!a} is not UTF-8 text; give it as UTF-8.")
    return text


def as_pair(pair: Any, where: str = "") -> Pair:
    """Check that something is a pair of words.

    >>> as_pair(["Paris", "France "])
    ('Paris', 'France')
    """
    if isinstance(pair, str) or not isinstance(pair, Sequence):
        try:
            pair = None if isinstance(pair, str | dict | set | frozenset) else tuple(pair)  # a set has no first word
        except TypeError:
            pair = None
    if pair is None or len(pair) != 2:
        raise RelvecError(f'{where}expected a pair of words such as ("Paris", "France"); give exactly two strings.')
    return as_word(pair[0], where), as_word(pair[1], where)


def as_relation(item: Any, where: str = "") -> Relation:
    return item if isinstance(item, Prototype) else as_pair(item, where)


def is_single(items: Any) -> bool:
    """Whether this is one pair (or prototype) rather than a collection of them."""
    if isinstance(items, Prototype):
        return True
    return isinstance(items, tuple | list) and len(items) == 2 and all(isinstance(word, str) for word in items)


def as_relations(items: Any) -> list[Relation]:
    """Relations from a list, a generator, an array or a table (columns head and tail, or its only two).

    >>> as_relations(pair for pair in [("a", "b"), ("c", "d")])
    [('a', 'b'), ('c', 'd')]
    """
    return [as_relation(item, where=f"Pair {number}: ") for number, item in enumerate(_rows_of(items), start=1)]


def as_pairs(items: Any) -> list[Pair]:
    """As `as_relations`, where a prototype would not do.

    >>> as_pairs([["a", "b"], ("c", "d")])
    [('a', 'b'), ('c', 'd')]
    """
    return [as_pair(item, where=f"Pair {number}: ") for number, item in enumerate(_rows_of(items), start=1)]


def _rows_of(items: Any) -> Iterable[Any]:
    """The rows of a table of pandas, polars, pyarrow or datasets; what is no table is iterable already."""
    if isinstance(items, str):
        raise RelvecError(f'{items!r} is not a pair; write ("head", "tail"), or a list of such pairs.')
    names = getattr(items, "column_names", getattr(items, "columns", None))
    if names is None:
        return items
    names = list(names)
    columns = [names[column] for column in _frame_columns([str(name) for name in names])]
    if repeated := [str(name) for name in columns if names.count(name) > 1]:
        raise RelvecError(f"The table has several columns {repeated[0]}; keep one of them.")
    words = [items[name] for name in columns]
    return zip(*(column.to_pylist() if hasattr(column, "to_pylist") else column for column in words), strict=True)


def _frame_columns(names: list[str]) -> tuple[int, int]:
    found = named_columns(names)
    if found is None and len(names) == 2:
        found = (0, 1)
    if found is None:
        raise RelvecError(f"The table has columns {', '.join(names)}; name the two word columns head and tail.")
    return found


def named_columns(names: Sequence[str]) -> tuple[int, int] | None:
    """The positions of the head and the tail column, if a header names them."""
    lowered = [name.strip().lower() for name in names]
    for head, tail in zip(HEAD_COLUMNS, TAIL_COLUMNS, strict=True):
        if head in lowered and tail in lowered:
            return lowered.index(head), lowered.index(tail)
    return None


def parse_pair(text: str, where: str = "") -> Pair:
    """Read `head:tail`.

    >>> parse_pair("ice cream:summer")
    ('ice cream', 'summer')
    """
    words = text.split(":")
    if len(words) != 2:
        problem = "has no colon; write head:tail"
        if len(words) > 2:
            problem = "has more than one colon; write head:tail, and words with a colon in a .tsv or .csv file"
        raise RelvecError(f"{where}{text!r} {problem}.")
    return as_word(words[0], f"{where}in {text!r} "), as_word(words[1], f"{where}in {text!r} ")


def read_pairs(path: str | Path) -> list[Pair]:
    """Pairs from a .csv, .tsv, .jsonl or .parquet file, from lines of `head:tail`, or from stdin (`-`).

    A file ending that says nothing (and stdin) is judged by its first line.
    """
    return [pair for pair, _ in read_related_pairs(path)]


def read_related_pairs(path: str | Path) -> list[tuple[Pair, str]]:
    r"""Pairs as `read_pairs` gives them, each with what a column (or JSON key) `relation` says, else with "".

    `predicate` will do for `relation`.

    >>> _ = Path("pairs.tsv").write_text("head\ttail\trelation\nParis\tFrance\tcapital\n")
    >>> read_related_pairs("pairs.tsv")
    [(('Paris', 'France'), 'capital')]
    """
    if Path(path).suffix.lower() == ".parquet":
        return _read_parquet(Path(path))
    name, lines = read_lines(path)
    reader = _READERS.get(Path(path).suffix.lower()) or _reader_for(lines)
    rows = list(reader(lines, name))
    if not rows:
        raise RelvecError(f"{name} holds no pair; write one pair a line.")
    return rows


def read_lines(path: str | Path) -> tuple[str, list[str]]:
    """What to call the file in an error, and its lines; UTF-8, unpacked if the name ends in .gz."""
    name = "stdin" if str(path) == "-" else str(path)
    try:
        raw = sys.stdin.buffer.read() if name == "stdin" else Path(path).read_bytes()
    except OSError as error:
        raise RelvecError(f"Cannot read {name}: {error.strerror}; check the path.") from error
    if name.endswith(".gz"):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise RelvecError(f"{name} is no whole gzip file ({error}); pack or download it again.") from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise RelvecError(f"{name}, line {line}: not UTF-8 text; save the file as UTF-8.") from error
    return name, text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _reader_for(lines: list[str]) -> "_Reader":
    first = next((line for line in lines if line.strip()), "")
    if first.lstrip().startswith(("{", "[")):
        return _read_jsonl
    if "\t" in first:
        return _read_tsv
    if ":" not in first and "," in first:
        return _read_csv
    return _read_colon


def _read_colon(lines: list[str], name: str) -> Iterator[_Row]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield parse_pair(line.strip(), f"{name}, line {number}: "), ""


def _read_csv(lines: list[str], name: str) -> Iterator[_Row]:
    return _read_table(csv_rows(lines, name), name, "comma")


def _read_tsv(lines: list[str], name: str) -> Iterator[_Row]:
    return _read_table(tsv_rows(lines), name, "tab")


def csv_rows(lines: list[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells; a cell may be quoted. `name` is the file's, for errors."""
    rows = csv.reader(io.StringIO("\n".join(lines)), strict=True)  # else an open quote takes all that follows
    start = 1
    try:
        for row in rows:
            yield rows.line_num, row
            start = rows.line_num + 1
    except csv.Error as error:
        raise RelvecError(f"{name}, line {start}: a quote is not closed ({error}); close it, or double it.") from error


def tsv_rows(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells; a cell that is quoted as a whole, as pandas writes one with a quote in it, is unquoted.

    >>> [cells for _, cells in tsv_rows(['"6"" nail"\\tsteel', '"quoted\\tword'])]
    [['6" nail', 'steel'], ['"quoted', 'word']]
    """
    return ((number, [_unquoted(cell) for cell in line.split("\t")]) for number, line in enumerate(lines, start=1))


def tsv_cell(word: str) -> str:
    """The word as `tsv_rows` reads it back; it has no tab, since a word has no blank but the space."""
    doubled = word.replace('"', '""')
    return f'"{doubled}"' if word.startswith('"') else word


def _unquoted(cell: str) -> str:
    is_quoted = len(cell) > 1 and cell.startswith('"') and cell.endswith('"')
    return cell[1:-1].replace('""', '"') if is_quoted else cell


def _read_table(rows: Iterable[tuple[int, list[str]]], name: str, separator: str) -> Iterator[_Row]:
    columns: tuple[int, int] | None = None
    relation: int | None = None
    width = 2
    seen_first = False
    for number, row in rows:
        where = f"{name}, line {number}: "
        if not any(cell.strip() for cell in row):
            continue
        if not seen_first:
            seen_first = True
            columns = named_columns(row)
            if columns is not None:
                width = len(row)
                relation = _relation_column(row)
                continue
        if len(row) != width:
            fix = f"separate two words by one {separator}, or name the columns head and tail in a first line"
            raise RelvecError(f"{where}{len(row)} columns where {width} are expected; {fix}.")
        head, tail = columns or (0, 1)
        pair = as_word(row[head], where), as_word(row[tail], where)
        yield pair, "" if relation is None else row[relation].strip()


def _relation_column(names: Sequence[str]) -> int | None:
    lowered = [name.strip().lower() for name in names]
    return next((lowered.index(name) for name in RELATION_COLUMNS if name in lowered), None)


def _read_parquet(path: Path) -> list[_Row]:
    table = read_table(path)
    pairs = [as_pair(row, f"{path}, row {number}: ") for number, row in enumerate(_rows_of(table), start=1)]
    if not pairs:
        raise RelvecError(f"{path} holds no pair; write one pair a row.")
    column = _relation_column(table.column_names)
    labels = [None] * len(pairs) if column is None else table.column(column).to_pylist()
    return [
        (pair, as_label(label, f"{path}, row {number}: "))
        for number, (pair, label) in enumerate(zip(pairs, labels, strict=True), start=1)
    ]


def _read_jsonl(lines: list[str], name: str) -> Iterator[_Row]:
    for where, row in json_rows(lines, name):
        relation = None
        if isinstance(row, dict):
            keys = list(row)
            columns, labels = named_columns(keys), _relation_column(keys)
            relation = None if labels is None else row[keys[labels]]
            if columns is None:
                raise RelvecError(f'{where}no "head" and "tail"; write {{"head": "Paris", "tail": "France"}}.')
            row = [row[keys[column]] for column in columns]
        yield as_pair(row, where), as_label(relation, where)


def json_rows(lines: list[str], name: str) -> Iterator[tuple[str, Any]]:
    """Where each line is, for errors, and what its JSON holds; empty lines are left out."""
    for number, line in enumerate(lines, start=1):
        where = f"{name}, line {number}: "
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise RelvecError(f"{where}not JSON ({error.msg}); write one object or list a line.") from error
        except (ValueError, RecursionError) as error:
            raise RelvecError(f"{where}a number too long or brackets too deep to be read; shorten the line.") from error
        yield where, row


_Reader = Callable[[list[str], str], Iterator[_Row]]
_READERS: dict[str, _Reader] = {
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
}
