"""relvec embed: the vectors of a file of pairs."""

import time
from pathlib import Path
from typing import Annotated

import typer

from relvec.cli.options import BatchEncoder, PairsFile, start_quickly, with_shared_options
from relvec.errors import RelvecError
from relvec.io.tables import read_pairs

FEW = 200
"""So many pairs are worth the wait for torch, which may find a GPU."""


@with_shared_options
def embed(
    pairs: PairsFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write: .npz, .npy, .jsonl, .parquet, .txt or .bin.")
    ],
    *,
    encoder: BatchEncoder,
    normalize: Annotated[bool, typer.Option("--normalize", help="Make every vector of length 1.")] = False,
) -> None:
    """Write the relation vectors of a file of pairs; what the cache has of them is not encoded again."""
    rows = read_pairs(pairs)
    is_quick = encoder.backend == "numpy" or (len(rows) < FEW and encoder.dtype == "float32")
    if is_quick:
        start_quickly()
    from relvec.io.vectors import check_output
    from relvec.model.cached_vectors import embed_to_file

    check_output(output)
    if pairs != "-" and output.exists() and output.samefile(pairs):
        raise RelvecError(f"{output} is the file of pairs itself; choose another output.")
    loaded = encoder.load(few_pairs=is_quick)
    start = time.perf_counter()
    done = embed_to_file(loaded, rows, output, normalize=normalize, **encoder.batches)
    seconds = time.perf_counter() - start
    known = f" ({done.cached:,} from the cache)" if done.cached else ""
    typer.echo(f"{len(rows):,} pairs{known}, {loaded.dim} dimensions, {seconds:.1f} s -> {output}", err=True)
