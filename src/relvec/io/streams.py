"""Large files of the user's: read as a stream, plain or gzipped."""

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from relvec.errors import RelvecError

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
    try:
        with io.FileIO(path) as file:
            raw: io.BufferedReader = io.BufferedReader(file, READ_BYTES)
            is_packed = raw.peek(2).startswith(_GZIP_START)
            yield io.BufferedReader(gzip.GzipFile(fileobj=raw), READ_BYTES) if is_packed else raw, file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RelvecError(f"{path} is no whole gzip file ({error}); pack or download it again.") from error
    except OSError as error:
        raise RelvecError(f"Cannot read {path}: {error.strerror}; check the path.") from error


def checksum(path: Path) -> str:
    """The SHA-256 of a file as it lies on disk.

    >>> _ = Path("words.txt").write_text("tea")
    >>> checksum(Path("words.txt"))[:8]
    'a9f74d1e'
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise RelvecError(f"Cannot read {path}: {error.strerror}; check the path.") from error
