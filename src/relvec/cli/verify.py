"""relvec verify: is what was stored still what was stored?"""

from pathlib import Path
from typing import Annotated

import typer

from relvec.cli.options import Json
from relvec.cli.output import Table, show


def verify(
    path: Annotated[str, typer.Argument(help="A model (a name or a folder), or an index folder.")], json: Json = False
) -> None:
    """Read all files of a model or an index, and compare them with the checksums that were stored with them."""
    from relvec.index.storage import META, read_meta

    index = Path(path)
    read = {index: read_meta(index).check_files(index, every=True)} if (index / META).is_file() else _of_model(path)
    rows = [{"folder": str(folder), "files": count, "state": _state(count)} for folder, count in read.items()]
    show(json, rows, Table(["folder", "files", "state"], [row.values() for row in rows]))


def _state(count: int) -> str:
    return "whole" if count else "no checksums are stored"


def _of_model(name: str) -> dict[Path, int]:
    """How many files were compared in the folders of a model, its adapters and its base."""
    from relvec.hub.catalogue import BASE_MODELS
    from relvec.hub.models import base_folder, resolve
    from relvec.io.checksums import check_files, check_folder
    from relvec.model.adapter import adapters_and_base

    folder = resolve(name)
    adapters, base = adapters_and_base(folder)
    read = {each: check_folder(each, every=True) for each in (folder, *adapters, base)}
    for model in BASE_MODELS.values():  # one that an older version has fetched has only the checksums of the catalogue
        if base == base_folder(model) and not read[base] and not model.is_gguf:
            pinned = {base / file: digest for file, digest in model.sha256.items()}
            read[base] = check_files(pinned, base, f"remove {base} to fetch it again", every=True)
    return read
