"""Files that hold a vector for each key: word2vec (text, binary), GloVe and fastText formats, and .npz."""

import io
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relvec.errors import RelvecError, errors_as, needed_for
from relvec.io.files import READ_BYTES, checksum, expanded, unpacked
from relvec.pairs import parts_of
from relvec.similarity import Vectors

Vector = NDArray[np.float32]
Subwords = Callable[[str], Vector | None]

ZIP_START = b"PK\x03\x04"
PICKLE_STARTS = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6))
FASTTEXT_START = (793712314).to_bytes(4, "little")

UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    IndexError,
    EOFError,
    TypeError,
    RuntimeError,  # zipfile's word for a flag that says encrypted, or patched
    zipfile.BadZipFile,
    zlib.error,
)
"""What numpy raises for a file that is not a complete .npz; a lone array, for instance, is a TypeError."""


@dataclass(frozen=True)
class VectorTable:
    """Vectors by key, and the SHA-256 of the file; fastText models also make vectors of keys they have not seen."""

    rows: Mapping[str, int]
    matrix: Vectors
    first_key: str
    checksum: str
    subwords: Subwords | None = None

    @property
    def dim(self) -> int:
        return int(self.matrix.shape[1])

    def find(self, keys: Iterable[str]) -> Vector | None:
        """The vector of the first key that has one."""
        row = next((self.rows[key] for key in keys if key in self.rows), None)
        return None if row is None else self.matrix[row]


def read_vectors(path: str | Path, keys: Iterable[str] | None = None) -> VectorTable:
    """The vectors of `keys`, or all of them; what the file is shows in its first bytes, not in its name.

    Word2vec and GloVe files, plain or gzipped, are read row by row; of several rows with one key the first counts.
    A pickled file is refused: to open it is to run what it says.

    >>> _ = Path("glove.txt").write_text("tea 0.5 1\\ncoffee 1 0\\nwine 0 0\\n")
    >>> table = read_vectors("glove.txt", ["coffee", "milk"])
    >>> table.rows, table.matrix.tolist()
    ({'coffee': 0}, [[1.0, 0.0]])
    """
    file = expanded(path)
    wanted = None if keys is None else frozenset(keys)
    with unpacked(file) as (stream, _):
        start = stream.peek(4)[:4]
        if start.startswith(PICKLE_STARTS):
            fix = "open it with the gensim that made it and convert it with `save_word2vec_format`"
            raise RelvecError(f"{file} is pickled, which is not safe to read; {fix}.")
        if start not in (ZIP_START, FASTTEXT_START):
            return _read_rows(file, stream, wanted)
    return _read_npz(file, wanted) if start == ZIP_START else _read_fasttext(file, wanted)


def _read_rows(file: Path, stream: io.BufferedReader, wanted: frozenset[str] | None) -> VectorTable:
    """Word2vec, text or binary, and GloVe, which is text without the first line (rows, columns)."""
    first = stream.readline(READ_BYTES).removeprefix(b"\xef\xbb\xbf")
    header = first.split()
    has_header = len(header) == 2 and all(cell.isdigit() for cell in header)
    dim = int(header[1]) if has_header else len(header) - 1
    if dim < 1:
        raise RelvecError(f"{file}, line 1: no key with numbers; give word2vec or GloVe text, .bin or .npz.")
    if has_header and any(byte < 32 and byte not in b"\t\n\r" for byte in stream.peek(4096)[:4096]):
        rows: Iterable[tuple[str, Any]] = _binary_rows(stream, int(header[0]), dim)
    else:
        rows = _text_rows(file, stream if has_header else chain([first], stream), dim, 1 + has_header)
    kept: dict[str, Vector] = {}
    first_key, count = "", 0
    for count, (key, numbers) in enumerate(rows, start=1):
        first_key = first_key or key
        # The first row is parsed in any case, so that a file of another kind is noticed.
        if (wanted is None or key in wanted or count == 1) and key not in kept:
            try:
                with np.errstate(over="ignore"):
                    cells = numbers.split(b" ") if isinstance(numbers, bytes) else numbers
                    kept[key] = np.array(cells, dtype=np.float32)
            except ValueError as error:
                place = f"line {count + has_header}: {error}"
                raise RelvecError(f"{file}, {place}; give word2vec or GloVe text, .bin or .npz.") from error
    if has_header and count != int(header[0]):
        problem = f"{file} holds {count} vectors where its first line says {int(header[0])}"
        raise RelvecError(f"{problem}; download it again, or correct its first line.")
    if wanted is not None and first_key not in wanted:
        kept.pop(first_key, None)
    matrix = np.stack(list(kept.values())) if kept else np.empty((0, dim), dtype=np.float32)
    return _table(file, list(kept), matrix, first_key)


def _text_rows(file: Path, lines: Iterable[bytes], dim: int, first_line: int) -> Iterator[tuple[str, bytes]]:
    for number, whole_line in enumerate(lines, first_line):
        line = whole_line.rstrip()
        if not line:
            continue
        extra = line.count(b" ") - dim
        parts = line.split(b" ", max(extra, 0) + 1)
        if extra < 0 or any(_is_number(part) for part in parts[1:-1]):  # GloVe's large files have keys such as `. . .`
            problem = f"{extra + dim} numbers where {dim} are expected"
            raise RelvecError(f"{file}, line {number}: {problem}; download or write the file again.")
        yield b" ".join(parts[:-1]).decode("utf-8", "replace"), parts[-1]


def _binary_rows(stream: io.BufferedReader, count: int, dim: int) -> Iterator[tuple[str, Vector]]:
    data, at, size = b"", 0, 4 * dim
    for _ in range(count):
        while (space := data.find(b" ", at)) < 0 or len(data) < space + 1 + size:
            more = stream.read(READ_BYTES)
            if not more:
                return
            data, at = data[at:] + more, 0
        key = data[at:space].lstrip(b"\n").decode("utf-8", "replace")
        at = space + 1 + size
        yield key, np.frombuffer(data[space + 1 : at], dtype="<f4")


def _is_number(cell: bytes) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_npz(file: Path, wanted: frozenset[str] | None) -> VectorTable:
    problem = f"{file} does not hold `words` (text) and `vectors`"
    fix = "write it by `np.savez(file, words=np.array(words), vectors=vectors)`"
    rows: dict[str, int] = {}
    with errors_as(problem, fix, *UNREADABLE):
        with np.load(file, allow_pickle=False) as arrays:
            words, vectors = arrays["words"], arrays["vectors"]
        for row, (word, _) in enumerate(zip(words.tolist(), vectors, strict=True)):
            if wanted is None or word in wanted:
                rows.setdefault(word, row)
        matrix = vectors[list(rows.values()), :].astype(np.float32)
    return _table(file, list(rows), matrix, str(words[0]) if len(words) else "")


def _read_fasttext(file: Path, wanted: frozenset[str] | None) -> VectorTable:
    with needed_for("A fastText model"):
        from gensim.models.fasttext import load_facebook_vectors
    with errors_as(f"{file} is not a complete fastText model", "download it again", Exception):
        model: Any = load_facebook_vectors(str(file))
    index: dict[str, int] = model.key_to_index

    def made(key: str) -> Vector | None:
        vector = np.asarray(model.get_vector(key), dtype=np.float32)
        return vector if vector.any() else None  # no part of the word is known

    first = next(iter(index), "")
    if wanted is None:
        return _table(file, list(index), model.vectors, first, made)
    # Keep only what is asked for: a model takes gigabytes.
    present = [key for key in wanted if key in index]
    made_before = {key: made(key) for key in wanted - set(present)}
    return _table(file, present, model.vectors[[index[key] for key in present]], first, made_before.get)


def _table(
    file: Path, keys: list[str], matrix: Vectors, first_key: str, subwords: Subwords | None = None
) -> VectorTable:
    is_bad = ~np.isfinite(matrix).all(axis=1)
    if is_bad.any():
        bad = keys[int(np.flatnonzero(is_bad)[0])]
        raise RelvecError(f"{file}: the vector of {bad!r} has a number that is not finite; correct or remove it.")
    return VectorTable({key: row for row, key in enumerate(keys)}, matrix, first_key, checksum(file), subwords)


def spellings(word: str) -> list[str]:
    """The keys under which a word may stand in a file, in the order in which they are tried.

    >>> spellings("Ice cream")
    ['Ice cream', 'ice cream', 'Ice_cream', 'ice_cream', 'Ice-cream', 'ice-cream']
    """
    parts = parts_of(word)
    written = [word, "_".join(parts), "-".join(parts)] if len(parts) > 1 else [word]
    return list(dict.fromkeys(spelling for form in written for spelling in (form, form.lower())))
