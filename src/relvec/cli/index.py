"""relvec index: make, change, import and export indexes of pairs."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relvec.cli.options import (
    BatchEncoder,
    Encoder,
    Json,
    PairsFile,
    output_option,
    with_shared_options,
    workload_of,
)
from relvec.cli.output import facts_table, message, show
from relvec.errors import RelvecError, counted
from relvec.hub.catalogue import DEFAULT_MODEL
from relvec.index.kinds import KINDS, check_kind
from relvec.io.tables import read_pairs, read_related_pairs
from relvec.pairs import Pair

if TYPE_CHECKING:
    from relvec.model.cached_vectors import Prepared

app = typer.Typer(help="Build, change, import and export indexes of pairs.", no_args_is_help=True)

ADDRESS = "milvus:FOLDER.db or milvus:http://host:19530/name for one in Milvus"
Folder = Annotated[str, typer.Argument(help=f"The index folder; {ADDRESS}.")]
AnyFolder = Annotated[str | None, typer.Argument(help=f"The index folder, by default the bundled one; {ADDRESS}.")]
NewFolder = Annotated[str, output_option(f"The index folder to write; {ADDRESS}.", str)]
KindOption = Annotated[str, typer.Option(help=f"auto, or one of {', '.join(KINDS)}.")]


@app.command()
@with_shared_options
def build(
    pairs: Annotated[
        str, typer.Argument(help="A file of pairs, - for stdin, or a folder of shards from relvec embed.")
    ],
    output: NewFolder,
    *,
    kind: KindOption = "auto",
    dim: Annotated[
        int | None, typer.Option(help="Reduce vectors to this many dimensions, by a projection that is fitted to them.")
    ] = None,
    encoder: BatchEncoder,
) -> None:
    """Build an index from pairs, or from the shards of relvec embed.

    The same command again resumes an interrupted build. A column named relation labels the pairs; a pair keeps its
    first label.
    """
    from relvec.bulk.manifest import MANIFEST, Manifest
    from relvec.index import build_index, index_shards
    from relvec.io.addresses import size_of

    before, start = _version(output), time.perf_counter()
    if pairs != "-" and size_of(f"{pairs.rstrip('/')}/{MANIFEST}") >= 0:
        if encoder.model != DEFAULT_MODEL:
            Manifest.read(pairs.rstrip("/")).header.check(encoder.load(), pairs)
        index_shards(pairs.rstrip("/"), output, kind=kind, shorter=dim)
        _report(output, before, time.perf_counter() - start)
        return
    rows = read_related_pairs(pairs)
    check_kind(kind, len(rows))
    loaded = encoder.load(workload_of(len(rows)))
    start = time.perf_counter()
    listed, relations = zip(*rows, strict=True)
    done = build_index(loaded, listed, output, relations=relations, kind=kind, shorter=dim, **encoder.batches)
    _report(output, before, time.perf_counter() - start, done)
    _report_labels(rows)


@app.command()
@with_shared_options
def add(index: Folder, pairs: PairsFile, *, encoder: BatchEncoder) -> None:
    """Add pairs that an index does not have yet. Pairs that it has keep their labels."""
    from relvec.index import PairIndex
    from relvec.index.storage import is_milvus, read_meta

    rows = read_related_pairs(pairs)
    if not is_milvus(index):
        read_meta(Path(index))
    listed, relations = zip(*rows, strict=True)
    loaded = encoder.load(workload_of(len(rows)))
    with PairIndex.editing(index) as opened:
        added = opened.add(loaded, listed, relations=relations, **encoder.batches)
    message(f"{counted(added, 'pair')} added -> {index}")
    _report_labels(rows)


@app.command()
def remove(index: Folder, pairs: PairsFile) -> None:
    """Remove pairs from an index."""
    from relvec.index import PairIndex

    rows = read_pairs(pairs)
    with PairIndex.editing(index) as opened:
        removed = opened.remove(rows)
    message(f"{counted(removed, 'pair')} removed -> {index}")


@app.command()
def info(
    index: AnyFolder = None,
    json: Json = False,
) -> None:
    """Show what an index holds and which model made it."""
    from relvec.index import PairIndex
    from relvec.index.storage import index_folder, is_milvus, read_meta

    opened = PairIndex.load(index)
    facts: dict[str, Any] = {"pairs": len(opened), "kind": opened.kind, "dimensions": opened.dim}
    facts |= {"model": opened.made_by.model, "fingerprint": opened.made_by.fingerprint}
    labels: dict[str, list[str]] = {}
    if not is_milvus(index):
        meta = read_meta(index_folder(index))
        labels = {"relations": opened.pairs.relations[1:]}
        size = meta.vectors_bytes + meta.pairs_bytes
        facts |= {
            "relation_labels": len(labels["relations"]),
            "bytes": size,
            "bytes_a_pair": round(size / meta.count, 1),
        }
    show(json, {**facts, **labels}, facts_table(facts, ("what", str(index or index_folder(index)))))


@app.command("import")
@with_shared_options
def import_(
    vectors: Annotated[Path, typer.Argument(help="Pair vectors: .npz, .parquet, .jsonl, or .txt and .bin (word2vec).")],
    output: NewFolder,
    *,
    kind: KindOption = "auto",
    encoder: Encoder,
) -> None:
    """Build an index from vectors that the model has computed."""
    from relvec.index import import_index
    from relvec.io.vectors import check_input

    check_input(vectors)
    loaded = encoder.load()
    before, start = _version(output), time.perf_counter()
    import_index(vectors, output, model=loaded, kind=kind)
    _report(output, before, time.perf_counter() - start)


@app.command()
@with_shared_options
def export(
    output: Annotated[
        Path,
        output_option("The file to write: .npz, .parquet, .jsonl, .txt, .bin; .tsv for the pairs alone."),
    ],
    index: AnyFolder = None,
    *,
    encoder: Encoder,
) -> None:
    """Write the pairs and vectors of an index. Pairs of a compressed index are encoded again."""
    from relvec.index import PairIndex, export_index, export_pairs
    from relvec.index.building import check_export
    from relvec.io.files import check_place

    is_pairs_alone = output.suffix.lower() == ".tsv"
    (check_place if is_pairs_alone else check_export)(output)
    opened = PairIndex.load(index)
    if is_pairs_alone:
        export_pairs(opened, output)
    else:
        export_index(opened, output, model=None if opened.is_exact else encoder.load("batch"))
    held = "" if is_pairs_alone else f", {opened.dim} dimensions"
    message(f"{counted(len(opened), 'pair')}{held} -> {output}")


def _report_labels(rows: list[tuple[Pair, str]]) -> None:
    """A label that was not kept is not passed over in silence."""
    first: dict[Pair, str] = {}
    lost = sum(first.setdefault(pair, label) != label for pair, label in rows if label)
    if lost:
        message(f"{counted(lost, 'relation label')} left out: a pair keeps the first that it is given")


def _version(address: str) -> int:
    """The version of the index that a folder has; 0 for none."""
    from relvec.index.storage import read_meta

    try:
        return read_meta(Path(address)).version
    except RelvecError:
        return 0


def _report(address: str, version_before: int, seconds: float, done: "Prepared | None" = None) -> None:
    from relvec.index import PairIndex
    from relvec.index.storage import is_milvus, read_meta

    opened = PairIndex.load(address)
    count, held = len(opened), opened.kind
    if not is_milvus(address):
        meta = read_meta(Path(address))
        held += f", {(meta.vectors_bytes + meta.pairs_bytes) / meta.count:.0f} bytes a pair"
    known = f" ({done.cached:,} from the cache)" if done and done.cached else ""
    rate = (done.encoded if done else count) / max(seconds, 1e-9)
    was_finished = version_before > 0 and _version(address) == version_before
    about = " (finished before)" if was_finished else f"{known}, {held}, {seconds:.1f} s, {rate:.0f} pairs/s"
    message(f"{counted(count, 'pair')}{about} -> {address}")
