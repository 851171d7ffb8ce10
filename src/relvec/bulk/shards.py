"""From a part of the input to a shard: what every worker does, wherever it runs."""

import hashlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from relvec.bulk.manifest import JobHeader, Shard
from relvec.bulk.parts import VECTOR, Part, PartRows, Problem, read_part
from relvec.errors import RelvecError, UnknownWordsWarning
from relvec.io.addresses import write_whole
from relvec.io.tables import pyarrow
from relvec.model.relation_model import RelBERT
from relvec.pairs import Pair
from relvec.similarity import Vectors

PAIRS_PER_STEP = 1_024
"""Progress is reported after this many pairs."""

ReportRows = Callable[[int], object]
"""Reports the rows encoded since the last call; a negative number, if they were lost with their worker."""


@dataclass(frozen=True)
class Task:
    """What a worker must know besides its part; the header tells the model of the driver, and how to encode."""

    folder: str
    header: JobHeader
    model: str
    backend: str
    device: str | None
    batch_size: int
    strict: bool
    workers: int | None
    """How many there are; None for as many as there are cores."""
    ray_address: str | None

    def load(self) -> RelBERT:
        """The model, which must be the driver's also on another machine."""
        options: dict[str, Any] = {"backend": self.backend, "device": self.device, "dtype": self.header.dtype}
        model = RelBERT.from_pretrained(self.model, **options)
        if model.fingerprint != self.header.fingerprint:  # other last bits on another processor, or another model
            self.header.check(model, f"The folder {self.folder}")
        return model


class Done(NamedTuple):
    """A shard that is written, and the rows of its part that are not in it."""

    shard: Shard
    problems: list[dict[str, Any]]


def encode_part(task: Task, model: RelBERT, part: Part, report_rows: ReportRows) -> Done:
    """Encode a part and write its shard; the reported progress adds up to the rows of the part."""
    rows = read_part(part)
    refused = model.refused(rows.pairs, task.header.truncate)
    unfit = [Problem(row, refused[pair]) for row, pair in zip(rows.rows, rows.pairs, strict=True) if pair in refused]
    problems = sorted([*rows.problems, *unfit])
    if problems and task.strict:
        raise RelvecError(f"{part.file}, row {problems[0].row}: {problems[0].problem}")
    kept = [at for at, pair in enumerate(rows.pairs) if pair not in refused]
    distinct = list(dict.fromkeys(rows.pairs[at] for at in kept))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UnknownWordsWarning)
        encoded = _encoded(task, model, distinct, report_rows)
    unknown = sum(len(each.message.pairs) for each in found if isinstance(each.message, UnknownWordsWarning))
    row_of = {pair: row for row, pair in enumerate(distinct)}
    content = _parquet(rows, encoded[[row_of[rows.pairs[at]] for at in kept]], kept)
    write_whole(f"{task.folder}/{part.output}", content)
    report_rows(part.stop - part.start - len(distinct))
    shard = Shard(
        part=part.number,
        file=part.file,
        start=part.start,
        stop=part.stop,
        output=part.output,
        rows=len(kept),
        distinct=len(distinct),
        errors=len(problems),
        unknown=unknown,
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )
    return Done(shard, [{"part": part.number, "file": part.file, **problem._asdict()} for problem in problems])


def _encoded(task: Task, model: RelBERT, pairs: Sequence[Pair], report_rows: ReportRows) -> Vectors:
    """The vectors of distinct pairs, by steps of pairs that are encoded fast together."""
    vectors = np.empty((len(pairs), model.dim), dtype=np.float32)
    order = model.encoding_order(pairs)
    for start in range(0, len(pairs), PAIRS_PER_STEP):
        step = order[start : start + PAIRS_PER_STEP]
        options: dict[str, Any] = {"normalize": task.header.normalize, "truncate": task.header.truncate}
        vectors[step] = model.encode([pairs[at] for at in step], batch_size=task.batch_size, **options)
        report_rows(len(step))
    return vectors


def _parquet(rows: PartRows, vectors: Vectors, kept: list[int]) -> bytes:
    """The content of a shard: head, tail, the further columns of its part, and the vector."""
    arrow, parquet = pyarrow()
    words = {
        "head": arrow.array([rows.pairs[at][0] for at in kept], arrow.string()),
        "tail": arrow.array([rows.pairs[at][1] for at in kept], arrow.string()),
    }
    more = {name: column.take(arrow.array(kept, arrow.int64())) for name, column in rows.columns.items()}
    columns = {name: column for name, column in more.items() if name not in words}
    lists = arrow.FixedSizeListArray.from_arrays(arrow.array(vectors.ravel()), vectors.shape[1])
    table = arrow.table({**words, **columns, VECTOR: lists})
    sink = arrow.BufferOutputStream()
    parquet.write_table(table, sink, use_dictionary=list(columns), compression="zstd")
    return bytes(sink.getvalue())
