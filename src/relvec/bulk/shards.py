"""From a part of the input to a shard: what every worker does, wherever it runs."""

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from relvec.bulk.manifest import Shard
from relvec.bulk.parts import VECTOR, Part, PartRows, Problem, read_part
from relvec.errors import RelvecError, UnknownWordsWarning
from relvec.io.addresses import write_whole
from relvec.io.tables import pyarrow
from relvec.model.model_check import ModelCheck
from relvec.model.relation_model import RelBERT
from relvec.pairs import Pair
from relvec.similarity import Vectors


@dataclass(frozen=True)
class Task:
    """What a worker must know besides its part; `made_by` is the model as the driver knows it."""

    folder: str
    model: str
    made_by: ModelCheck
    backend: str
    device: str | None
    dtype: str
    batch_size: int
    normalize: bool
    truncate: bool
    strict: bool

    def load(self) -> RelBERT:
        """The model, which must be the driver's also on another machine."""
        model = RelBERT.from_pretrained(self.model, backend=self.backend, device=self.device, dtype=self.dtype)
        if model.fingerprint != self.made_by.fingerprint:  # other last bits on another processor, or another model
            self.made_by.check(model, f"The folder {self.folder}")
        return model


class Done(NamedTuple):
    """A shard that is written, and the rows of its part that are not in it."""

    shard: Shard
    problems: list[dict[str, Any]]


def encode_part(task: Task, model: RelBERT, part: Part) -> Done:
    """Encode a part and write its shard."""
    rows = read_part(part)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UnknownWordsWarning)
        vectors, too_long = _vectors(task, model, rows)
    unknown = sum(len(each.message.pairs) for each in found if isinstance(each.message, UnknownWordsWarning))
    problems = sorted([*rows.problems, *too_long.values()])
    if problems and task.strict:
        raise RelvecError(f"{part.file}, row {problems[0].row}: {problems[0].problem}")
    content = _parquet(rows, vectors, [at for at in range(len(rows.pairs)) if at not in too_long])
    write_whole(f"{task.folder}/{part.output}", content)
    shard = Shard(
        part=part.number,
        file=part.file,
        start=part.start,
        stop=part.stop,
        output=part.output,
        rows=len(vectors),
        distinct=len(set(rows.pairs)) - len({rows.pairs[at] for at in too_long}),
        errors=len(problems),
        unknown=unknown,
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )
    return Done(shard, [{"part": part.number, "file": part.file, **problem._asdict()} for problem in problems])


def _vectors(task: Task, model: RelBERT, rows: PartRows) -> tuple[Vectors, dict[int, Problem]]:
    """The vectors of the pairs that the model can take, each distinct pair encoded once; the others by their place."""
    try:
        return _encoded(task, model, rows.pairs), {}
    except RelvecError:
        bad = _refused(model, rows.pairs) if not task.truncate else {}
        if not bad:
            raise
    too_long = {at: Problem(rows.rows[at], bad[pair]) for at, pair in enumerate(rows.pairs) if pair in bad}
    return _encoded(task, model, [pair for pair in rows.pairs if pair not in bad]), too_long


def _encoded(task: Task, model: RelBERT, pairs: list[Pair]) -> Vectors:
    vectors = model.encode(pairs, batch_size=task.batch_size, normalize=task.normalize, truncate=task.truncate)
    if not np.isfinite(vectors).all():
        raise RelvecError(f"{model.name} gives vectors that are not finite; its weights are damaged: get it anew.")
    return vectors


def _refused(model: RelBERT, pairs: Sequence[Pair]) -> dict[Pair, str]:
    """The pairs that the model does not take, and why."""
    found = {}
    for pair in dict.fromkeys(pairs):
        try:
            model.token_ids([pair])
        except RelvecError as error:
            found[pair] = str(error)
    return found


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
