"""Encoding a long list of pairs into a file, in steps that survive an interruption.

Finished vectors are appended to `<output>.partial`; the same job started again goes on from there. The file begins with
`HEADER` and the digest of its job, so that neither another job's vectors nor a user's file are taken for its own.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from relvec.errors import RelvecError
from relvec.io.vectors import check_output, write_pair_file
from relvec.model.relation_model import BATCH_SIZE, RelBERT
from relvec.pairs import Pair, as_pairs
from relvec.progress import progress_bar
from relvec.similarity import Vectors

PAIRS_PER_STEP = 2048
HEADER = b"relvec vectors 1"  # 16 bytes, so that the numbers after it are aligned


def embed_to_file(
    model: RelBERT,
    pairs: Any,
    output: str | Path,
    *,
    batch_size: int = BATCH_SIZE,
    normalize: bool = False,
    truncate: bool = False,
    show_progress: bool | None = None,
) -> int:
    """Write the vectors of `pairs` to a file, in the format of its ending; return how many an earlier run had done.

    `pairs` are those that `encode` takes, but for prototypes.

    >>> from relvec import RelBERT
    >>> model = RelBERT.from_pretrained(tiny_model)
    >>> embed_to_file(model, [("Paris", "France"), ("Tokyo", "Japan")], "vectors.npz")
    0
    >>> with np.load("vectors.npz") as file:
    ...     file["head"].tolist(), file["vectors"].shape
    (['Paris', 'Tokyo'], (2, 16))
    """
    target = Path(output)
    check_output(target)
    listed = as_pairs(pairs)
    if not listed:
        raise RelvecError("There is no pair to encode; give at least one.")
    distinct = list(dict.fromkeys(listed))
    with encoded_in_steps(
        model,
        distinct,
        target,
        batch_size=batch_size,
        normalize=normalize,
        truncate=truncate,
        show_progress=show_progress,
    ) as (encoded, done):
        if len(distinct) < len(listed):  # else the vectors can stay on disk
            row_of = {pair: row for row, pair in enumerate(distinct)}
            encoded = encoded[[row_of[pair] for pair in listed]]
        write_pair_file(target, listed, lambda start, stop: encoded[start:stop])
    return done


@contextmanager
def encoded_in_steps(
    model: RelBERT,
    pairs: Sequence[Pair],
    output: Path,
    *,
    batch_size: int = BATCH_SIZE,
    normalize: bool = False,
    truncate: bool = False,
    show_progress: bool | None = None,
) -> Iterator[tuple[Vectors, int]]:
    """The vectors of distinct pairs, read from disk as they are needed, and how many of them an earlier run had done.

    They lie in `<output>.partial`, which goes once the block has put them to use; until then no other run may use it.
    """
    if batch_size < 1:
        raise RelvecError(f"A batch of {batch_size} pairs is impossible; use 1 or more.")
    for start in range(0, len(pairs), PAIRS_PER_STEP):  # a pair that cannot be encoded is named before the work
        model.token_ids(pairs[start : start + PAIRS_PER_STEP], truncate)
    partial = output.with_name(f"{output.name}.partial")
    job = hashlib.sha256(repr((model.fingerprint, normalize, truncate, list(pairs))).encode()).digest()
    beginning = HEADER + job
    try:
        with _locked(output):
            done = _finished_rows(partial, beginning, model.dim)
            with (
                partial.open("r+b" if done else "wb") as file,
                progress_bar(len(pairs), "Encoding", show=show_progress, initial=done) as bar,
            ):
                if not done:
                    file.write(beginning)
                file.truncate(len(beginning) + done * _row_bytes(model.dim))
                file.seek(0, 2)
                for start in range(done, len(pairs), PAIRS_PER_STEP):
                    step = pairs[start : start + PAIRS_PER_STEP]
                    vectors = model.encode(step, batch_size=batch_size, normalize=normalize, truncate=truncate)
                    file.write(vectors.tobytes())
                    file.flush()
                    bar.update(len(step))
            shape = (len(pairs), model.dim)
            yield np.memmap(partial, dtype=np.float32, mode="r", offset=len(beginning), shape=shape), done
            partial.unlink()
    except OSError as error:
        reason = error.strerror or error
        raise RelvecError(f"Cannot write {output}: {reason}; choose another place or free space.") from error


@contextmanager
def _locked(output: Path) -> Iterator[None]:
    """One run at a time writes an output; a second one is refused."""
    from filelock import FileLock, Timeout

    place = output.with_name(f".{output.name}.partial.lock")
    lock = FileLock(place)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise RelvecError(f"Another run is writing {output}; wait for it or choose another output.") from error
    try:
        yield
    finally:
        with suppress(OSError):  # some systems keep a file that is open, but then the lock removes its own
            place.unlink()  # while it is held: a lock that has lost its name is not given to the next
        lock.release()


def _finished_rows(partial: Path, beginning: bytes, dim: int) -> int:
    """How many vectors of this very job a broken-off run has left; a file with anything else in it is refused."""
    if not partial.exists():
        return 0
    with partial.open("rb") as file:
        found = file.read(len(beginning))
    size = partial.stat().st_size
    if not found.startswith(HEADER[: len(found)]):
        raise RelvecError(f"{partial} is no unfinished work of relvec; move it away or choose another output.")
    if found != beginning and size > len(beginning):
        fix = "finish it, remove the file or choose another output"
        raise RelvecError(f"{partial} holds the vectors of another job that was broken off; {fix}.")
    return max(size - len(beginning), 0) // _row_bytes(dim)


def _row_bytes(dim: int) -> int:
    return dim * np.dtype(np.float32).itemsize
