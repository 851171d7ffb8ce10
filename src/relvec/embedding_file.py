"""Encoding a long list of pairs into a file, in steps that survive an interruption.

Finished vectors are appended to `<output>.partial`; the same job started again goes on from there.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from relvec.errors import RelvecError
from relvec.files import written_whole
from relvec.pairs import Pair, as_pairs
from relvec.progress import progress_bar
from relvec.relation_model import BATCH_SIZE, RelationModel
from relvec.similarity import Vectors

PAIRS_PER_STEP = 2048


def embed_to_file(
    model: RelationModel,
    pairs: Any,
    output: str | Path,
    *,
    batch_size: int = BATCH_SIZE,
    normalize: bool = False,
    truncate: bool = False,
    show_progress: bool | None = None,
) -> int:
    """Write the vectors of `pairs` to a .npz, .npy, .jsonl or .parquet file; return how many an earlier run had done.

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
    write = writer_for(target)
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
        row_of = {pair: row for row, pair in enumerate(distinct)}
        with written_whole(target) as path, path.open("wb") as file:
            write(file, listed, encoded[[row_of[pair] for pair in listed]])
    return done


@contextmanager
def encoded_in_steps(
    model: RelationModel,
    pairs: Sequence[Pair],
    output: Path,
    *,
    batch_size: int = BATCH_SIZE,
    normalize: bool = False,
    truncate: bool = False,
    show_progress: bool | None = None,
) -> Iterator[tuple[Vectors, int]]:
    """The vectors of distinct pairs, read from disk as they are needed, and how many of them an earlier run had done.

    They lie in `<output>.partial`, which goes once the block has put them to use.
    """
    for start in range(0, len(pairs), PAIRS_PER_STEP):  # a pair that cannot be encoded is named before the work
        model.token_ids(pairs[start : start + PAIRS_PER_STEP], truncate)
    partial = output.with_name(f"{output.name}.partial")
    job = hashlib.sha256(repr((model.fingerprint, normalize, truncate, list(pairs))).encode()).digest()
    done = _finished_rows(partial, job, model.dim)
    try:
        with (
            partial.open("r+b" if done else "wb") as file,
            progress_bar(len(pairs), "Encoding", show=show_progress, initial=done) as bar,
        ):
            if not done:
                file.write(job)
            file.truncate(len(job) + done * _row_bytes(model.dim))
            file.seek(0, 2)
            for start in range(done, len(pairs), PAIRS_PER_STEP):
                step = pairs[start : start + PAIRS_PER_STEP]
                vectors = model.encode(step, batch_size=batch_size, normalize=normalize, truncate=truncate)
                file.write(vectors.tobytes())
                file.flush()
                bar.update(len(step))
        shape = (len(pairs), model.dim)
        yield np.memmap(partial, dtype=np.float32, mode="r", offset=len(job), shape=shape), done
    except OSError as error:
        raise RelvecError(f"Cannot write {output}: {error.strerror}; choose another place or free space.") from error
    partial.unlink()


def _finished_rows(partial: Path, job: bytes, dim: int) -> int:
    """How many vectors of this very job a broken-off run has left."""
    if not partial.is_file():
        return 0
    with partial.open("rb") as file:
        same_job = file.read(len(job)) == job
    return (partial.stat().st_size - len(job)) // _row_bytes(dim) if same_job else 0


def _row_bytes(dim: int) -> int:
    return dim * np.dtype(np.float32).itemsize


def _write_npz(file: BinaryIO, pairs: Sequence[Pair], vectors: Vectors) -> None:
    heads, tails = zip(*pairs, strict=True)
    np.savez_compressed(file, head=np.array(heads), tail=np.array(tails), vectors=vectors)


def _write_npy(file: BinaryIO, pairs: Sequence[Pair], vectors: Vectors) -> None:
    np.save(file, vectors)


def _write_jsonl(file: BinaryIO, pairs: Sequence[Pair], vectors: Vectors) -> None:
    for (head, tail), vector in zip(pairs, vectors, strict=True):
        row = {"head": head, "tail": tail, "vector": [round(float(number), 6) for number in vector]}
        file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _write_parquet(file: BinaryIO, pairs: Sequence[Pair], vectors: Vectors) -> None:
    from relvec.index.pair_files import write_parquet

    write_parquet(file, pairs, [""] * len(pairs), lambda start, stop: vectors[start:stop])


Writer = Callable[[BinaryIO, Sequence[Pair], Vectors], None]

WRITERS: dict[str, Writer] = {
    ".npz": _write_npz,
    ".npy": _write_npy,
    ".jsonl": _write_jsonl,
    ".parquet": _write_parquet,
}


def writer_for(output: Path) -> Writer:
    """The writer for a file ending, checked before anything is encoded."""
    if output.suffix.lower() not in WRITERS:
        raise RelvecError(f"Cannot write {output.name}; end the file name in {', '.join(WRITERS)}.")
    if not output.parent.is_dir():
        raise RelvecError(f"There is no folder {output.parent}; make it first.")
    if output.is_dir():
        raise RelvecError(f"{output} is a folder; give a file name that ends in {', '.join(WRITERS)}.")
    return WRITERS[output.suffix.lower()]
