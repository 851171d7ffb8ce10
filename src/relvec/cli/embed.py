"""relvec embed: the vectors of a file of pairs, or of many files as a folder of shards."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from relvec.cli.options import (
    QUICK_PAIRS,
    BatchEncoder,
    Json,
    output_option,
    start_quickly,
    with_shared_options,
)
from relvec.cli.output import facts_table, show
from relvec.errors import RelvecError, counted
from relvec.io.tables import read_pairs_and_columns


@dataclass(frozen=True)
class Sharding:
    """Options of a folder of shards."""

    shards: Annotated[
        int | None, typer.Option(min=1, help="About how many shards; by default one for 16,384 rows.")
    ] = None
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes or Ray actors that encode shards; by default one per core.")
    ] = None
    runner: Annotated[str, typer.Option(help="What encodes shards: local (processes) or ray.")] = "local"
    ray_address: Annotated[
        str | None, typer.Option(help="The Ray cluster, or auto; by default a new one on this machine.")
    ] = None
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first bad row instead of listing bad rows in errors.jsonl.")
    ] = False


@with_shared_options
def embed(
    pairs: Annotated[
        list[str],
        typer.Argument(
            help="A .csv, .tsv, .jsonl or .parquet file, lines of head:tail, or - for stdin; for a folder of shards "
            "also several files, folders, or addresses such as s3://bucket/pairs/*.parquet."
        ),
    ],
    output: Annotated[
        str,
        output_option(
            "The file to write: .npz, .npy, .jsonl, .parquet, .txt or .bin; another name is a folder of shards.",
            str,
        ),
    ],
    *,
    encoder: BatchEncoder,
    normalize: Annotated[bool, typer.Option("--normalize", help="Scale every vector to length 1.")] = False,
    sharding: Sharding,
    json: Json = False,
) -> None:
    """Write relation vectors to a file, or to a folder of shards. The same command again resumes an interrupted run."""
    if not Path(output).suffix or output.endswith("/") or Path(output).is_dir():
        _embed_files(pairs, output, encoder, normalize, sharding, json)
        return
    if len(pairs) > 1 or sharding != Sharding():
        raise RelvecError(f"{output} is a file; for several inputs, workers or shards write a folder: -o vectors/.")
    _embed_file(pairs[0], Path(output), encoder, normalize, json)


def _embed_file(pairs: str, output: Path, encoder: BatchEncoder, normalize: bool, json: bool) -> None:
    rows, columns = read_pairs_and_columns(pairs)
    is_quick = encoder.backend == "numpy" or (len(rows) < QUICK_PAIRS and encoder.dtype == "float32")
    if is_quick:
        start_quickly()
    from relvec.io.vectors import check_output
    from relvec.model.cached_vectors import embed_to_file

    check_output(output, pairs)
    loaded = encoder.load("quick" if is_quick else "batch")
    was_there, start = output.exists(), time.perf_counter()
    done = embed_to_file(loaded, rows, output, columns=columns, normalize=normalize, **encoder.batches)
    seconds = time.perf_counter() - start
    known = " (finished before)" if was_there else f" ({done.cached:,} from the cache)" if done.cached else ""
    counts = {"rows": len(rows), **done._asdict(), "dim": loaded.dim}
    facts = {"output": str(output), **counts, "seconds": round(seconds, 2)}
    show(json, facts, note=f"{counted(len(rows), 'pair')}{known}, {loaded.dim} dimensions, {seconds:.1f} s -> {output}")


def _embed_files(
    pairs: list[str], output: str, encoder: BatchEncoder, normalize: bool, sharding: Sharding, json: bool
) -> None:
    from relvec.bulk import embed_files

    done = asdict(embed_files(pairs, output, **asdict(encoder), **asdict(sharding), normalize=normalize))
    facts = {name: value if isinstance(value, str) else f"{value:,}" for name, value in done.items()}
    show(json, done, facts_table(facts))
