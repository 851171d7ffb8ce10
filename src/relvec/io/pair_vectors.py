"""Files of pair vectors: word2vec (gensim's KeyedVectors, text or binary), parquet, npz; none is pickled."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from relvec.errors import RelvecError
from relvec.index.vector_store import as_float32
from relvec.index.vocabulary import UNREADABLE
from relvec.io.pair_key import key_of, pair_of
from relvec.io.parquet import pyarrow, read_table
from relvec.io.vector_file import read_vectors
from relvec.pairs import Pair, as_pair
from relvec.similarity import Vectors

ROWS_PER_STEP = 16_384

RowsOf = Callable[[int, int], Vectors]
"""Gives the vectors of the rows from start to stop, so that a file is written without holding all of them."""


class PairFile(NamedTuple):
    """What a file holds: one row for each pair; `relations` are "" where it names none."""

    pairs: list[Pair]
    vectors: Vectors
    relations: list[str]


def read_pair_file(path: str | Path) -> PairFile:
    """Read by the file's ending."""
    return check_input(Path(path)).read(Path(path))


def check_input(path: Path) -> "Format":
    """The format of a file to read, which must be there."""
    if not path.is_file():
        raise RelvecError(f"There is no file {path}; check the path.")
    return format_of(path)


def check_output(path: Path) -> "Format":
    """The format of a file to write, which must have a folder."""
    check_place(path)
    return format_of(path)


def check_place(path: Path) -> None:
    """Whether a file can be written there."""
    if not path.parent.is_dir():
        raise RelvecError(f"There is no folder {path.parent}; make it first.")
    if path.is_dir():
        raise RelvecError(f"{path} is a folder; give a file name that ends in {', '.join(FORMATS)}.")


Read = Callable[[Path], PairFile]
Write = Callable[[Path, Sequence[Pair], Sequence[str], RowsOf], None]


class Format(NamedTuple):
    """How files of one ending are read and written."""

    read: Read
    write: Write


def _steps(count: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + ROWS_PER_STEP, count)) for start in range(0, count, ROWS_PER_STEP))


def _read_word2vec(path: Path) -> PairFile:
    table = read_vectors(path)
    pairs = [pair_of(key, f"{path}: ") for key in table.rows]
    return PairFile(pairs, table.matrix[list(table.rows.values())], [""] * len(pairs))


def _write_text(path: Path, pairs: Sequence[Pair], relations: Sequence[str], rows: RowsOf) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"{len(pairs)} {rows(0, 1).shape[1]}\n")
        for start, stop in _steps(len(pairs)):
            for pair, vector in zip(pairs[start:stop], rows(start, stop), strict=True):
                file.write(f"{key_of(pair)} {' '.join(f'{number:.9g}' for number in vector)}\n")


def _write_binary(path: Path, pairs: Sequence[Pair], relations: Sequence[str], rows: RowsOf) -> None:
    with path.open("wb") as file:
        file.write(f"{len(pairs)} {rows(0, 1).shape[1]}\n".encode())
        for start, stop in _steps(len(pairs)):
            for pair, vector in zip(pairs[start:stop], rows(start, stop), strict=True):
                file.write(f"{key_of(pair)} ".encode() + vector.astype("<f4").tobytes() + b"\n")


def _read_npz(path: Path) -> PairFile:
    fix = "write head, tail (text) and vectors, as `relvec embed -o vectors.npz` does"
    try:
        with np.load(path, allow_pickle=False) as arrays:
            heads, tails, vectors = (arrays[name] for name in ("head", "tail", "vectors"))
            relations = arrays["relation"] if "relation" in arrays else np.full(heads.shape, "")
    except UNREADABLE as error:
        raise RelvecError(f"{path} is no file of pair vectors ({error}); {fix}.") from error
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or not heads.shape == tails.shape == vectors.shape[:1]:
        raise RelvecError(f"{path} has head {heads.shape}, tail {tails.shape}, vectors {vectors.shape}; {fix}.")
    if relations.shape != heads.shape:
        raise RelvecError(f"{path} has head {heads.shape} and relation {relations.shape}; give each pair a relation.")
    return _checked(path, heads.tolist(), tails.tolist(), vectors, relations.tolist())


def _write_npz(path: Path, pairs: Sequence[Pair], relations: Sequence[str], rows: RowsOf) -> None:
    heads, tails = zip(*pairs, strict=True)
    arrays: dict[str, Any] = {"head": np.array(heads), "tail": np.array(tails), "vectors": rows(0, len(pairs))}
    if any(relations):
        arrays["relation"] = np.array(relations)
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _read_parquet(path: Path) -> PairFile:
    arrow, _ = pyarrow()
    table = read_table(path)
    missing = [name for name in ("head", "tail", "vector") if name not in table.column_names]
    if missing:
        columns = ", ".join(table.column_names)
        raise RelvecError(f"{path} has no column {missing[0]} (it has {columns}); name them head, tail and vector.")
    listed = table["vector"].combine_chunks()
    try:
        lengths = (
            {listed.type.list_size}
            if arrow.types.is_fixed_size_list(listed.type)
            else set(listed.value_lengths().to_pylist())
        )
        flat = as_float32(listed.flatten().to_numpy(zero_copy_only=False))
    except (arrow.ArrowException, AttributeError, ValueError, TypeError) as error:
        raise RelvecError(f"{path}: the column vector holds {listed.type}; make it lists of numbers.") from error
    if len(lengths) > 1 or listed.null_count:
        raise RelvecError(f"{path}: the vectors have different lengths; write them all by one model.")
    vectors = flat.reshape(table.num_rows, -1) if table.num_rows else np.empty((0, 0), dtype=np.float32)
    names = table["relation"].to_pylist() if "relation" in table.column_names else [""] * table.num_rows
    relations = [name or "" for name in names]
    return _checked(path, table["head"].to_pylist(), table["tail"].to_pylist(), vectors, relations)


def write_parquet(target: Path | BinaryIO, pairs: Sequence[Pair], relations: Sequence[str], rows: RowsOf) -> None:
    """Columns head, tail, vector and, if any pair has one, relation."""
    arrow, parquet = pyarrow()
    dim = rows(0, 1).shape[1]
    fields = [("head", arrow.string()), ("tail", arrow.string()), ("vector", arrow.list_(arrow.float32(), dim))]
    if any(relations):
        fields.append(("relation", arrow.string()))
    schema = arrow.schema(fields)
    with parquet.ParquetWriter(target, schema) as writer:
        for start, stop in _steps(len(pairs)):
            heads, tails = zip(*pairs[start:stop], strict=True)
            vectors = arrow.FixedSizeListArray.from_arrays(arrow.array(rows(start, stop).ravel()), dim)
            columns = [arrow.array(heads), arrow.array(tails), vectors]
            if any(relations):
                columns.append(arrow.array([name or None for name in relations[start:stop]], arrow.string()))
            writer.write_table(arrow.Table.from_arrays(columns, schema=schema))


def _checked(path: Path, heads: list[Any], tails: list[Any], vectors: Vectors, relations: list[str]) -> PairFile:
    vectors = as_float32(vectors)
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0]) + 1
        raise RelvecError(f"{path}, row {row}: the vector has a number that is not finite; mend or remove it.")
    rows = enumerate(zip(heads, tails, strict=True), start=1)
    pairs = [as_pair(pair, f"{path}, row {row}: ") for row, pair in rows]
    for row, relation in enumerate(relations, start=1):
        if not isinstance(relation, str):
            raise RelvecError(
                f"{path}, row {row}: the relation {relation!r} is not text; make it text or leave it out."
            )
    return PairFile(pairs, vectors, relations)


FORMATS: dict[str, Format] = {
    ".txt": Format(_read_word2vec, _write_text),
    ".bin": Format(_read_word2vec, _write_binary),
    ".parquet": Format(_read_parquet, write_parquet),
    ".npz": Format(_read_npz, _write_npz),
}


def format_of(path: Path) -> Format:
    """
    >>> format_of(Path("vectors.bin")) == FORMATS[".bin"]
    True
    """
    if path.suffix.lower() not in FORMATS:
        raise RelvecError(f"Unknown kind of vector file {path.name}; end its name in {', '.join(FORMATS)}.")
    return FORMATS[path.suffix.lower()]
