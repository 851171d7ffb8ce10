"""Encoding a long list of pairs into a file."""

from pathlib import Path
from typing import Any

from relvec.errors import RelvecError
from relvec.io.vectors import check_output, write_pair_file
from relvec.model.cached_vectors import ModelVectors, Prepared
from relvec.model.relation_model import BATCH_SIZE, RelBERT
from relvec.pairs import as_pairs
from relvec.storage.lock import writing


def embed_to_file(
    model: RelBERT,
    pairs: Any,
    output: str | Path,
    *,
    batch_size: int = BATCH_SIZE,
    normalize: bool = False,
    truncate: bool = False,
    show_progress: bool | None = None,
) -> Prepared:
    """Write the vectors of `pairs` to a file, in the format of its ending (`relvec.io.vectors` lists them).

    `pairs` are those that `encode` takes, except prototypes. Vectors go through the cache into the file, so that a run
    that was killed resumes and memory holds a few thousand vectors at a time.

    >>> from relvec import RelBERT
    >>> model = RelBERT.from_pretrained(tiny_model)
    >>> embed_to_file(model, [("Paris", "France"), ("Tokyo", "Japan")], "vectors.npz")
    Prepared(encoded=2, cached=0)
    >>> import numpy as np
    >>> with np.load("vectors.npz") as file:
    ...     file["head"].tolist(), file["vectors"].shape
    (['Paris', 'Tokyo'], (2, 16))
    """
    target = Path(output)
    check_output(target)
    listed = as_pairs(pairs)
    if not listed:
        raise RelvecError("There is no pair to encode; give at least one.")
    vectors = ModelVectors(model, batch_size=batch_size, show_progress=show_progress)
    with writing(target):
        prepared = vectors.prepare(listed, truncate=truncate)
        rows = vectors.rows(listed, normalize=normalize)
        write_pair_file(target, listed, lambda start, stop: rows[start:stop])
    return prepared
