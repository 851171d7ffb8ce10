"""The one lock for outputs: whoever writes a file or a folder holds it, so that no two runs write the same one."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from relvec.errors import RelvecError
from relvec.io.files import expanded, remove_leftovers


@contextmanager
def output_lock(output: str | Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock of an output, `.<name>.lock` beside it; a second writer is refused, or waits if told to.

    Waiting is right where the second writer still has work when the first is done, as when both add to an index. Who
    gets the lock first removes the temporary files that a killed writer of the same output has left.

    >>> with output_lock("vectors.npz"), output_lock("vectors.npz"):
    ...     pass
    Traceback (most recent call last):
    relvec.errors.RelvecError: Another run is writing ...vectors.npz; wait for it or choose another output.
    """
    from filelock import FileLock, Timeout

    target = expanded(output).resolve()  # even "." has a name, and so a place beside it
    place = target.with_name(f".{target.name}.lock")
    lock = FileLock(place)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=target.parent).close()  # a lock on a read-only place would wait for ever
        lock.acquire(timeout=-1 if wait else 0)
    except Timeout as error:
        raise RelvecError(f"Another run is writing {output}; wait for it or choose another output.") from error
    except RuntimeError as error:  # this thread would wait for itself
        raise RelvecError(f"The block around this line writes {output} already; leave out this write.") from error
    except OSError as error:
        raise RelvecError(f"Cannot write {output}: {error.strerror}; choose another place.") from error
    try:
        remove_leftovers(target)
        yield
    finally:
        with suppress(OSError):  # some systems keep a file that is open, but there the lock removes its own
            place.unlink()  # while it is held: a lock file that has lost its name locks nobody out
        lock.release()
