"""relvec embed: the vectors of a file of pairs."""

import time
from pathlib import Path
from typing import Annotated

import typer

from relvec.cli.options import BackendOption, Device, Dtype, Model, load_model, start_quickly
from relvec.errors import RelvecError
from relvec.hub.catalogue import DEFAULT_MODEL
from relvec.io.tables import read_pairs

FEW = 200
"""So many pairs are worth the wait for torch, which may find a GPU."""


def embed(
    pairs: Annotated[
        str, typer.Argument(help="A .csv, .tsv, .jsonl or .parquet file, lines of head:tail, or - for stdin.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write: .npz, .npy, .jsonl, .parquet, .txt or .bin.")
    ],
    model: Model = DEFAULT_MODEL,
    batch_size: Annotated[int, typer.Option(help="Pairs encoded at once.")] = 64,
    normalize: Annotated[bool, typer.Option("--normalize", help="Make every vector of length 1.")] = False,
    truncate: Annotated[bool, typer.Option("--truncate", help="Cut pairs that are too long for the model.")] = False,
    device: Device = None,
    dtype: Dtype = "float32",
    backend: BackendOption = "auto",
) -> None:
    """Write the relation vectors of a file of pairs; what the cache has of them is not encoded again."""
    rows = read_pairs(pairs)
    is_quick = backend == "numpy" or (len(rows) < FEW and dtype == "float32")
    if is_quick:
        start_quickly()
    from relvec.io.vectors import check_output
    from relvec.model.embed import embed_to_file

    check_output(output)
    if pairs != "-" and output.exists() and output.samefile(pairs):
        raise RelvecError(f"{output} is the file of pairs itself; choose another output.")
    loaded = load_model(model, device, backend=backend, dtype=dtype, few_pairs=is_quick)
    start = time.perf_counter()
    done = embed_to_file(loaded, rows, output, batch_size=batch_size, normalize=normalize, truncate=truncate)
    seconds = time.perf_counter() - start
    known = f" ({done.cached:,} from the cache)" if done.cached else ""
    typer.echo(f"{len(rows):,} pairs{known}, {loaded.dim} dimensions, {seconds:.1f} s -> {output}", err=True)
