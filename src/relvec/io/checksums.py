"""Checksums of stored files: written beside them, compared when they are opened, all of them by `relvec verify`.

A folder has them in `checksums.sha256`, in the form that `sha256sum -c` reads. Who writes a folder calls
`write_checksums(partial)` last of all, inside `atomic_folder`; who opens one calls `check_folder(folder)`. For
models that is done: `StoredModel.find` checks whatever files the folder tells of, for every backend. What is replaced
in one step keeps the checksums in its own metadata, as the meta.json of an index does, and calls `check_files`.
"""

from collections.abc import Mapping
from pathlib import Path

from relvec.errors import RelvecError
from relvec.io.files import checksum

CHECKSUMS_NAME = "checksums.sha256"
CHEAP_BYTES = 16 << 20  # read in some hundredths of a second
_FIX = f"get or make it again, or remove {CHECKSUMS_NAME} if you changed the file yourself"


def write_checksums(folder: Path) -> None:
    """Write the SHA-256 of every file of a folder, but for the README, which people edit.

    >>> Path("model").mkdir()
    >>> _ = Path("model", "config.json").write_text("{}")
    >>> write_checksums(Path("model"))
    >>> Path("model", "checksums.sha256").read_text()
    '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a  config.json\\n'
    """
    files = sorted(path for path in folder.iterdir() if path.is_file())
    lines = [f"{checksum(path)}  {path.name}\n" for path in files if path.name not in (CHECKSUMS_NAME, "README.md")]
    (folder / CHECKSUMS_NAME).write_text("".join(lines), encoding="utf-8")


def read_checksums(folder: Path) -> dict[Path, str]:
    """The checksums that a folder has of its files; none if it was written by a program that writes none."""
    path = folder / CHECKSUMS_NAME
    text = path.read_bytes().decode(errors="replace") if path.is_file() else ""
    lines = text.replace("\0", "?").splitlines()  # a damaged name is that of no file, and no name has a null
    return {folder / name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def check_folder(folder: Path, *, every: bool = False) -> int:
    """Refuse a folder of which a file is not what was stored; return how many files were read.

    >>> Path("model").mkdir()
    >>> _ = Path("model", "config.json").write_text("{}")
    >>> write_checksums(Path("model"))
    >>> check_folder(Path("model"))
    1
    >>> _ = Path("model", "config.json").write_text("[]")
    >>> check_folder(Path("model"))
    Traceback (most recent call last):
    relvec.errors.RelvecError: model/config.json is not what was stored; get or make it again, or remove ...
    """
    return check_files(read_checksums(folder), folder / CHECKSUMS_NAME, _FIX, every=every)


def check_files(checksums: Mapping[Path, str], manifest: Path, fix: str, *, every: bool = False) -> int:
    """Refuse a file that is not what was stored, and return how many were read; `manifest` is what has the checksums.

    Unless `every` file is wanted, a large one is read only if it is newer than `manifest`, which is written last, and
    one that is missing is left to whoever needs it.
    """
    read = [path for path in checksums if every or _is_due(path, manifest)]
    for path in read:
        if checksum(path) != checksums[path]:
            raise RelvecError(f"{path} is not what was stored; {fix}.")
    return len(read)


def _is_due(path: Path, manifest: Path) -> bool:
    try:
        file = path.stat()
        return file.st_size <= CHEAP_BYTES or file.st_mtime_ns > manifest.stat().st_mtime_ns
    except FileNotFoundError:  # a writer may take it away at this very moment
        return False
