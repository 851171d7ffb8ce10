"""Writing files so that a reader never meets half of one."""

import glob
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from relvec.errors import RelvecError

_TEMPORARY = "relvec_"  # in the name of what is still being written, so that it can be told from a user's file


@contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Yield a path beside `path` to write to; it takes the final name only if the block succeeds.

    >>> with written_whole("vectors.txt") as partial:
    ...     _ = partial.write_text("1 2 3")
    >>> Path("vectors.txt").read_text()
    '1 2 3'
    """
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=_prefix(target), suffix=target.suffix)
    except OSError as error:
        raise RelvecError(f"Cannot write {target}: {error.strerror}; choose another place.") from error
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        partial.chmod(0o666 & ~_umask())
        partial.replace(target)
    except OSError as error:
        raise RelvecError(
            f"Cannot write {target}: {error.strerror or error}; choose another place or free space."
        ) from error
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def folder_written_whole(path: str | Path, stale: Collection[str] = (), first: Collection[str] = ()) -> Iterator[Path]:
    """Yield a new folder beside `path`; its files move there only if the block succeeds.

    Files of the old folder that match a `stale` pattern go, so that old and new are never mixed. Those named in `first`
    move first: by them a run that was killed in between knows its own folder again.

    >>> with folder_written_whole("model") as partial:
    ...     _ = (partial / "config.json").write_text("{}")
    >>> [file.name for file in Path("model").iterdir()]
    ['config.json']
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=target.parent, prefix=_prefix(target)))
    except OSError as error:
        raise RelvecError(f"Cannot write {target}: {error.strerror}; choose another place.") from error
    try:
        yield partial
        target.mkdir(exist_ok=True)
        for old in (found for pattern in stale for found in target.glob(pattern)):
            is_replaced = old.name in first and (partial / old.name).exists()
            if not old.is_dir() and not is_replaced:
                old.unlink(missing_ok=True)
        for file in sorted(partial.iterdir(), key=lambda file: file.name not in first):
            file.chmod(0o666 & ~_umask())  # some writers keep files to their owner
            file.replace(target / file.name)
    except OSError as error:
        raise RelvecError(
            f"Cannot write {target}: {error.strerror or error}; choose another place or free space."
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def remove_leftovers(path: Path) -> None:
    """Remove what killed writers of `path` have left beside it; whoever calls this holds the lock of `path`."""
    for old in path.parent.glob(f"{glob.escape(_prefix(path))}*"):
        if old.is_dir():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.unlink(missing_ok=True)


def _prefix(path: Path) -> str:
    return f".{path.name}.{_TEMPORARY}"


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
