"""Making and growing an index folder from long lists of pairs, in steps that survive an interruption."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from relvec.errors import RelvecError
from relvec.index.kinds import check_kind, faiss
from relvec.index.pair_index import PairIndex
from relvec.index.storage import read_meta, writing
from relvec.index.vocabulary import distinct_pairs
from relvec.model.embed import encoded_in_steps
from relvec.model.relation_model import BATCH_SIZE, RelBERT


def build_index(
    model: RelBERT,
    pairs: Any,
    folder: str | Path,
    *,
    relations: Sequence[str] | None = None,
    kind: str = "auto",
    batch_size: int = BATCH_SIZE,
    truncate: bool = False,
    show_progress: bool | None = None,
) -> int:
    """Encode pairs and write their index, replacing one that is there; return how many an earlier run had encoded.

    Finished vectors lie in `<folder>.partial`: the same job, started again, goes on from there.

    >>> from relvec import RelBERT
    >>> model = RelBERT.from_pretrained(tiny_model)
    >>> build_index(model, [("Paris", "France"), ("Tokyo", "Japan")], "my.index")
    0
    >>> PairIndex.load("my.index").pairs.pairs()
    [('Paris', 'France'), ('Tokyo', 'Japan')]
    """
    faiss()
    target = Path(folder).resolve()  # even "." has a name, and so a place beside it
    distinct, labels = distinct_pairs(pairs, relations)
    if not distinct:
        raise RelvecError("There is no pair to index; give at least one.")
    check_kind(kind, len(distinct)).check_size(len(distinct), model.dim)
    with (
        writing(target),
        encoded_in_steps(
            model, distinct, target, batch_size=batch_size, truncate=truncate, show_progress=show_progress
        ) as (vectors, done),
    ):
        index = PairIndex.of_vectors(
            distinct, vectors, model=model, relations=labels, kind=kind, show_progress=show_progress
        )
        index.write(target)
    return done


def extend_index(
    model: RelBERT,
    pairs: Any,
    folder: str | Path,
    *,
    relations: Sequence[str] | None = None,
    batch_size: int = BATCH_SIZE,
    truncate: bool = False,
    show_progress: bool | None = None,
) -> int:
    """Encode the pairs that an index folder lacks, append them, and return how many they were.

    >>> from relvec import RelBERT
    >>> model = RelBERT.from_pretrained(tiny_model)
    >>> _ = build_index(model, [("Paris", "France")], "my.index")
    >>> extend_index(model, [("Paris", "France"), ("Tokyo", "Japan")], "my.index")
    1
    """
    target = Path(folder).resolve()
    read_meta(target)  # no lock file is put where there is no index
    distinct, labels = distinct_pairs(pairs, relations)
    with writing(target):
        index = PairIndex.load(target, writable=True)
        index.check_model(model)
        is_new = index.pairs.rows_of(distinct) < 0
        new = [pair for pair, keep in zip(distinct, is_new, strict=True) if keep]
        if not new:
            return 0
        with encoded_in_steps(
            model, new, target, batch_size=batch_size, truncate=truncate, show_progress=show_progress
        ) as (vectors, _):
            new_labels = [label for label, keep in zip(labels, is_new, strict=True) if keep]
            index.add(model, new, relations=new_labels, vectors=vectors)
            index.write(target)
    return len(new)
