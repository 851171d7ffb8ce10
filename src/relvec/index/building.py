"""Index folders from long lists of pairs or from vectors made before, and their vectors for others."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from relvec.bulk.manifest import Manifest
from relvec.errors import RelvecError
from relvec.index import storage
from relvec.index.kinds import KINDS, check_kind
from relvec.index.pair_index import PairIndex
from relvec.index.shard_vectors import ShardVectors
from relvec.index.vector_store import VectorRows, VectorStore, check_shorter
from relvec.index.vocabulary import PairVocabulary, distinct_pairs
from relvec.io.files import checksum, expanded
from relvec.io.tables import tsv_cell
from relvec.io.vectors import FORMATS, check_output, read_pair_file, write_pair_file
from relvec.model.cached_vectors import ModelVectors, Prepared, embed_to_file
from relvec.model.model_check import ModelCheck, check_same_model
from relvec.model.relation_model import BATCH_SIZE, RelBERT
from relvec.storage.job import atomic_write_once, job_of
from relvec.storage.lock import output_lock

SAMPLED = 16
IMPORT_COSINE = 0.999  # half precision still reaches it


def build_index(
    model: RelBERT,
    pairs: Any,
    folder: str | Path,
    *,
    relations: Sequence[str] | None = None,
    kind: str = "auto",
    shorter: int | None = None,
    batch_size: int = BATCH_SIZE,
    truncate: bool = False,
) -> Prepared:
    """Encode pairs and write their index, unless it is there; `relations` names the relation of each pair.

    `shorter` reduces the vectors to this many dimensions, by a projection that is fitted to them.

    >>> model = RelBERT.from_pretrained(tiny_model)
    >>> build_index(model, [("Paris", "France"), ("Tokyo", "Japan")], "my.index")
    Prepared(encoded=2, cached=0)
    >>> PairIndex.load("my.index").pairs.pairs()
    [('Paris', 'France'), ('Tokyo', 'Japan')]
    """
    distinct, labels = distinct_pairs(pairs, relations)
    chosen = check_kind(kind, len(distinct))
    chosen.check_size(len(distinct), model.dim)
    if shorter is not None:
        check_shorter(shorter, KINDS["flat"] if storage.is_milvus(folder) else chosen, model.dim)
    vectors = ModelVectors(model, batch_size=batch_size)
    job = job_of("build", vectors.fingerprint, distinct, labels, kind, shorter)
    with _new_index(folder, job) as is_finished:
        if is_finished:
            return Prepared(0, len(distinct))
        prepared = vectors.prepare(distinct, truncate=truncate)
        pairs = PairVocabulary.of(distinct, labels)
        _write(folder, pairs, vectors.rows(distinct), ModelCheck.of(model), kind, shorter, job)
    return prepared


def index_shards(shards: str | Path, folder: str | Path, *, kind: str = "auto", shorter: int | None = None) -> int:
    """Make an index of the vectors of `relvec.bulk.embed_files`, and return how many pairs it has.

    Of several rows of a pair the first counts. Shards are read one after the other: a folder needs the memory of its
    kind and, while it is built, about 100 bytes a row for the words; Milvus needs that of a shard.

    >>> from relvec.bulk import embed_files
    >>> _ = Path("pairs.csv").write_text("Paris,France\\ncup,tea\\ncup,tea\\n")
    >>> _ = embed_files("pairs.csv", "vectors", model=tiny_model, workers=1)
    >>> index_shards("vectors", "my.index"), PairIndex.load("my.index").pairs.pairs()
    (2, [('Paris', 'France'), ('cup', 'tea')])
    """
    found = ShardVectors(Manifest.read(str(shards)))
    if storage.is_milvus(folder):
        from relvec.index.milvus import MilvusIndex

        return len(MilvusIndex.filled(str(folder), found.made_by, found, shorter, found.to_overwrite()))
    job = job_of("shards", [shard.sha256 for shard in found.shards], kind, shorter)
    with _new_index(folder, job) as is_finished:
        if is_finished:
            return storage.read_meta(expanded(folder)).count
        pairs, vectors = found.distinct()
        _write(folder, pairs, vectors, found.made_by, kind, shorter, job)
    return len(pairs)


@contextmanager
def _new_index(address: str | Path, job: str) -> Iterator[bool]:
    """The lock of an index folder, and whether this very job has made it already; Milvus has its own."""
    if storage.is_milvus(address):
        yield False
        return
    with storage.writing_index(expanded(address).resolve(), wait=False):
        yield storage.is_finished(expanded(address), job)


def _write(
    address: str | Path,
    pairs: PairVocabulary,
    vectors: VectorRows,
    made_by: ModelCheck,
    kind: str,
    shorter: int | None,
    job: str,
) -> None:
    """Write an index, inside `_new_index`."""
    if storage.is_milvus(address):
        from relvec.index.milvus import MilvusIndex

        blocks = [(pairs.pairs(), pairs.all_relations(), vectors)]
        MilvusIndex.filled(str(address), made_by, vectors, shorter, blocks)
    else:
        store = VectorStore.of(vectors, check_kind(kind, len(pairs)), shorter)
        PairIndex(store, pairs, made_by).write(expanded(address).resolve(), job)


def import_index(path: str | Path, folder: str | Path, *, model: RelBERT, kind: str = "auto") -> int:
    """Make an index of vectors that the model made, and return how many; of several rows of one pair the first counts.

    Some of the pairs are encoded again, so that vectors of another model are refused.

    >>> from relvec.model.cached_vectors import embed_to_file
    >>> model = RelBERT.from_pretrained(tiny_model)
    >>> _ = embed_to_file(model, [("Paris", "France"), ("cup", "tea")], "vectors.npz")
    >>> import_index("vectors.npz", "my.index", model=model)
    2
    """
    job = job_of("import", model.fingerprint, checksum(expanded(path)), kind)
    with _new_index(folder, job) as is_finished:
        if is_finished:
            return storage.read_meta(expanded(folder)).count
        found = read_pair_file(path)
        check_kind(kind, len(found.pairs))
        first = {pair: row for row, pair in reversed(list(enumerate(found.pairs)))}
        rows = sorted(first.values())
        sample = [rows[at] for at in np.linspace(0, len(rows) - 1, min(SAMPLED, len(rows))).astype(int)]
        check_same_model(
            model, [found.pairs[row] for row in sample], found.vectors[sample], str(path), least=IMPORT_COSINE
        )
        vectors = found.vectors if len(rows) == len(found.vectors) else found.vectors[rows]
        pairs = PairVocabulary.of([found.pairs[row] for row in rows], [found.relations[row] for row in rows])
        _write(folder, pairs, vectors, ModelCheck.of(model), kind, None, job)
    return len(pairs)


def export_index(index: PairIndex, path: str | Path, *, model: RelBERT | None = None) -> None:
    """Write pairs and vectors to a file, in the format of its ending (`relvec.io.vectors` lists them).

    An index that holds whole vectors gives them with length 1; pairs of a compressed one are encoded again.

    >>> model = RelBERT.from_pretrained(tiny_model)
    >>> export_index(PairIndex.of(model, [("ice cream", "cone")]), "vectors.txt")
    >>> Path("vectors.txt").read_text().split()[:3]
    ['1', '16', 'ice_cream__cone']
    """
    check_export(expanded(path))
    pairs, columns = index.pairs.pairs(), {"relation": index.pairs.all_relations()}
    if not index.is_exact and model is not None:
        index.check_model(model)
        embed_to_file(model, pairs, path, columns=columns, normalize=True, truncate=True)
        return
    with output_lock(path), atomic_write_once(path) as partial:
        write_pair_file(partial, pairs, index.vectors, columns)


def check_export(path: Path) -> None:
    """Refuse a file that cannot be written, or that has no place for pairs: asked before anything is encoded."""
    endings = [ending for ending in FORMATS if ending != ".npy"]
    if path.suffix.lower() not in endings:
        fix = f"end its name in {', '.join(endings)}"
        raise RelvecError(f"{path.name} is not a file for pairs with their vectors; {fix}.")
    check_output(path)


def export_pairs(index: PairIndex, path: str | Path) -> None:
    r"""Write the pairs alone, as a .tsv file with the columns head, tail and relation: for an index by another model.

    >>> model = RelBERT.from_pretrained(tiny_model)
    >>> export_pairs(PairIndex.of(model, [("ice cream", "cone")]), "pairs.tsv")
    >>> Path("pairs.tsv").read_text()
    'head\ttail\trelation\nice cream\tcone\t\n'
    """
    rows = zip(index.pairs.pairs(), index.pairs.all_relations(), strict=True)
    lines = "".join(f"{tsv_cell(head)}\t{tsv_cell(tail)}\t{tsv_cell(relation)}\n" for (head, tail), relation in rows)
    with output_lock(path), atomic_write_once(path) as partial:
        partial.write_text("head\ttail\trelation\n" + lines, encoding="utf-8")
