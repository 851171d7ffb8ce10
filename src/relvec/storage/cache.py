"""The one cache: what was computed once is kept in a single SQLite file, and so a run that was killed resumes.

Everything goes to `<cache folder>/cache.sqlite`: vectors of pairs, likelihoods of texts, counts of a corpus, fitted
classifiers. It grows without bound (a vector of 768 dimensions takes 3 kB, so a million pairs take 3 GB); `relvec cache
info` shows what it holds and `relvec cache clear` empties it. The file is in WAL mode, which needs a local disk.
"""

import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from relvec.errors import RelvecError
from relvec.io.files import atomic_write, expanded
from relvec.storage.lock import output_lock

FILE_NAME = "cache.sqlite"
KEYS_PER_QUERY = 8192
WAIT_SECONDS = 120
# Pages of 16 kB hold five vectors of 768 dimensions; those of 4 kB would hold one and waste a quarter.
SCHEMA = """
    PRAGMA page_size = 16384;
    PRAGMA journal_mode = WAL;
    CREATE TABLE spaces (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, about TEXT NOT NULL);
    CREATE TABLE entries (space INTEGER NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, crc INTEGER NOT NULL);
    CREATE UNIQUE INDEX entry ON entries (space, key);
"""


def cache_folder() -> Path:
    """`RELVEC_CACHE`, else `relvec` in the user's cache folder."""
    if chosen := os.environ.get("RELVEC_CACHE"):
        return expanded(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relvec"


class SpaceInfo(NamedTuple):
    """What a space of the cache holds."""

    name: str
    about: str
    entries: int
    value_bytes: int


class Cache:
    """Values by key, in a space of their own; threads and processes may share it.

    A value that is damaged on disk counts as missing: `get` leaves it out, and `missing` names its key from then on.

    >>> cache = Cache("lengths", folder="cache")
    >>> cache.add({"tea": b"3", "coffee": b"6"})
    >>> cache.missing(["tea", "milk"]), cache.get(["tea", "milk"])
    (['milk'], {'tea': b'3'})
    """

    def __init__(self, space: str, *, about: str = "", folder: str | Path | None = None) -> None:
        """Use a space of the cache; `about` says in `relvec cache info` what it holds."""
        self._space = space
        self._about = about
        self._path = _made(folder)

    def missing(self, keys: Iterable[str]) -> list[str]:
        """The distinct keys that are not here yet."""
        distinct = dict.fromkeys(keys)
        known = {key for (key,) in self._rows("key", distinct)}
        return [key for key in distinct if key not in known]

    def get(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The values of those keys that are here."""
        found, damaged = {}, []
        for key, value, crc in self._rows("key, value, crc", keys):
            if _is_whole(key, value, crc):
                found[key] = value
            else:
                damaged.append(key)
        if damaged:
            self.remove(damaged)
        return found

    def _rows(self, columns: str, keys: Iterable[str]) -> Iterator[Any]:
        """Columns of the entries that have one of the keys."""
        remaining = iter(dict.fromkeys(keys))
        query = f"SELECT {columns} FROM entries WHERE space = {_ID} AND key IN (SELECT value FROM json_each(?))"
        with _connected(self._path) as connection:
            while step := list(islice(remaining, KEYS_PER_QUERY)):
                yield from connection.execute(query, (self._space, json.dumps(step)))

    def add(self, items: Mapping[str, bytes]) -> None:
        """Keep values, in one transaction; that of a known key is replaced."""
        rows = [(self._space, key, value, _crc(key, value)) for key, value in items.items()]
        with _connected(self._path) as connection, _transaction(connection):
            connection.execute("INSERT OR IGNORE INTO spaces (name, about) VALUES (?, ?)", (self._space, self._about))
            connection.executemany(f"INSERT OR REPLACE INTO entries VALUES ({_ID}, ?, ?, ?)", rows)

    def get_json(self, keys: Iterable[str]) -> dict[str, Any]:
        """The values of `add_json`."""
        return {key: json.loads(value) for key, value in self.get(keys).items()}

    def add_json(self, items: Mapping[str, Any]) -> None:
        """Keep values that JSON can express."""
        self.add({key: json.dumps(value, ensure_ascii=False).encode() for key, value in items.items()})

    def remove(self, keys: Iterable[str]) -> None:
        """Forget some keys."""
        with _connected(self._path) as connection, _transaction(connection):
            rows = [(self._space, key) for key in keys]
            connection.executemany(f"DELETE FROM entries WHERE space = {_ID} AND key = ?", rows)


def cache_info(folder: str | Path | None = None) -> list[SpaceInfo]:
    """What each space holds, the largest first."""
    with _connected(_made(folder)) as connection:
        rows = connection.execute(
            "SELECT name, about, count(*), sum(length(value)) AS bytes FROM entries JOIN spaces ON space = id "
            "GROUP BY id ORDER BY bytes DESC, name"
        )
        return [SpaceInfo(*row) for row in rows]


def check_cache(path: Path) -> int:
    """Compare every value of a cache with its checksum, and return how many there are."""
    with _connected(path) as connection:
        rows = connection.execute("SELECT key, value, crc FROM entries")
        is_whole = [_is_whole(*row) for row in rows]
    if not all(is_whole):
        problem = f"{is_whole.count(False):,} of {len(is_whole):,} entries of {path} are damaged"
        raise RelvecError(f"{problem}; they are computed again when they are needed.")
    return len(is_whole)


def clear_cache(folder: str | Path | None = None) -> None:
    """Remove every entry and give the disk space back."""
    with _connected(_made(folder)) as connection:
        connection.execute("DELETE FROM entries")
        connection.execute("DELETE FROM spaces")
        connection.execute("VACUUM")


_OF_THE_PLACE = tuple(f"SQLITE_{name}" for name in ("BUSY", "LOCKED", "FULL", "READONLY", "CANTOPEN", "IOERR", "PERM"))
_ID = "(SELECT id FROM spaces WHERE name = ?)"


def _made(folder: str | Path | None) -> Path:
    """The path of the database, which is made whole if it is not there."""
    path = (Path(folder) if folder is not None else cache_folder()) / FILE_NAME
    if not path.is_file():
        with output_lock(path, wait=True):
            if not path.is_file():  # another process may have made it while this one waited
                for rest in path.parent.glob(f"{path.name}-*"):
                    rest.unlink(missing_ok=True)  # the log of a removed database would be played into the new one
                with atomic_write(path) as partial, _connected(partial) as connection:
                    connection.executescript(SCHEMA)
    return path


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection for one operation: none is shared by threads or carried into a forked process."""
    try:
        # Autocommit: transactions begin and end where the code says so.
        with closing(sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = NORMAL")
            yield connection
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # damage may be in any text, even in an error's own
        if getattr(error, "sqlite_errorname", "").startswith(_OF_THE_PLACE):
            fix = "free space there, or set RELVEC_CACHE"
            raise RelvecError(f"Cannot use the cache {path} ({error}); {fix}.") from error
        raise RelvecError(f"The cache {path} is damaged ({error}); remove the file to compute again.") from error


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Begin as a writer at once: a reader that becomes one could not wait for another writer."""
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        yield


def _crc(key: str, value: bytes) -> int:
    """Of key and value, so that a value that got to another key is noticed as well."""
    return zlib.crc32(value, zlib.crc32(key.encode()))


def _is_whole(key: str, value: Any, crc: int) -> bool:
    return isinstance(value, bytes) and crc == _crc(key, value)
