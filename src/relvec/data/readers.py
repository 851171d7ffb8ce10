"""Rated pairs and ready relations from files, folders and data frames.

| what | how it looks |
| --- | --- |
| a table (`.jsonl`, `.csv`, `.tsv`, `.parquet`, a frame) | `relation`, `head`, `tail`, perhaps `category` and `score` |
| the authors' hub datasets, `.jsonl` | `{"relation_type": "8d", "positives": [[head, tail], ...], "negatives": ...}` |
| ours, `.toml` | `category`, and `[[relation]]` with `name`, `definition`, `sentence`, `positives`, `negatives` |
| SemEval-2012 Task 2 as distributed | a folder of `Phase2Answers-1a.txt` with lines `50.0 "head:tail"` |

File names such as `train.jsonl`, `valid.jsonl` (or `validation`, `val`, `dev`) and `test.jsonl` tell the parts of a
dataset. In a folder that has another part, the test part is left out, and the pairs of validation files are held out; a
relation that only these have is left out. A folder holds files of one kind.
"""

import math
import re
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from relvec.data.rated import BOTTOM, TOP, RatedPair, RatedRelation, joined, select
from relvec.errors import LeftOutWarning, RelvecError
from relvec.io.files import expanded, read_lines
from relvec.io.tables import RELATION_COLUMNS, TABLES, Part, Row, kind_of, part_of, read_rows
from relvec.pairs import Pair, as_pair, parse_pair

KINDS = (".toml", *TABLES)

_SEMEVAL_FILE = re.compile(r"Phase2Answers\w*-(\d+)([a-z])\.txt")
_SEMEVAL_LINE = re.compile(r'(\S+)\s+"(.*)"')
_SEMEVAL_ID = re.compile(r"(\d+)[a-z]")

_Item = RatedPair | RatedRelation


def read_rated(
    source: Any, *, top: int = TOP, bottom: int = BOTTOM, threshold: float | None = None
) -> list[RatedRelation]:
    """Relations from a file, a folder or a frame; `top`, `bottom` and `threshold` choose among rated pairs only."""
    if not isinstance(source, str | Path):
        rows = (_rated_pair(row) for row in read_rows(source, "rated pair"))
        return select(rows, top=top, bottom=bottom, threshold=threshold)
    files = _files(expanded(source))
    trained, held_out = ([item for file in part for item in _items(file)] for part in _parts(files))
    relations = select(_rated_pairs(trained), _rated_pairs(held_out), top=top, bottom=bottom, threshold=threshold)
    groups = [item for item in trained if isinstance(item, RatedRelation)]
    # In TOML a name used twice is a mistake, which must stay visible.
    relations += groups if kind_of(files[0]) == ".toml" else _merge(groups, held_out)
    _warn_left_out(relations, held_out)
    return relations


def _rated_pairs(items: Iterable[_Item]) -> Iterator[RatedPair]:
    return (item for item in items if isinstance(item, RatedPair))


def _merge(trained: Iterable[RatedRelation], held_out: Iterable[_Item]) -> list[RatedRelation]:
    """One relation of each name: the hub's datasets keep its training and its validation pairs in two files."""
    validation = _by_name(item for item in held_out if isinstance(item, RatedRelation))
    return [
        joined(relation, validation[name]) if name in validation else relation
        for name, relation in _by_name(trained).items()
    ]


def _by_name(relations: Iterable[RatedRelation]) -> dict[str, RatedRelation]:
    found: dict[str, RatedRelation] = {}
    for relation in relations:
        before = found.get(relation.name)
        found[relation.name] = relation if before is None else replace(joined(relation, before), held_out=())
    return found


def _warn_left_out(relations: Iterable[RatedRelation], held_out: Iterable[_Item]) -> None:
    """A relation of the validation files alone cannot be trained on, and must not be."""
    names = dict.fromkeys(item.relation if isinstance(item, RatedPair) else item.name for item in held_out)
    lacking = list(names.keys() - {relation.name for relation in relations})
    if lacking:
        problem = f"Validation files have relations without training pairs ({len(lacking)}, such as {min(lacking)!r})"
        warnings.warn(LeftOutWarning(f"{problem}; they are left out unless a training file has them."), stacklevel=3)


def _parts(files: list[Path]) -> tuple[list[Path], list[Path]]:
    """Files to train on, and files whose pairs are held out: those of a validation part, if there are others."""
    held_out = [file for file in files if _part(file) == "valid"]
    trained = [file for file in files if file not in held_out]
    return (trained, held_out) if trained else (files, [])


def _part(file: Path) -> Part | None:
    """The part that a file's name tells; our own `.toml` files are named after what they hold."""
    return None if kind_of(file) == ".toml" else part_of(file)


def _files(path: Path) -> list[Path]:
    """The file itself, or the files below a folder that are of its one kind."""
    if not path.is_dir():
        return [path]
    below = sorted(file for file in path.rglob("*") if file.is_file())
    semeval = [file for file in below if _SEMEVAL_FILE.fullmatch(file.name)]
    # The distribution keeps the answers of the raters beside the scores that were made of them.
    scaled = [file for file in semeval if file.parent.name == "Phase2AnswersScaled"]
    if semeval:
        return sorted(scaled or semeval, key=_semeval_place)
    files = [file for file in below if kind_of(file) in KINDS]
    kinds = sorted({kind_of(file) for file in files})
    if len(kinds) != 1:
        found = " and ".join(kinds) or "no rated pairs"
        known = f"{', '.join(KINDS)} or Phase2Answers-*.txt"
        raise RelvecError(f"The folder {path} holds {found}; keep files of one kind in it ({known}), or name a file.")
    parts = {_part(file) for file in files}
    is_divided = "train" in parts or "valid" in parts
    return [file for file in files if not (is_divided and _part(file) == "test")]


def _items(file: Path) -> Iterator[_Item]:
    if _SEMEVAL_FILE.fullmatch(file.name):
        return _read_semeval(file)
    if kind_of(file) == ".toml":
        return _read_toml(file)
    return (_group(row) if "positives" in row.values else _rated_pair(row) for row in read_rows(file, "rated pair"))


def _rated_pair(row: Row) -> RatedPair:
    pair, relation = row.pair(), _relation_name(row, *RELATION_COLUMNS)
    return RatedPair(relation, row.label("category"), pair, _score(row.values.get("score", 1), row.where), row.where)


def _relation_name(row: Row, *columns: str) -> str:
    name = row.label(*columns)
    if not name:
        raise RelvecError(f"{row.where}no {columns[0]}; name the columns {columns[0]}, head and tail.")
    return name


def _score(value: Any, where: str) -> float:
    try:
        score = float(value)
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise RelvecError(f"{where}the score {value!r} is not a number; write one such as 42.5.")
    return score


def _group(row: Row) -> RatedRelation:
    name = _relation_name(row, "relation_type", *RELATION_COLUMNS)
    semeval = _SEMEVAL_ID.fullmatch(name)
    category = row.label("category") or (semeval[1] if semeval else "")
    return RatedRelation(name, category, _pairs(row, "positives", as_pair), _pairs(row, "negatives", as_pair))


def _pairs(row: Row, name: str, as_pair: Callable[[Any, str], Pair]) -> tuple[Pair, ...]:
    listed = row.items(name, "write pairs in brackets") if name in row.values else []
    return tuple(as_pair(pair, row.where) for pair in listed)


def _read_toml(path: Path) -> Iterator[RatedRelation]:
    """Files of `[[relation]]` tables; `symmetric` and `held_out` are optional booleans of a relation.

    The `category` of the file is that of all its relations that have none of their own.
    """
    name, lines = read_lines(path)
    try:
        content = tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as error:
        raise RelvecError(f"{name}: not TOML ({error}); correct that line.") from error
    category = Row(f"{name}: ", content).label("category")
    for number, table in enumerate(content.get("relation", ()), start=1):
        if not isinstance(table, dict) or not table.get("name"):
            raise RelvecError(f'{name}: relation {number} has no name; write name = "..." below [[relation]].')
        row = Row(f"{name}, relation {table['name']!r}: ", table)
        yield RatedRelation(
            row.label("name"),
            row.label("category") or category,
            _pairs(row, "positives", parse_pair),
            _pairs(row, "negatives", parse_pair),
            row.label("definition"),
            is_symmetric=bool(table.get("symmetric")),
            is_for_testing=bool(table.get("held_out")),
            sentence=row.label("sentence") or row.label("definition"),
        )


def _read_semeval(path: Path) -> Iterator[RatedPair]:
    name, lines = read_lines(path)
    category, letter = _semeval_place(path)
    for number, line in enumerate(lines, start=1):
        where = f"{name}, line {number}: "
        if not line.strip() or line.startswith("#"):
            continue
        found = _SEMEVAL_LINE.fullmatch(line.strip())
        if found is None:
            raise RelvecError(f'{where}not of the form 50.0 "head:tail"; give the folder of the scaled ratings.')
        pair = parse_pair(found[2], where)
        yield RatedPair(f"{category}{letter}", str(category), pair, _score(found[1], where), where)


def _semeval_place(path: Path) -> tuple[int, str]:
    """The category and the letter of a relation, from the name of its file."""
    found = _SEMEVAL_FILE.fullmatch(path.name)
    assert found is not None
    return int(found[1]), found[2]
