"""A bulk job: find the files, cut them into parts, have them encoded, keep the manifest."""

import fnmatch
import hashlib
import json
import time
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

from relvec.bulk.manifest import ERRORS, MANIFEST, SHARDS, JobHeader, Manifest
from relvec.bulk.parts import count_rows, split_into_parts
from relvec.bulk.runners import RUNNERS
from relvec.bulk.shards import Task
from relvec.errors import RelvecError, one_of
from relvec.io.addresses import find_files, is_remote, names_in, size_of, version_of
from relvec.io.files import expanded
from relvec.io.tables import pyarrow
from relvec.model.model_check import ModelCheck
from relvec.model.relation_model import BATCH_SIZE, RelBERT
from relvec.progress import progress_bar
from relvec.storage.lock import output_lock


@dataclass(frozen=True)
class Summary:
    """What a job has made; rows and shards are those of the whole folder, the rate is that of this run."""

    output: str
    shards: int
    shards_before: int
    rows: int
    distinct: int
    errors: int
    unknown_words: int
    dim: int
    bytes: int
    seconds: float
    pairs_per_second: float


def embed_files(
    inputs: str | Path | Iterable[str | Path],
    output: str | Path,
    *,
    model: str | Path,
    shards: int | None = None,
    runner: str = "local",
    workers: int | None = None,
    ray_address: str | None = None,
    backend: str = "auto",
    device: str | None = None,
    dtype: str = "float32",
    batch_size: int = BATCH_SIZE,
    normalize: bool = False,
    truncate: bool = False,
    strict: bool = False,
    show_progress: bool | None = None,
) -> Summary:
    """Encode the pairs of many files into a folder of parquet shards; a job that was killed resumes.

    Inputs are files, patterns and folders, here or at any address of fsspec or pyarrow. A shard has the columns of its
    part of a file and the vectors. A row that is not a pair, or that the model cannot encode, is left out and listed in
    `errors.jsonl`; with `strict` it stops the job.

    >>> _ = Path("pairs.csv").write_text("Paris,France\\ncup,tea\\n,nothing\\n")
    >>> done = embed_files("pairs.csv", "vectors", model=tiny_model, workers=1)
    >>> done.rows, done.errors, sorted(file.name for file in Path("vectors").iterdir())
    (2, 1, ['errors.jsonl', 'manifest.jsonl', 'part-00000.parquet'])
    """
    run = RUNNERS[one_of("runner", runner, RUNNERS)]
    pyarrow()
    given = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    folder = str(output).rstrip("/") if is_remote(str(output)) else str(expanded(output))
    files = find_files(map(str, given), folder)
    sizes = [(file, count_rows(file)) for file in files]
    parts = split_into_parts(sizes, shards)
    if not parts:
        raise RelvecError(f"{', '.join(map(str, given))} holds no pair; write one a row.")
    loaded = RelBERT.from_pretrained(model, backend=backend, device=device, dtype=dtype)
    plan = [[asdict(part) for part in parts], [version_of(file) for file in files]]
    header = JobHeader(
        **ModelCheck.of(loaded).as_dict(),
        dim=loaded.dim,
        normalize=normalize,
        truncate=truncate,
        dtype=dtype,
        parts=len(parts),
        rows=sum(rows for _, rows in sizes),
        plan=hashlib.sha256(json.dumps(plan).encode()).hexdigest(),
    )
    task = Task(folder, header, str(model), loaded.backend, device, batch_size, strict, workers, ray_address)
    # One driver a folder, where there can be a lock: an object store has none.
    with nullcontext() if is_remote(folder) else output_lock(folder):
        if not is_remote(folder):
            Path(folder).mkdir(parents=True, exist_ok=True)
        manifest = _manifest_to_resume(folder, header, loaded)
        if strict and (bad := manifest.problems):
            raise RelvecError("{file}, row {row}: {problem}".format_map(bad[0]))
        before = len(manifest.shards)
        remaining = [part for part in parts if part.number not in manifest.shards]
        known = sum(shard.stop - shard.start for shard in manifest.shards.values())
        start = time.perf_counter()
        with progress_bar(header.rows, f"Encoding with {header.model}", show=show_progress, initial=known) as bar:
            for done in run(task, loaded, remaining, bar.update) if remaining else ():
                manifest.add(*done)
        manifest.save()
        seconds = time.perf_counter() - start
    made = manifest.shards.values()
    rows = sum(shard.rows for shard in made)
    if not rows:
        raise RelvecError(f"No row of {', '.join(map(str, given))} is a pair; {folder}/{ERRORS} says why.")
    return Summary(
        output=folder,
        shards=len(made),
        shards_before=before,
        rows=rows,
        distinct=sum(shard.distinct for shard in made),
        errors=sum(shard.errors for shard in made),
        unknown_words=sum(shard.unknown for shard in made),
        dim=header.dim,
        bytes=sum(shard.bytes for shard in made),
        seconds=round(seconds, 2),
        pairs_per_second=round(sum(part.stop - part.start for part in remaining) / max(seconds, 1e-9), 1),
    )


def _manifest_to_resume(folder: str, header: JobHeader, model: RelBERT) -> Manifest:
    """The manifest to resume: the folder's own if it is of this job, else a new one where no shard is."""
    has_shards = bool(fnmatch.filter(names_in(folder), SHARDS))
    found = Manifest.read(folder) if size_of(f"{folder}/{MANIFEST}") >= 0 else None
    if has_shards and not found:
        problem = f"{folder} holds {SHARDS}, but no {MANIFEST} that says which job made them"
        raise RelvecError(f"{problem}; choose another output, or move them away.")
    if not found or not has_shards:  # of a job that has made nothing, nothing is lost
        made = Manifest(folder, header)
        made.begin()
        return made
    found.header.check(model, folder)
    if found.header.as_dict() | header.plain.as_dict() != header.as_dict():
        problem = f"{folder} belongs to a job with other input or other options"
        raise RelvecError(f"{problem}; give the same ones, or choose another output.")
    found.keep_whole()
    return found
