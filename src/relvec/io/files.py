"""Files and folders: paths as people write them, text and large files in, and files written whole or not at all."""

import glob
import gzip
import hashlib
import io
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from relvec.errors import RelvecError

READ_BYTES = 1 << 20
GZIP_START = b"\x1f\x8b"
_TEMPORARY = "relvec_"  # in the name of what is still being written, so that it can be told from a user's file


def expanded(path: str | Path) -> Path:
    """The path with the home folder in place of `~`, or of `~user`.

    >>> expanded("~/models") == Path.home() / "models", expanded("models") == Path("models")
    (True, True)
    """
    return Path(os.path.expanduser(path))  # noqa: PTH111 - which leaves the name of an unknown user as it is


def data_folder(data_dir: str | Path | None = None) -> Path | None:
    """Where the user keeps datasets: `data_dir`, else `RELVEC_DATA`, else nowhere."""
    chosen = data_dir or os.environ.get("RELVEC_DATA")
    return expanded(chosen) if chosen else None


@contextmanager
def unpacked(path: Path) -> Iterator[tuple[io.BufferedReader, io.FileIO]]:
    """The content of a file, and the file itself, which knows how far it has been read.

    >>> _ = Path("words.gz").write_bytes(gzip.compress(b"tea"))
    >>> with unpacked(Path("words.gz")) as (stream, file):
    ...     stream.read()
    b'tea'
    """
    with read_errors(path), io.FileIO(path) as file:
        raw: io.BufferedReader = io.BufferedReader(file, READ_BYTES)
        is_packed = raw.peek(2).startswith(GZIP_START)
        yield io.BufferedReader(gzip.GzipFile(fileobj=raw), READ_BYTES) if is_packed else raw, file


def read_lines(path: str | Path) -> tuple[str, list[str]]:
    """The name of a text file for error messages, and its lines; `-` is stdin."""
    if str(path) == "-":
        name, raw = "stdin", sys.stdin.buffer.read()
    else:
        name = str(path)
        with unpacked(expanded(path)) as (stream, _):
            raw = stream.read()
    return name, lines_of(raw, name)


def lines_of(raw: bytes, name: str) -> list[str]:
    """The lines of a text; `name` is that of its file."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise RelvecError(f"{name}, line {line}: not UTF-8 text; save the file as UTF-8.") from error
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def checksum(path: Path) -> str:
    """The SHA-256 of a file as it lies on disk.

    >>> _ = Path("words.txt").write_text("tea")
    >>> checksum(Path("words.txt"))[:8]
    'a9f74d1e'
    """
    with read_errors(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def read_errors(address: str | Path) -> Iterator[None]:
    """Around code that reads a file: if that fails, the error names the file."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RelvecError(f"{address} is not a complete gzip file ({error}); pack or download it again.") from error
    except OSError as error:
        reason = error.strerror or error
        raise RelvecError(f"Cannot read {address}: {reason}; check the path and your rights there.") from error


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield a path beside `path` to write to; it takes the final name only if the block succeeds.

    >>> with atomic_write("vectors.txt") as partial:
    ...     _ = partial.write_text("1 2 3")
    >>> Path("vectors.txt").read_text()
    '1 2 3'
    """
    target = expanded(path)
    with write_errors(target):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=_prefix(target), suffix=target.suffix)
    os.close(handle)
    partial = Path(name)
    try:
        with write_errors(target):
            yield partial
            partial.chmod(0o666 & ~_umask())
            partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | Path, stale: Collection[str] = (), first: Collection[str] = ()) -> Iterator[Path]:
    """Yield a new folder beside `path`; its files move there only if the block succeeds.

    Files of the old folder that match a `stale` pattern go, so that old and new are never mixed. Those named in `first`
    move first: by them a run that was killed in between knows its own folder again.

    >>> with atomic_folder("model") as partial:
    ...     _ = (partial / "config.json").write_text("{}")
    >>> [file.name for file in Path("model").iterdir()]
    ['config.json']
    """
    target = expanded(path)
    with write_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=target.parent, prefix=_prefix(target)))
    try:
        with write_errors(target):
            yield partial
            target.mkdir(exist_ok=True)
            for old in (found for pattern in stale for found in target.glob(pattern)):
                is_replaced = old.name in first and (partial / old.name).exists()
                if not old.is_dir() and not is_replaced:
                    old.unlink(missing_ok=True)
            # In the order in which they were written: checksums, which say that all is there, come last.
            for file in sorted(partial.iterdir(), key=lambda file: (file.name not in first, file.stat().st_mtime_ns)):
                file.chmod(0o666 & ~_umask())  # some writers keep files to their owner
                file.replace(target / file.name)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def remove_leftovers(path: Path) -> None:
    """Remove temporary files of killed writers beside `path` or in it; the caller holds the lock of `path`."""
    inside = path.glob(f".*.{_TEMPORARY}*") if path.is_dir() else ()
    for old in (*path.parent.glob(f"{glob.escape(_prefix(path))}*"), *inside):
        if old.is_dir():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.unlink(missing_ok=True)


def _prefix(path: Path) -> str:
    return f".{path.name}.{_TEMPORARY}"


def check_place(path: Path, source: str = "") -> None:
    """Refuse a place where no file can be written, or the file that is read, before the work that would make it."""
    if not path.parent.is_dir():
        raise RelvecError(f"There is no folder {path.parent}; make it first.")
    if path.is_dir():
        raise RelvecError(f"{path} is a folder; give the name of a file.")
    if source and path.exists() and Path(source).exists() and path.samefile(source):
        raise RelvecError(f"{path} is the file of pairs itself; choose another output.")


@contextmanager
def write_errors(target: Path) -> Iterator[None]:
    """Around what writes a place: where that fails, the error names it."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise RelvecError(f"Cannot write {target}: {reason}; choose another place or free space.") from error


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
