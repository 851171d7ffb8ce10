"""Rated pairs and ready relations from files, folders and frames.

| what | how it looks |
| --- | --- |
| rows: `.jsonl`, `.csv`, `.tsv`, a frame | `relation`, `head`, `tail` and, if wanted, `category` and `score` |
| the authors' hub datasets, `.jsonl` | `{"relation_type": "8d", "positives": [[head, tail], ...], "negatives": ...}` |
| ours, `.toml` | `category`, and `[[relation]]` with `name`, `definition`, `positives`, `negatives` |
| SemEval-2012 Task 2 as distributed | a folder of `Phase2Answers-1a.txt` with lines `50.0 "head:tail"` |

Names such as `train.jsonl`, `valid.jsonl` (or `validation`, `val`, `dev`) and `test.jsonl` tell the parts of a dataset.
In a folder that has one of the others, the test part is left out, and the pairs of validation files are held out; a
relation that only these have is left out. A folder has files of one kind.
"""

import math
import re
import reprlib
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from relvec.data.rated import BOTTOM, TOP, RatedPair, RatedRelation, joined, select
from relvec.errors import LeftOutWarning, RelvecError
from relvec.io.paths import expanded
from relvec.pairs import (
    as_label,
    as_pair,
    as_word,
    csv_rows,
    json_rows,
    named_columns,
    parse_pair,
    read_lines,
    tsv_rows,
)

_COLUMNS = "name the columns relation, head, tail and, if wanted, category and score"
_SEMEVAL_FILE = re.compile(r"Phase2Answers\w*-(\d+)([a-z])\.txt")
_SEMEVAL_LINE = re.compile(r'(\S+)\s+"(.*)"')
_SEMEVAL_ID = re.compile(r"(\d+)[a-z]")

_PARTS = {"train": "train", **dict.fromkeys(("valid", "validation", "val", "dev"), "valid"), "test": "test"}

_Item = RatedPair | RatedRelation


def read_rated(
    source: Any, *, top: int = TOP, bottom: int = BOTTOM, threshold: float | None = None
) -> list[RatedRelation]:
    """Relations from a file, a folder or a frame; `top`, `bottom` and `threshold` choose among rated rows only."""
    if hasattr(source, "columns"):
        name, relations = "The frame", select(_read_frame(source), top=top, bottom=bottom, threshold=threshold)
    else:
        name, files = str(source), _files(expanded(source))
        trained, held_out = ([item for file in part for item in _reader_for(file)(file)] for part in _parts(files))
        relations = select(_only_rows(trained), _only_rows(held_out), top=top, bottom=bottom, threshold=threshold)
        groups = [item for item in trained if isinstance(item, RatedRelation)]
        # In TOML a name used twice is a mistake, which must stay visible.
        relations += groups if _kind(files[0]) == ".toml" else _merge(groups, held_out)
        _tell_left_out(relations, held_out)
    if not relations:
        raise RelvecError(f"{name} holds no relation; give rated pairs, or relations with positives and negatives.")
    return relations


def _only_rows(items: Iterable[_Item]) -> Iterator[RatedPair]:
    return (item for item in items if isinstance(item, RatedPair))


def _merge(trained: Iterable[RatedRelation], held_out: Iterable[_Item]) -> list[RatedRelation]:
    """One relation of each name: the hub's datasets keep its training and its validation pairs in two files."""
    validation = _united(item for item in held_out if isinstance(item, RatedRelation))
    return [
        joined(relation, validation[name]) if name in validation else relation
        for name, relation in _united(trained).items()
    ]


def _united(relations: Iterable[RatedRelation]) -> dict[str, RatedRelation]:
    found: dict[str, RatedRelation] = {}
    for relation in relations:
        before = found.get(relation.name)
        found[relation.name] = relation if before is None else replace(joined(relation, before), held_out=())
    return found


def _tell_left_out(relations: Iterable[RatedRelation], held_out: Iterable[_Item]) -> None:
    """A relation of the validation files alone cannot be trained on, and must not be."""
    names = dict.fromkeys(item.relation if isinstance(item, RatedPair) else item.name for item in held_out)
    lacking = list(names.keys() - {relation.name for relation in relations})
    if lacking:
        problem = f"Validation files have relations without training pairs ({len(lacking)}, such as {min(lacking)!r})"
        warnings.warn(LeftOutWarning(f"{problem}; they are left out unless a training file has them."), stacklevel=3)


def _parts(files: list[Path]) -> tuple[list[Path], list[Path]]:
    """Files to train on, and files whose pairs are held out: those of a validation part, if there are others."""
    held_out = [file for file in files if _part(file) == "valid" and _kind(file) != ".toml"]
    trained = [file for file in files if file not in held_out]
    return (trained, held_out) if trained else (files, [])


def _part(file: Path) -> str:
    """The part of a dataset that a file's name tells, as in `semeval-train.jsonl`; else nothing."""
    words = re.split("[^a-z]+", file.name.lower())
    return next((_PARTS[word] for word in words if word in _PARTS), "")


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
    found = {kind: [file for file in below if _kind(file) == kind] for kind in _READERS}
    kinds = [kind for kind, files in found.items() if files]
    if not kinds:
        known = f"{', '.join(_READERS)} or Phase2Answers-*.txt"
        raise RelvecError(f"The folder {path} holds no rated pairs; give one with {known} files.")
    if len(kinds) > 1:
        problem = f"The folder {path} holds {' and '.join(kinds)} files"
        raise RelvecError(f"{problem}; keep one kind in a folder, or name a file.")
    (kind,) = kinds
    return found[kind] if kind == ".toml" else _without_test(found[kind])


def _without_test(files: list[Path]) -> list[Path]:
    parts = {file: _part(file) for file in files}
    is_divided = "train" in parts.values() or "valid" in parts.values()
    return [file for file in files if not (is_divided and parts[file] == "test")]


def _kind(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def is_readable(path: Path) -> bool:
    """Whether a name ends like a file of rated pairs, be the file there or not."""
    return _kind(path) in _READERS


def _reader_for(path: Path) -> "_Reader":
    if _SEMEVAL_FILE.fullmatch(path.name):
        return _read_semeval
    if not is_readable(path):
        raise RelvecError(
            f"{path} is not of a known kind; give a file that ends in {', '.join(_READERS)}, or a folder."
        )
    return _READERS[_kind(path)]


def _read_frame(frame: Any) -> Iterator[RatedPair]:
    columns = [str(name) for name in frame.columns]
    values = zip(*(frame[name] for name in frame.columns), strict=True)
    for number, row in enumerate(values, start=1):
        yield _rated_pair(dict(zip(columns, row, strict=True)), f"Row {number}: ")


def _read_csv(path: Path) -> Iterator[RatedPair]:
    name, lines = read_lines(path)
    return _read_table(csv_rows(lines, name), name)


def _read_tsv(path: Path) -> Iterator[RatedPair]:
    name, lines = read_lines(path)
    return _read_table(tsv_rows(lines), name)


def _read_table(rows: Iterable[tuple[int, list[str]]], name: str) -> Iterator[RatedPair]:
    header: list[str] = []
    for number, row in rows:
        where = f"{name}, line {number}: "
        if not any(cell.strip() for cell in row):
            continue
        if not header:
            header = [cell.strip().lower() for cell in row]
            continue
        if len(row) != len(header):
            raise RelvecError(f"{where}{len(row)} columns where the first line names {len(header)}; make them equal.")
        yield _rated_pair(dict(zip(header, row, strict=True)), where)


def _read_jsonl(path: Path) -> Iterator[_Item]:
    name, lines = read_lines(path)
    for where, row in json_rows(lines, name):
        if not isinstance(row, dict):
            raise RelvecError(f'{where}not an object; write {{"relation": ..., "head": ..., "tail": ...}}.')
        yield _group(row, where) if "positives" in row else _rated_pair(row, where)


def _rated_pair(row: Mapping[str, Any], where: str) -> RatedPair:
    keys = list(row)
    columns = named_columns(keys)
    if columns is None or "relation" not in row:
        missing = "relation" if columns else "head and tail"
        raise RelvecError(f"{where}no {missing}; {_COLUMNS}.")
    head, tail = (as_word(row[keys[column]], where) for column in columns)
    relation = _label(row["relation"], where)
    if not relation:
        raise RelvecError(f"{where}the relation is empty; name it.")
    category = _label(row.get("category"), where)
    return RatedPair(relation, category, head, tail, _score(row.get("score", 1), where), where)


def _label(value: Any, where: str) -> str:
    """A name as text; what frames and JSON have for nothing is the empty name."""
    return "" if value is None or _is_missing(value) else as_label(" ".join(str(value).split()), where)


def _is_missing(value: Any) -> bool:
    try:
        return bool(value != value)
    except TypeError:  # the NA of pandas is neither equal nor unequal to anything
        return True


def _score(value: Any, where: str) -> float:
    try:
        score = float(value)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        raise RelvecError(f"{where}the score {reprlib.repr(value)} is no number; write one such as 42.5.")
    return score


def _group(row: Mapping[str, Any], where: str) -> RatedRelation:
    name = _label(row.get("relation_type", row.get("relation")), where)
    if not name:
        raise RelvecError(f"{where}no relation_type; name the relation.")
    semeval = _SEMEVAL_ID.fullmatch(name)
    category = _label(row.get("category"), where) or (semeval[1] if semeval else "")
    positives, negatives = (
        tuple(as_pair(pair, where) for pair in _list(row, key, where)) for key in ("positives", "negatives")
    )
    return RatedRelation(name, category, positives, negatives)


def _read_toml(path: Path) -> Iterator[RatedRelation]:
    name, lines = read_lines(path)
    try:
        content = tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as error:
        raise RelvecError(f"{name}: not TOML ({error}); correct that line.") from error
    for number, table in enumerate(_list(content, "relation", f"{name}: "), start=1):
        if not isinstance(table, dict) or not _label(table.get("name"), f"{name}: "):
            raise RelvecError(f'{name}: relation {number} has no name; write name = "..." below [[relation]].')
        where = f"{name}, relation {table['name']!r}: "
        positives, negatives = (
            tuple(parse_pair(str(pair), where) for pair in _list(table, key, where))
            for key in ("positives", "negatives")
        )
        relation, definition = (_label(table.get(key), where) for key in ("name", "definition"))
        yield RatedRelation(relation, _label(content.get("category"), where), positives, negatives, definition)


def _list(row: Mapping[str, Any], key: str, where: str) -> list[Any]:
    listed = row.get(key, [])
    if not isinstance(listed, list):
        raise RelvecError(f"{where}{key} is no list; write it in brackets.")
    return listed


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
        head, tail = parse_pair(found[2], where)
        yield RatedPair(f"{category}{letter}", str(category), head, tail, _score(found[1], where), where)


def _semeval_place(path: Path) -> tuple[int, str]:
    """The category and the letter of a relation, from the name of its file."""
    found = _SEMEVAL_FILE.fullmatch(path.name)
    assert found is not None
    return int(found[1]), found[2]


_Reader = Callable[[Path], Iterator[_Item]]
_READERS: dict[str, _Reader] = {
    ".toml": _read_toml,
    ".jsonl": _read_jsonl,
    ".csv": _read_csv,
    ".tsv": _read_tsv,
}
