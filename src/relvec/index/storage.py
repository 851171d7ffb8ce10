"""An index as a folder: meta.json, and the vectors and pairs of the version that it names.

A writer puts the files of the next version beside the old ones and then replaces meta.json, so that a reader finds the
old version or the new one, never a mixture; one that has opened the old files keeps them, though their names are gone.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import NamedTuple

from relvec.errors import RelvecError
from relvec.index.kinds import KINDS
from relvec.index.vector_store import VectorStore
from relvec.index.vocabulary import PairVocabulary
from relvec.io.files import written_whole
from relvec.model.model_check import Origin

FORMAT = 1
META = "meta.json"
LOCK = "lock"
# The files of a version, and what a killed writer leaves of them and of meta.json under temporary names.
OF_A_VERSION = re.compile(
    r"vectors-\d+\.faiss|pairs-\d+\.npz|\.(vectors-\d+\.faiss|pairs-\d+\.npz|meta\.json)\.\w+\.(faiss|npz|json)"
)
BUNDLED = Path(__file__).parent / "bundled"


@dataclass(frozen=True)
class Meta:
    """What meta.json says: whose vectors these are, how they are held, and how large the two files are."""

    model: str
    fingerprint: str
    probes: str = field(repr=False)
    dim: int
    kind: str
    count: int
    version: int
    vectors_bytes: int
    pairs_bytes: int
    format: int = FORMAT

    @property
    def origin(self) -> Origin:
        return Origin(self.model, self.fingerprint, self.probes)

    def vectors_file(self, folder: Path) -> Path:
        return folder / f"vectors-{self.version}.faiss"

    def pairs_file(self, folder: Path) -> Path:
        return folder / f"pairs-{self.version}.npz"


class Stored(NamedTuple):
    """What a folder holds."""

    meta: Meta
    vectors: VectorStore
    pairs: PairVocabulary


def index_folder(given: Path | None) -> Path:
    """The folder that a user names, else the vocabulary that comes with the package."""
    if given is not None:
        return given
    if not (BUNDLED / META).is_file():
        raise RelvecError(
            "This relvec has no bundled index; make one with `relvec index build` and give it as --index."
        )
    return BUNDLED


def check_unused(folder: Path) -> None:
    """A new index takes the place of no other, unless that one is broken."""
    try:
        read_folder(folder, mapped=True)
    except RelvecError:
        return
    problem = f"{folder} holds an index already"
    raise RelvecError(f"{problem}; choose another output, add to it with `relvec index add`, or remove it.")


def read_meta(folder: Path) -> Meta:
    """What the folder says about itself, checked."""
    try:
        text = (folder / META).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RelvecError(
            f"{folder} is not an index folder (it has no {META}); make one with `relvec index build`."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise RelvecError(f"Cannot read {folder / META}: {error}; check the file.") from error
    try:
        found = json.loads(text)
        if found.get("format") != FORMAT:
            fix = "build the index again with this relvec"
            raise RelvecError(f"{folder / META} has format {found.get('format')!r}, not {FORMAT}; {fix}.")
        meta = Meta(**found)
        for known in fields(meta):
            if type(getattr(meta, known.name)) is not known.type:
                raise ValueError(f"{known.name} {getattr(meta, known.name)!r}")
        if meta.kind not in KINDS or meta.count < 1 or meta.origin.vectors.shape[1] != meta.dim:
            raise ValueError(f"kind {meta.kind!r}, dim {meta.dim!r}, count {meta.count!r}")
    except RelvecError:
        raise
    except (ValueError, TypeError, AttributeError) as error:
        raise RelvecError(f"{folder / META} is broken ({error}); build the index again.") from error
    return meta


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


def _opened(folder: Path, meta: Meta, mapped: bool) -> Stored:
    # A mapped file that was cut short would end the process when it is searched.
    for path, size in ((meta.vectors_file(folder), meta.vectors_bytes), (meta.pairs_file(folder), meta.pairs_bytes)):
        if _size(path) != size:
            raise RelvecError(f"{path} is missing or cut short; build the index again.")
    stored = Stored(
        meta,
        VectorStore.read(meta.vectors_file(folder), KINDS[meta.kind], mapped=mapped),
        PairVocabulary.read(meta.pairs_file(folder)),
    )
    if not len(stored.vectors) == len(stored.pairs) == meta.count or stored.vectors.dim != meta.dim:
        raise RelvecError(f"The files in {folder} do not fit each other; build the index again.")
    return stored


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """One writer at a time: the others wait."""
    from filelock import FileLock

    try:
        if folder.is_file() or (folder.is_dir() and not _is_ours(folder)):
            raise RelvecError(f"{folder} exists and is no index; choose another place.")
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK)
        lock.acquire()
    except OSError as error:
        raise RelvecError(f"Cannot write to {folder}: {error.strerror}; choose another place.") from error
    except RuntimeError as error:  # this thread would wait for itself
        fix = "a block of PairIndex.editing saves by itself, so leave out this save"
        raise RelvecError(f"{folder} is being written by the block around this line; {fix}.") from error
    try:
        yield
    finally:
        lock.release()


def write_folder(folder: Path, vectors: VectorStore, pairs: PairVocabulary, origin: Origin) -> Meta:
    """Write the next version; call it inside `writing`."""
    version = 1 + max((_version(file) for file in folder.glob("vectors-*.faiss")), default=0)
    made_by = (origin.model, origin.fingerprint, origin.probes)
    meta = Meta(*made_by, vectors.dim, vectors.kind.name, len(pairs), version, vectors_bytes=0, pairs_bytes=0)
    with written_whole(meta.vectors_file(folder)) as path:
        vectors.write(path)
    with written_whole(meta.pairs_file(folder)) as path:
        pairs.write(path)
    vectors_bytes, pairs_bytes = (_size(file) for file in (meta.vectors_file(folder), meta.pairs_file(folder)))
    meta = replace(meta, vectors_bytes=vectors_bytes, pairs_bytes=pairs_bytes)
    with written_whole(folder / META) as path:
        path.write_text(json.dumps(asdict(meta), indent=2) + "\n", encoding="utf-8")
    current = {meta.vectors_file(folder), meta.pairs_file(folder)}
    for old in list(folder.iterdir()):
        if OF_A_VERSION.fullmatch(old.name) and old not in current:
            try:
                old.unlink(missing_ok=True)
            except OSError:
                continue  # some systems keep a file that a reader has open; the next writer removes it
    return meta


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _version(file: Path) -> int:
    digits = file.stem.partition("-")[2]
    return int(digits) if digits.isdecimal() else 0


def _is_ours(folder: Path) -> bool:
    """Whether the folder is an index, empty, or what a broken-off writer left; others have a meta.json, too."""
    names = {file.name for file in folder.iterdir()}
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return not names or (LOCK in names and all(OF_A_VERSION.fullmatch(name) for name in names - {LOCK, META}))
    return isinstance(meta, dict) and {"format", "probes"} <= meta.keys()
