"""An index as a folder: meta.json, and the vectors and pairs of the version that it names.

A writer puts the files of the next version beside the old ones and then replaces meta.json, so that a reader finds the
old version or the new one, never a mixture; one that has opened the old files keeps them, though their names are gone.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from relvec.errors import RelvecError, errors_as, one_of
from relvec.index.kinds import KINDS
from relvec.index.vector_store import VectorStore
from relvec.index.vocabulary import PairVocabulary
from relvec.io.checksums import check_files
from relvec.io.files import atomic_write, checksum, expanded
from relvec.model.model_check import ModelCheck
from relvec.storage import lock
from relvec.storage.job import check_job

META = "meta.json"
LOCKS = ("lock", f".{META}.lock")  # the first is that of older versions
# The files of a version, and what a killed writer leaves of them and of meta.json under temporary names.
OF_A_VERSION = re.compile(
    r"vectors-\d+\.faiss|pairs-\d+\.npz|\.(vectors-\d+\.faiss|pairs-\d+\.npz|meta\.json)\.\w+\.(faiss|npz|json)"
)
BUNDLED = Path(__file__).parent / "bundled"
REBUILD = "build the index again"


class IndexMeta(ModelCheck):
    """What meta.json says: which model made the vectors, how they are held, and what the two files are.

    Indexes of older versions have no checksums. `job` is what made the index; it is empty once that was changed.
    """

    dim: Annotated[int, Field(ge=1)]
    kind: Annotated[str, AfterValidator(lambda name: one_of("index kind", name, KINDS))]
    count: Annotated[int, Field(ge=1)]
    version: int
    vectors_bytes: int
    pairs_bytes: int
    vectors_sha256: str = ""
    pairs_sha256: str = ""
    job: str = ""
    format: Literal[1] = 1

    def vectors_file(self, folder: Path) -> Path:
        return folder / f"vectors-{self.version}.faiss"

    def pairs_file(self, folder: Path) -> Path:
        return folder / f"pairs-{self.version}.npz"

    def check_files(self, folder: Path, *, every: bool = False) -> int:
        """Refuse files that are not what was stored, and return how many were read."""
        files = {self.vectors_file(folder): self.vectors_sha256, self.pairs_file(folder): self.pairs_sha256}
        return check_files(files if self.vectors_sha256 else {}, folder / META, REBUILD, every=every)


Stored = tuple[IndexMeta, VectorStore, PairVocabulary]


def is_milvus(address: str | Path | None) -> bool:
    """Whether this is the address of an index in Milvus, not a folder."""
    return str(address).startswith("milvus:")


def index_folder(given: str | Path | None) -> Path:
    """The folder that a user names, else the vocabulary that comes with the package."""
    return BUNDLED if given is None else expanded(given)


def is_finished(folder: Path, job: str) -> bool:
    """Whether this very job has made the index of a folder; another is refused, and a broken one counts as none."""
    try:
        meta, _, _ = read_folder(folder, mapped=True)
    except RelvecError:
        return False
    check_job(meta.job == job, folder)
    return True


def is_index(folder: Path) -> bool:
    """Whether the folder is an index, empty, or what a killed writer left; others have a meta.json, too."""
    names = {file.name for file in folder.iterdir()}
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        return isinstance(meta, dict) and {"format", "probes"} <= meta.keys()
    except (FileNotFoundError, ValueError):
        rest = names.difference(LOCKS, {META})
        is_marked = not names.isdisjoint(LOCKS) or (META in names and len(rest) > 1)
        return not names or (is_marked and all(OF_A_VERSION.fullmatch(name) for name in rest))


def read_meta(folder: Path) -> IndexMeta:
    """What the folder says about itself, checked."""
    if not (folder / META).is_file():
        fix = "make one with `relvec index build`"
        raise RelvecError(f"{folder} is not an index folder (it has no {META}); {fix}.")
    return IndexMeta.from_json(folder / META, REBUILD)


def read_folder(folder: Path, *, mapped: bool) -> Stored:
    """Open the newest version; if a writer takes it away in between, the one after it."""
    meta = read_meta(folder)
    while True:
        try:
            return _opened(folder, meta, mapped)
        except RelvecError:
            newer = read_meta(folder)
            if newer.version == meta.version:
                raise
            meta = newer


def _opened(folder: Path, meta: IndexMeta, mapped: bool) -> Stored:
    files = (meta.vectors_file(folder), meta.vectors_bytes), (meta.pairs_file(folder), meta.pairs_bytes)
    for path, size in files:
        # A mapped file that was cut short would end the process when it is searched.
        with errors_as(f"{path} is missing or cut short", REBUILD, OSError):
            if path.stat().st_size != size:
                raise OSError(f"it should have {size:,} bytes")
    meta.check_files(folder)
    vectors = VectorStore.read(meta.vectors_file(folder), KINDS[meta.kind], mapped=mapped)
    pairs = PairVocabulary.read(meta.pairs_file(folder))
    if not len(vectors) == len(pairs) == meta.count or vectors.dim != meta.dim:
        raise RelvecError(f"The files in {folder} do not fit each other; {REBUILD}.")
    return meta, vectors, pairs


@contextmanager
def writing_index(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Make the folder if need be and hold its lock, which lies within: it marks what a killed writer has left."""
    if folder.is_file() or (folder.is_dir() and not is_index(folder)):
        raise RelvecError(f"{folder} exists and is not an index; choose another place.")
    try:
        with lock.output_lock(folder / META, wait=wait):
            yield
    finally:
        with suppress(OSError):
            folder.rmdir()  # only if nothing was written


def write_folder(
    folder: Path, vectors: VectorStore, pairs: PairVocabulary, made_by: ModelCheck, job: str = ""
) -> IndexMeta:
    """Write the next version; call it inside `writing_index`."""
    version = _next_version(folder)
    files = folder / f"vectors-{version}.faiss", folder / f"pairs-{version}.npz"
    for file, write in zip(files, (vectors.write, pairs.write), strict=True):
        with atomic_write(file) as path:
            write(path)
    meta = IndexMeta(
        **made_by.plain.as_dict(),
        dim=vectors.dim,
        kind=vectors.kind.name,
        count=len(pairs),
        version=version,
        vectors_bytes=files[0].stat().st_size,
        pairs_bytes=files[1].stat().st_size,
        vectors_sha256=checksum(files[0]),
        pairs_sha256=checksum(files[1]),
        job=job,
    )
    with atomic_write(folder / META) as path:
        path.write_text(meta.to_json(), encoding="utf-8")
    for old in list(folder.iterdir()):
        if OF_A_VERSION.fullmatch(old.name) and old not in files:
            with suppress(OSError):  # some systems keep a file that a reader has open; the next writer removes it
                old.unlink(missing_ok=True)
    return meta


def _next_version(folder: Path) -> int:
    """By what readers see: files of the next version, left by a killed writer, are written again."""
    try:
        return read_meta(folder).version + 1
    except RelvecError:
        return 1
