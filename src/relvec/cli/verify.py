"""relvec verify: is what was stored still what was stored?"""

import json as jsons
import zipfile
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated

import typer

from relvec.bulk.manifest import Manifest
from relvec.cli.options import Json
from relvec.cli.output import Table, show
from relvec.errors import errors_as
from relvec.hub.models import resolve
from relvec.index.storage import is_index, read_meta
from relvec.io.checksums import CHECKSUMS_NAME, check_files, check_folder
from relvec.io.files import expanded
from relvec.io.tables import read_parquet
from relvec.io.vectors import PAGE_CHECKSUMS
from relvec.model.adapter import adapters_and_base
from relvec.settings import verified_lines
from relvec.storage.cache import check_cache

Check = Callable[[Path], int]
"""Reads all that a file has a checksum of, and returns how many parts that were; damage is an error."""


def verify(
    path: Annotated[str, typer.Argument(help="A file or folder that relvec has written, or the name of a model.")],
    json: Json = False,
) -> None:
    """Check stored files against their checksums, in subfolders too."""
    rows = [
        {"path": str(place), "compared": count, "state": "whole" if count else "no checksums are stored"}
        for place, count in _compared(path).items()
    ]
    show(json, rows, Table(["path", "compared", "state"], [row.values() for row in rows]))


def _compared(given: str) -> dict[Path, int]:
    """What was found at a place, and how many of its parts were compared; a model takes its adapters and base along."""
    start = expanded(given)
    places = [start]
    if not start.exists() or (start / "config.json").is_file():
        folder = resolve(given)
        adapters, base = adapters_and_base(folder)
        places = [folder, *adapters, base]
    found = {}
    for place in dict.fromkeys(places):
        files = sorted(file for file in place.rglob("*") if file.is_file()) if place.is_dir() else [place]
        counts = {file: _count(file) for file in files}
        found.update({file: count for file, count in counts.items() if count} or {place: 0})
    return found


def _count(file: Path) -> int:
    check = next((check for pattern, check in CHECKS.items() if fnmatch(file.name, pattern)), None)
    with errors_as(f"{file} is not what was stored", "get or make it again", Exception):
        return check(file) if check else 0


def _index(file: Path) -> int:
    folder = file.parent
    stands_for_index = is_index(folder) or any(folder.glob("vectors-*.faiss"))
    return read_meta(folder).check_files(folder, every=True) if stands_for_index else 0


def _shards(file: Path) -> int:
    manifest = Manifest.read(str(file.parent))
    sums = {file.parent / shard.output: shard.sha256 for shard in manifest.shards.values()}
    return check_files(sums, file, f"remove {file} to encode again", every=True)


def _sealed(file: Path) -> int:
    """A JSON object, or lines of them; a last line without an end is still being written."""
    content = file.read_bytes()
    parts = [content] if file.suffix == ".json" else content.split(b"\n")[:-1]
    plain = verified_lines(parts)
    return sum(jsons.loads(part) != entry for part, entry in zip(parts, plain, strict=True))


def _archive(file: Path) -> int:
    with zipfile.ZipFile(file) as archive:
        return len([archive.read(name) for name in archive.namelist()])


def _graph(file: Path) -> int:
    graph = file.with_suffix(".onnx")
    return check_files({graph: file.read_text()}, file, f"remove {graph} to make it again", every=True)


def _parquet(file: Path) -> int:
    table = read_parquet(file)
    return int(table.num_columns) if PAGE_CHECKSUMS.items() <= (table.schema.metadata or {}).items() else 0


CHECKS: dict[str, Check] = {
    CHECKSUMS_NAME: lambda file: check_folder(file.parent, every=True),
    "*-onnx-*.sha256": _graph,
    "meta.json": _index,
    "manifest.jsonl": _shards,
    **dict.fromkeys(("prompt.json", "history.jsonl", "grid.jsonl", "journal.jsonl", "records.jsonl"), _sealed),
    "cache.sqlite": check_cache,
    "checkpoint.pt": _archive,
    "*.npz": _archive,
    "*.parquet": _parquet,
}
"""How each stored file that has checksums is compared with them, by its name; the first pattern that fits counts."""
