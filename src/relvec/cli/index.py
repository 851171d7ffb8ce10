"""relvec index: make, change, import and export indexes of pairs."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relvec.cli.options import BatchEncoder, Encoder, Json, PairsFile, with_shared_options
from relvec.cli.output import facts_table, show
from relvec.index.kinds import KINDS, check_kind
from relvec.io.tables import read_pairs, read_related_pairs
from relvec.pairs import Pair

if TYPE_CHECKING:
    from relvec.model.cached_vectors import Prepared

app = typer.Typer(help="Make, change, import and export indexes of pairs.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(help="The index folder.")]
AnyFolder = Annotated[Path | None, typer.Argument(help="The index folder; by default the bundled one.")]
NewFolder = Annotated[Path, typer.Option("--output", "-o", help="The index folder to write.")]
KindOption = Annotated[str, typer.Option(help=f"auto, or one of {', '.join(KINDS)}.")]


@app.command()
@with_shared_options
def build(pairs: PairsFile, output: NewFolder, *, kind: KindOption = "auto", encoder: BatchEncoder) -> None:
    """Encode pairs and index them; a build that was killed resumes.

    A column named relation, if there is one, labels the pairs; of several labels of a pair the first is kept.
    """
    from relvec.index import build_index
    from relvec.index.storage import check_unused

    check_unused(output)
    rows = read_related_pairs(pairs)
    check_kind(kind, len(rows))
    loaded = encoder.load(few_pairs=False)
    start = time.perf_counter()
    listed, relations = zip(*rows, strict=True)
    done = build_index(loaded, listed, output, relations=relations, kind=kind, **encoder.batches)
    _report(output, time.perf_counter() - start, done)
    _report_labels(rows)


@app.command()
@with_shared_options
def add(index: Folder, pairs: PairsFile, *, encoder: BatchEncoder) -> None:
    """Append the pairs that an index does not have yet; those that it has keep their labels."""
    from relvec.index import extend_index
    from relvec.index.storage import read_meta

    rows = read_related_pairs(pairs)
    read_meta(index)
    listed, relations = zip(*rows, strict=True)
    added = extend_index(encoder.load(few_pairs=False), listed, index, relations=relations, **encoder.batches)
    typer.echo(f"{added:,} pairs added -> {index}", err=True)
    _report_labels(rows)


@app.command()
def remove(index: Folder, pairs: PairsFile) -> None:
    """Take pairs out of an index."""
    from relvec.index import PairIndex

    rows = read_pairs(pairs)
    with PairIndex.editing(index) as opened:
        removed = opened.remove(rows)
    typer.echo(f"{removed:,} pairs removed -> {index}", err=True)


@app.command()
def info(index: AnyFolder = None, json: Json = False) -> None:
    """Show what an index holds and which model made it."""
    from relvec.index.storage import index_folder, read_meta
    from relvec.index.vocabulary import PairVocabulary

    folder = index_folder(index)
    meta = read_meta(folder)
    labels = PairVocabulary.read(meta.pairs_file(folder)).relations[1:]
    size = meta.vectors_bytes + meta.pairs_bytes
    facts = {
        "pairs": meta.count,
        "relation_labels": len(labels),
        "kind": meta.kind,
        "dimensions": meta.dim,
        "model": meta.model,
        "fingerprint": meta.fingerprint,
        "bytes": size,
        "bytes_a_pair": round(size / meta.count, 1),
    }
    show(json, {**facts, "relations": labels}, facts_table(facts, ("what", str(folder))))


@app.command("import")
@with_shared_options
def import_(
    vectors: Annotated[Path, typer.Argument(help="Pair vectors: .npz, .parquet, .jsonl, or .txt and .bin (word2vec).")],
    output: NewFolder,
    *,
    kind: KindOption = "auto",
    encoder: Encoder,
) -> None:
    """Make an index of vectors that the model made before."""
    from relvec.index import import_index
    from relvec.index.storage import check_unused
    from relvec.io.vectors import check_input

    check_input(vectors)
    check_unused(output)
    loaded = encoder.load()
    start = time.perf_counter()
    import_index(vectors, output, model=loaded, kind=kind)
    _report(output, time.perf_counter() - start)


@app.command()
@with_shared_options
def export(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The file to write: .npz, .parquet, .jsonl, .txt, .bin; .tsv for the pairs alone."
        ),
    ],
    index: AnyFolder = None,
    *,
    encoder: Encoder,
) -> None:
    """Write the pairs of an index and their vectors; those of a compressed index are encoded again."""
    from relvec.index import PairIndex, export_index, export_pairs
    from relvec.io.files import check_place
    from relvec.io.vectors import check_output

    is_pairs_alone = output.suffix.lower() == ".tsv"
    (check_place if is_pairs_alone else check_output)(output)
    opened = PairIndex.load(index)
    if is_pairs_alone:
        export_pairs(opened, output)
    else:
        export_index(opened, output, model=None if opened.is_exact else encoder.load(few_pairs=False))
    held = "" if is_pairs_alone else f", {opened.dim} dimensions"
    typer.echo(f"{len(opened):,} pairs{held} -> {output}", err=True)


def _report_labels(rows: list[tuple[Pair, str]]) -> None:
    """A label that was not kept is not passed over in silence."""
    first: dict[Pair, str] = {}
    lost = sum(first.setdefault(pair, label) != label for pair, label in rows if label)
    if lost:
        typer.echo(f"{lost:,} relation labels left out: a pair keeps the first that it is given", err=True)


def _report(folder: Path, seconds: float, done: "Prepared | None" = None) -> None:
    from relvec.index.storage import read_meta

    meta = read_meta(folder)
    known = f" ({done.cached:,} from the cache)" if done and done.cached else ""
    rate = (done.encoded if done else meta.count) / max(seconds, 1e-9)
    size = (meta.vectors_bytes + meta.pairs_bytes) / meta.count
    held = f"{meta.kind}, {size:.0f} bytes a pair"
    typer.echo(f"{meta.count:,} pairs{known}, {held}, {seconds:.1f} s, {rate:.0f} pairs/s -> {folder}", err=True)
