"""The same command again: an interrupted job resumes, a finished one does nothing, another job's output is kept.

A job is identified by a checksum of everything that decides its result. A journal, a checkpoint, an index and a trained
model store that checksum; a file of vectors is identified by its own bytes.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from relvec.errors import RelvecError
from relvec.io.files import atomic_write, checksum, expanded


def job_of(*decisive: object) -> str:
    """The checksum that identifies a job: of everything that decides its result.

    >>> job_of("minilm", 80) == job_of("minilm", 90)
    False
    """
    return hashlib.sha256(repr(decisive).encode()).hexdigest()


def check_job(is_same: bool, output: str | Path) -> None:
    """Refuse an output that another job has begun or made."""
    if not is_same:
        problem = f"{output} belongs to a run with another base, other settings or other data"
        raise RelvecError(f"{problem}; remove it, or choose another output.")


@contextmanager
def atomic_write_once(path: str | Path) -> Iterator[Path]:
    """As `atomic_write`, for a file that is the whole output: an existing file with other content is not replaced.

    >>> for text in ("tea", "tea", "wine"):
    ...     with atomic_write_once("words.txt") as partial:
    ...         _ = partial.write_text(text)
    Traceback (most recent call last):
    relvec.errors.RelvecError: words.txt belongs to a run with another base, other settings or other data; ...
    """
    target = expanded(path)
    with atomic_write(target) as partial:
        yield partial
        check_job(not target.exists() or checksum(target) == checksum(partial), target)
