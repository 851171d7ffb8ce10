"""Text and large files as streams, plain or gzipped; `-` is stdin."""

import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from relvec.errors import RelvecError
from relvec.io.paths import expanded

READ_BYTES = 1 << 20
_GZIP_START = b"\x1f\x8b"


@contextmanager
def unpacked(path: Path) -> Iterator[tuple[io.BufferedReader, io.FileIO]]:
    """The content of a file, and the file itself, which knows how far it has been read.

    >>> _ = Path("words.gz").write_bytes(gzip.compress(b"tea"))
    >>> with unpacked(Path("words.gz")) as (stream, file):
    ...     stream.read()
    b'tea'
    """
    with _readable(path), io.FileIO(path) as file:
        raw: io.BufferedReader = io.BufferedReader(file, READ_BYTES)
        is_packed = raw.peek(2).startswith(_GZIP_START)
        yield io.BufferedReader(gzip.GzipFile(fileobj=raw), READ_BYTES) if is_packed else raw, file


def read_lines(path: str | Path) -> tuple[str, list[str]]:
    """The name of a text file for error messages, and its lines; `-` is stdin."""
    if str(path) == "-":
        name, raw = "stdin", sys.stdin.buffer.read()
    else:
        name = str(path)
        with unpacked(expanded(path)) as (stream, _):
            raw = stream.read()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise RelvecError(f"{name}, line {line}: not UTF-8 text; save the file as UTF-8.") from error
    return name, text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def checksum(path: Path) -> str:
    """The SHA-256 of a file as it lies on disk.

    >>> _ = Path("words.txt").write_text("tea")
    >>> checksum(Path("words.txt"))[:8]
    'a9f74d1e'
    """
    with _readable(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RelvecError(f"{path} is no whole gzip file ({error}); pack or download it again.") from error
    except OSError as error:
        raise RelvecError(f"Cannot read {path}: {error.strerror}; check the path.") from error
