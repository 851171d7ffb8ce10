"""Files of pair vectors: one table of formats, which says how each is read and written. Nothing is pickled.

| ending | what it holds |
| --- | --- |
| `.npz` | arrays head, tail, vectors and one for each further column |
| `.npy` | the vectors alone |
| `.jsonl` | head, tail, further columns and vector, with six decimals |
| `.parquet` | the same as columns |
| `.txt`, `.bin` | word2vec, text or binary, with keys `head__tail` |
"""

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from relvec.errors import RelvecError, errors_as
from relvec.io.files import check_place, expanded
from relvec.io.tables import Row, is_vectors, pyarrow, read_parquet, read_rows, table_rows
from relvec.io.word2vec import UNREADABLE, read_vectors
from relvec.pairs import Pair, as_word, table_columns
from relvec.similarity import Vectors

ROWS_PER_STEP = 16_384
BETWEEN_WORDS = "__"
# A reader of parquet compares the checksums of pages, but does not tell whether there are any.
PAGE_CHECKSUMS = {b"checksums": b"crc32 of every page"}

_KEY_PART = re.compile(r"\\(.)|(__)|(_)", re.DOTALL)

RowsOf = Callable[[int, int], Vectors]
"""The vectors of the rows from start to stop, so that a file can be written without all of them in memory."""

Columns = Mapping[str, Sequence[Any]]
"""Further columns by name, such as `relation`; .npy and word2vec files have no place for them."""


class PairFile(NamedTuple):
    """What a file holds: one row for each pair; `relations` are "" where it names none."""

    pairs: list[Pair]
    vectors: Vectors
    relations: list[str]


class VectorFormat(NamedTuple):
    """How files of one ending are read and written."""

    read: Callable[[Path], PairFile]
    write: Callable[[Path, Sequence[Pair], RowsOf, Columns], None]


def read_pair_file(path: str | Path) -> PairFile:
    """Pairs with their vectors, read by the file's ending."""
    return check_input(expanded(path)).read(expanded(path))


def write_pair_file(path: Path, pairs: Sequence[Pair], rows: RowsOf, columns: Columns | None = None) -> None:
    """Write pairs with their vectors, and further columns, by the file's ending.

    >>> write_pair_file(Path("v.jsonl"), [("cup", "tea")], lambda start, stop: np.ones((1, 2), dtype=np.float32))
    >>> Path("v.jsonl").read_text()
    '{"head": "cup", "tail": "tea", "vector": [1.0, 1.0]}\\n'
    """
    more = {name: column for name, column in (columns or {}).items() if any(value != "" for value in column)}
    _format_of(path).write(path, pairs, rows, more)


def _words(pairs: Sequence[Pair]) -> dict[str, Sequence[Any]]:
    heads, tails = zip(*pairs, strict=True)
    return {"head": heads, "tail": tails}


def check_input(path: Path) -> VectorFormat:
    """The format of a file to read, which must be there."""
    if not path.is_file():
        raise RelvecError(f"There is no file {path}; check the path.")
    return _format_of(path)


def check_output(path: Path, source: str = "") -> VectorFormat:
    """The format of a file to write: asked before anything is encoded."""
    check_place(path, source)
    if path.suffix.lower() == ".parquet":
        pyarrow()
    return _format_of(path)


def key_of(pair: Pair) -> str:
    r"""The key of a pair in a word2vec file, as the authors of RelBERT write theirs.

    A space within a word becomes `_`, a true underscore `\_`, a backslash `\\`.

    >>> key_of(("ice cream", "summer")), key_of(("snake_case", "C\\D"))
    ('ice_cream__summer', 'snake\\_case__C\\\\D')
    """
    return BETWEEN_WORDS.join(word.replace("\\", "\\\\").replace("_", "\\_").replace(" ", "_") for word in pair)


def pair_of(key: str, where: str = "") -> Pair:
    r"""
    >>> pair_of("ice_cream__summer"), pair_of("snake\\_case__C\\\\D")
    (('ice cream', 'summer'), ('snake_case', 'C\\D'))
    """
    words = _KEY_PART.sub(lambda part: part[1] or ("\n" if part[2] else " "), key).split("\n")
    if len(words) != 2:
        raise RelvecError(f"{where}the key {key!r} is not a pair; write it as head{BETWEEN_WORDS}tail.")
    return as_word(words[0], f"{where}in {key!r} "), as_word(words[1], f"{where}in {key!r} ")


def as_float32(numbers: Any) -> Vectors:
    """Numbers that are too large become infinite; whether all are finite can be asked only after this."""
    with np.errstate(over="ignore"):
        return np.asarray(numbers, dtype=np.float32)


def _read_word2vec(path: Path) -> PairFile:
    table = read_vectors(path)
    pairs = [pair_of(key, f"{path}: ") for key in table.rows]
    return PairFile(pairs, table.matrix[list(table.rows.values())], [""] * len(pairs))


def _write_word2vec(path: Path, pairs: Sequence[Pair], rows: RowsOf, columns: Columns) -> None:
    is_text = path.suffix.lower() == ".txt"
    with path.open("wb") as file:
        file.write(f"{len(pairs)} {rows(0, 1).shape[1]}\n".encode())
        for pair, vector in _paired(pairs, rows):
            if is_text:
                numbers = " ".join(f"{number:.9g}" for number in vector).encode()
            else:
                numbers = vector.astype("<f4").tobytes()
            file.write(key_of(pair).encode() + b" " + numbers + b"\n")


def _read_npz(path: Path) -> PairFile:
    fix = "write head, tail (text) and vectors, as `relvec embed -o vectors.npz` does"
    with errors_as(f"{path} is not a file of pair vectors", fix, *UNREADABLE):
        with np.load(path, allow_pickle=False) as arrays:
            names = ["head", "tail", *(["relation"] if "relation" in arrays else [])]
            columns, vectors = {name: arrays[name].tolist() for name in names}, arrays["vectors"]
        rows = list(table_rows({**columns, "vector": vectors}, f"{path}, row"))
    return _checked(path, rows, vectors)


def _write_npz(path: Path, pairs: Sequence[Pair], rows: RowsOf, columns: Columns) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, column in {**_words(pairs), **columns}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                array = np.array(column)
                if array.dtype == object:  # would be pickled
                    array = np.array(["" if value is None else str(value) for value in column])
                np.save(file, array)
        with archive.open("vectors.npy", "w", force_zip64=True) as file:
            _write_array(file, len(pairs), rows)


def _read_npy(path: Path) -> PairFile:
    raise RelvecError(f"{path} holds no pairs beside the vectors; give a .npz, .parquet or .jsonl file.")


def _write_npy(path: Path, pairs: Sequence[Pair], rows: RowsOf, columns: Columns) -> None:
    with path.open("wb") as file:
        _write_array(file, len(pairs), rows)


def _write_array(file: IO[bytes], count: int, rows: RowsOf) -> None:
    """What `np.save` writes, without all vectors in memory."""
    header = {"descr": "<f4", "fortran_order": False, "shape": (count, rows(0, 1).shape[1])}
    np.lib.format.write_array_header_1_0(file, header)
    for start, stop in _steps(count):
        file.write(rows(start, stop).astype("<f4").tobytes())


def _read_jsonl(path: Path) -> PairFile:
    rows = list(read_rows(path))
    return _checked(path, rows, [row.values.get("vector") for row in rows])


def _write_jsonl(path: Path, pairs: Sequence[Pair], rows: RowsOf, columns: Columns) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for number, ((head, tail), vector) in enumerate(_paired(pairs, rows)):
            more = {name: column[number] for name, column in columns.items()}
            numbers = [round(float(number), 6) for number in vector]
            row = {"head": head, "tail": tail, **more, "vector": numbers}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _read_parquet(path: Path) -> PairFile:
    table = read_parquet(path)
    columns = table_columns(table) or {}
    if "vector" not in columns:
        raise RelvecError(f"{path} has no column vector (it has {', '.join(columns)}); name the columns so.")
    listed = columns["vector"].combine_chunks()
    flat = listed.flatten().to_numpy(zero_copy_only=False) if is_vectors(listed) else np.empty(0)
    dim = len(flat) // max(1, len(listed))
    is_even = set(listed.value_lengths().to_pylist()) <= {dim} if hasattr(listed, "value_lengths") else dim
    vectors = flat.reshape(len(listed), dim) if is_even else listed.to_pylist()
    return _checked(path, list(read_rows(path)), vectors)


def _write_parquet(path: Path, pairs: Sequence[Pair], rows: RowsOf, columns: Columns) -> None:
    arrow, parquet = pyarrow()
    dim = rows(0, 1).shape[1]
    more = {name: [None if value == "" else value for value in column] for name, column in columns.items()}
    arrays = {name: arrow.array(column) for name, column in {**_words(pairs), **more}.items()}
    fields = [(name, array.type) for name, array in arrays.items()]
    schema = arrow.schema([*fields, ("vector", arrow.list_(arrow.float32(), dim))], metadata=PAGE_CHECKSUMS)
    with parquet.ParquetWriter(path, schema, write_page_checksum=True) as writer:
        for start, stop in _steps(len(pairs)):
            vectors = arrow.FixedSizeListArray.from_arrays(arrow.array(rows(start, stop).ravel()), dim)
            written = [*(array[start:stop] for array in arrays.values()), vectors]
            writer.write_table(arrow.Table.from_arrays(written, schema=schema))


def _steps(count: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + ROWS_PER_STEP, count)) for start in range(0, count, ROWS_PER_STEP))


def _paired(pairs: Sequence[Pair], rows: RowsOf) -> Iterator[tuple[Pair, Any]]:
    for start, stop in _steps(len(pairs)):
        yield from zip(pairs[start:stop], rows(start, stop), strict=True)


def _checked(path: Path, rows: Sequence[Row], vectors: Any) -> PairFile:
    try:
        found = as_float32(vectors)
    except (TypeError, ValueError):
        found = np.empty(0, dtype=np.float32)
    if found.ndim != 2:
        raise RelvecError(f"{path}: the vectors are not lists of numbers of one length; write them all by one model.")
    if not np.isfinite(found).all():
        row = rows[int(np.flatnonzero(~np.isfinite(found).all(axis=1))[0])]
        raise RelvecError(f"{row.where}the vector has a number that is not finite; correct or remove it.")
    return PairFile([row.pair() for row in rows], found, [row.relation() for row in rows])


FORMATS: dict[str, VectorFormat] = {
    ".npz": VectorFormat(_read_npz, _write_npz),
    ".npy": VectorFormat(_read_npy, _write_npy),
    ".jsonl": VectorFormat(_read_jsonl, _write_jsonl),
    ".parquet": VectorFormat(_read_parquet, _write_parquet),
    ".txt": VectorFormat(_read_word2vec, _write_word2vec),
    ".bin": VectorFormat(_read_word2vec, _write_word2vec),
}


def _format_of(path: Path) -> VectorFormat:
    if path.suffix.lower() not in FORMATS:
        raise RelvecError(f"Unknown kind of vector file {path.name}; end its name in {', '.join(FORMATS)}.")
    return FORMATS[path.suffix.lower()]
