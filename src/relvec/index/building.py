"""Making and growing an index folder from long lists of pairs; what is killed resumes from the cache."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from relvec.index.kinds import check_kind
from relvec.index.pair_index import PairIndex
from relvec.index.storage import read_meta, writing
from relvec.index.vocabulary import distinct_pairs
from relvec.model.cached_vectors import ModelVectors, Prepared
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
) -> Prepared:
    """Encode pairs and write their index, replacing one that is there; `relations` names the relation of each pair.

    >>> from relvec import RelBERT
    >>> model = RelBERT.from_pretrained(tiny_model)
    >>> build_index(model, [("Paris", "France"), ("Tokyo", "Japan")], "my.index")
    Prepared(encoded=2, cached=0)
    >>> PairIndex.load("my.index").pairs.pairs()
    [('Paris', 'France'), ('Tokyo', 'Japan')]
    """
    target = Path(folder).resolve()
    distinct, labels = distinct_pairs(pairs, relations)
    check_kind(kind, len(distinct)).check_size(len(distinct), model.dim)
    vectors = ModelVectors(model, batch_size=batch_size, show_progress=show_progress)
    with writing(target, wait=False):
        prepared = vectors.prepare(distinct, truncate=truncate)
        rows = vectors.rows(distinct)
        index = PairIndex.of_vectors(
            distinct, rows, model=model, relations=labels, kind=kind, show_progress=show_progress
        )
        index.write(target)
    return prepared


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
        new, new_labels = index.lacking(distinct, labels)
        if new:
            vectors = ModelVectors(model, batch_size=batch_size, show_progress=show_progress)
            vectors.prepare(new, truncate=truncate)
            index.append(new, new_labels, vectors.rows(new))
            index.write(target)
    return len(new)
