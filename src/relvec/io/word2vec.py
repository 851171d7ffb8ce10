"""Files that hold a vector for each key: word2vec (text, binary), GloVe and fastText formats, and .npz."""

import io
import re
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relvec.errors import RelvecError
from relvec.io.paths import expanded
from relvec.io.streams import READ_BYTES, checksum, unpacked
from relvec.similarity import Vectors

Vector = NDArray[np.float32]
Subwords = Callable[[str], Vector | None]

ZIP_START = b"PK\x03\x04"
PICKLE_STARTS = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6))
FASTTEXT_START = (793712314).to_bytes(4, "little")

_BETWEEN_PARTS = re.compile(r"[\s_-]+")


@dataclass(frozen=True)
class VectorTable:
    """Vectors by key, and the SHA-256 of the file; fastText models also make vectors of keys they have not seen."""

    rows: dict[str, int]
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
        if not start:
            raise RelvecError(f"{file} is empty; give a file of vectors.")
        if start.startswith(PICKLE_STARTS):
            fix = "open it with the gensim that made it and convert it with `save_word2vec_format`"
            raise RelvecError(f"{file} is pickled, which is not safe to read; {fix}.")
        if start not in (ZIP_START, FASTTEXT_START):
            return _Rows(file, wanted).read(stream)
    return _read_npz(file, wanted) if start == ZIP_START else _read_fasttext(file, wanted)


class _Rows:
    """Reads word2vec files, text or binary, and GloVe's, which are text without the first line (rows, columns)."""

    def __init__(self, file: Path, keys: frozenset[str] | None) -> None:
        self._file = file
        self._wanted = None if keys is None else frozenset(key.encode("utf-8", "replace") for key in keys)
        self._kept: dict[bytes, Vector] = {}
        self._first_key: bytes | None = None

    def read(self, stream: io.BufferedReader) -> VectorTable:
        first = stream.readline(READ_BYTES).removeprefix(b"\xef\xbb\xbf")
        header = [int(cell) for cell in first.split() if cell.isdigit()]
        if len(header) == len(first.split()) == 2:
            count, dim = header
            is_binary = any(byte < 32 and byte not in b"\t\n\r" for byte in stream.peek(4096)[:4096])
            found = self._read_binary(stream, count, dim) if is_binary else self._read_text(stream, dim, 2)
            if found != count:
                fix = "download it again, or correct its first line"
                raise RelvecError(f"{self._file} holds {found} vectors where its first line says {count}; {fix}.")
        else:
            dim = len(first.split()) - 1
            self._read_text(chain([first], stream), dim, 1)
        rows: dict[str, int] = {}
        for row, key in enumerate(self._kept):
            rows.setdefault(key.decode("utf-8", "replace"), row)
        matrix = np.stack(list(self._kept.values())) if self._kept else np.empty((0, dim), dtype=np.float32)
        return VectorTable(rows, matrix, (self._first_key or b"").decode("utf-8", "replace"), checksum(self._file))

    def _read_text(self, lines: Iterable[bytes], dim: int, first_line: int) -> int:
        count = 0
        for number, whole_line in enumerate(lines, first_line):
            line = whole_line.rstrip()
            if not line:
                continue
            count += 1
            is_usual = line.count(b" ") == dim > 0
            key = line[: line.index(b" ")] if is_usual else self._key_with_spaces(line, dim, number)
            if self._is_wanted(key):
                self._keep(key, line[len(key) + 1 :].split(b" "), number)
        return count

    def _key_with_spaces(self, line: bytes, dim: int, number: int) -> bytes:
        """GloVe's large files have keys such as `. . .`; any other line of unusual length is broken."""
        cells = line.split(b" ")
        extra = cells[1:-dim] if dim > 0 else []
        if not extra or any(_is_number(cell) for cell in extra):
            problem = f"{len(cells) - 1} numbers where {dim} are expected" if dim > 0 else "a key without numbers"
            raise RelvecError(f"{self._file}, line {number}: {problem}; download or write the file again.")
        return b" ".join(cells[:-dim])

    def _read_binary(self, stream: io.BufferedReader, count: int, dim: int) -> int:
        data, at, size = b"", 0, 4 * dim
        for number in range(1, count + 1):
            while (space := data.find(b" ", at)) < 0 or len(data) < space + 1 + size:
                more = stream.read(READ_BYTES)
                if not more:
                    return number - 1
                data, at = data[at:] + more, 0
            key = data[at:space].lstrip(b"\n")
            at = space + 1 + size
            if self._is_wanted(key):
                self._keep(key, np.frombuffer(data[space + 1 : at], dtype="<f4"), number)
        return count

    def _is_wanted(self, key: bytes) -> bool:
        is_first, self._first_key = self._first_key is None, self._first_key or key
        # The first row is parsed in any case, so that a file of another kind is noticed.
        return (self._wanted is None or key in self._wanted or is_first) and key not in self._kept

    def _keep(self, key: bytes, numbers: Any, number: int) -> None:
        where = f"{self._file}, {'row' if isinstance(numbers, np.ndarray) else 'line'} {number}: "
        try:
            with np.errstate(over="ignore"):
                vector = np.array(numbers, dtype=np.float32)
        except ValueError as error:
            raise RelvecError(f"{where}{error}; give word2vec or GloVe text, .bin or .npz.") from error
        if not np.isfinite(vector).all():
            raise RelvecError(f"{where}the vector has a number that is not finite; mend or remove it.")
        if self._wanted is None or key in self._wanted:
            self._kept[key] = vector


def _is_number(cell: bytes) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_npz(file: Path, wanted: frozenset[str] | None) -> VectorTable:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            words, vectors = arrays["words"], arrays["vectors"]
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        fix = "write it by `np.savez(file, words=np.array(words), vectors=vectors)`"
        raise RelvecError(f"{file} does not hold `words` (text) and `vectors` ({error}); {fix}.") from error
    if words.dtype.kind != "U" or vectors.dtype.kind != "f" or words.ndim != 1 or vectors.shape[:-1] != words.shape:
        shapes = f"`words` {words.dtype} {words.shape} and `vectors` {vectors.dtype} {vectors.shape}"
        raise RelvecError(f"{file} holds {shapes}; make them text [rows] and numbers [rows, columns].")
    rows: dict[str, int] = {}
    kept: list[int] = []
    for row, word in enumerate(words.tolist()):
        if (wanted is None or word in wanted) and word not in rows:
            rows[word] = len(kept)
            kept.append(row)
    matrix = vectors[kept].astype(np.float32)
    if not np.isfinite(matrix).all():
        bad = str(words[kept][~np.isfinite(matrix).all(axis=1)][0])
        raise RelvecError(f"{file}: the vector of {bad!r} has a number that is not finite; mend or remove it.")
    return VectorTable(rows, matrix, str(words[0]) if len(words) else "", checksum(file))


def _read_fasttext(file: Path, wanted: frozenset[str] | None) -> VectorTable:
    try:
        from gensim.models.fasttext import load_facebook_vectors
    except ImportError as error:
        raise RelvecError(f"{file} is a fastText model; to read it, run pip install 'relvec[evaluate]'.") from error
    try:
        model: Any = load_facebook_vectors(str(file))
    except Exception as error:  # a broken model fails in many ways
        raise RelvecError(f"{file} is no whole fastText model ({error}); download it again.") from error
    index: dict[str, int] = model.key_to_index

    def made(key: str) -> Vector | None:
        vector = np.asarray(model.get_vector(key), dtype=np.float32)
        return vector if vector.any() else None  # no part of the word is known

    first = next(iter(index), "")
    if wanted is None:
        return VectorTable(index, model.vectors, first, checksum(file), made)
    # Keep only what is asked for: a model takes gigabytes.
    present = [key for key in wanted if key in index]
    matrix = np.array(model.vectors[[index[key] for key in present]], dtype=np.float32)
    made_before = {key: made(key) for key in wanted - set(present)}
    rows = {key: row for row, key in enumerate(present)}
    return VectorTable(rows, matrix, first, checksum(file), made_before.get)


def parts_of(word: str) -> list[str]:
    """
    >>> parts_of("ice cream"), parts_of("brass_instrument"), parts_of("self-made")
    (['ice', 'cream'], ['brass', 'instrument'], ['self', 'made'])
    """
    return [part for part in _BETWEEN_PARTS.split(word) if part]


def spellings(word: str) -> list[str]:
    """The keys under which a word may stand in a file, in the order in which they are tried.

    >>> spellings("Ice cream")
    ['Ice cream', 'ice cream', 'Ice_cream', 'ice_cream', 'Ice-cream', 'ice-cream']
    """
    parts = parts_of(word)
    written = [word, "_".join(parts), "-".join(parts)] if len(parts) > 1 else [word]
    return list(dict.fromkeys(spelling for form in written for spelling in (form, form.lower())))
