"""Files by address: paths of this machine, and `s3://`, `gs://` or any other that fsspec or pyarrow knows."""

import gzip
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from relvec.errors import RelvecError, errors_as, needed_for
from relvec.io.files import GZIP_START, atomic_write, checksum, expanded, read_errors
from relvec.io.tables import TABLES, kind_of

SECONDS_TO_ANSWER = 10


def is_remote(address: str) -> bool:
    """
    >>> is_remote("s3://bucket/pairs.csv"), is_remote("pairs/my.csv")
    (True, False)
    """
    return "://" in address


def filesystem(address: str) -> tuple[Any, str]:
    """The filesystem of fsspec that an address belongs to, and the path there.

    Where fsspec lacks the package of a protocol (s3fs, gcsfs), pyarrow's own filesystem serves.
    """
    import fsspec

    if not is_remote(address):
        return fsspec.filesystem("file"), str(expanded(address))
    try:
        return fsspec.core.url_to_fs(address)
    except ImportError as missing:
        return _of_pyarrow(address, missing)


@contextmanager
def _reading(address: str) -> Iterator[tuple[Any, str]]:
    # an unknown protocol, or a file that is no parquet, is a ValueError
    with errors_as(f"Cannot read {address}", "check the address", ValueError), read_errors(address):
        yield filesystem(address)


def _of_pyarrow(address: str, missing: ImportError) -> tuple[Any, str]:
    """What pyarrow has for an address whose package fsspec lacks."""
    with needed_for(f"The address {address}"):
        from fsspec.implementations.arrow import ArrowFSWrapper
        from pyarrow.fs import FileSystem
    # Google's library would ask a store that does not answer for a quarter of an hour.
    patient = f"?retry_limit_seconds={SECONDS_TO_ANSWER}" if address.startswith(("gs://", "gcs://")) else ""
    try:
        found, path = FileSystem.from_uri(address + patient)
    except ValueError as error:
        if "Unrecognized filesystem" not in str(error):
            raise
        raise RelvecError(f"{address} needs a package that is not there ({missing}); install it with pip.") from error
    return ArrowFSWrapper(found), path


def find_files(given: Iterable[str], output: str) -> list[str]:
    """The tables that addresses mean: a file, a pattern with `*`, or all tables of a folder; each once, in order.

    Of a folder, what lies in the folder `output` is left out.

    >>> Path("pairs").mkdir()
    >>> for name in ("b.csv", "a.csv", "notes.md"):
    ...     Path("pairs", name).touch()
    >>> find_files(["pairs", "pairs/*.csv"], "vectors")
    ['pairs/a.csv', 'pairs/b.csv']
    """
    found: dict[str, None] = {}
    for address in given:
        with _reading(address) as (files, path):
            is_folder = files.isdir(path)
            if is_folder:
                own = PurePosixPath(files._strip_protocol(output))
                tables = [each for each in files.find(path) if kind_of(each) in TABLES]
                listed = [each for each in tables if PurePosixPath(each).parent != own]
                if tables and not listed:
                    raise RelvecError(f"All tables of {address} lie in the output itself; choose another output.")
            else:
                listed = [path] if files.exists(path) else files.glob(path)
        if not listed and is_folder:
            raise RelvecError(f"The folder {address} holds no table; give one with files such as pairs.csv.")
        if not listed:
            raise RelvecError(f"There is no file {address}; check the path.")
        found.update(dict.fromkeys(_named(address, path, each, files) for each in sorted(listed)))
    return list(found)


def _named(address: str, path: str, found: str, files: Any) -> str:
    """A found path as the user wrote the address: remote with its protocol, relative where that was."""
    if is_remote(address):
        return str(files.unstrip_protocol(found))
    return found if Path(path).is_absolute() else os.path.relpath(found)


def names_in(folder: str) -> list[str]:
    """What lies in a folder; nothing, if it is not there.

    >>> Path("notes.md").touch()
    >>> names_in("."), names_in("nowhere")
    (['notes.md'], [])
    """
    with _reading(folder) as (files, path):
        found = files.ls(path, detail=False) if files.isdir(path) else []
    return [PurePosixPath(each).name for each in found]


def size_of(address: str) -> int:
    """In bytes; -1 for a file that is not there."""
    with _reading(address) as (files, path):
        return int(files.size(path)) if files.exists(path) else -1


def version_of(address: str) -> int | str:
    """What changes with the content of a file: here a checksum, elsewhere what its store says of it."""
    with _reading(address) as (files, path):
        return files.checksum(path) if is_remote(address) else checksum(Path(path))


def read_whole(address: str) -> bytes:
    """The content of a file, unpacked if it is gzipped."""
    with _reading(address) as (files, path):
        raw: bytes = files.cat_file(path)
        return gzip.decompress(raw) if raw.startswith(GZIP_START) else raw


@contextmanager
def opened(address: str) -> Iterator[Any]:
    """A file to read from any place within it."""
    with _reading(address) as (files, path), files.open(path, "rb") as file:
        yield file


def write_whole(address: str, content: bytes) -> None:
    """Write a file, whole or not at all; an object store shows an object only when all of it has arrived."""
    if not is_remote(address):
        with atomic_write(expanded(address)) as partial:
            partial.write_bytes(content)
        return
    files, path = filesystem(address)
    with errors_as(f"Cannot write {address}", "check its name and your rights there", OSError):
        files.makedirs(str(PurePosixPath(path).parent), exist_ok=True)
        files.pipe_file(path, content)
