"""Damage in every stored format: an error or the right answer, never a wrong one."""

import os
import random
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from command import Ended, run, start
from outputs import Case
from world import World, cache_in, content, emptied

from relvec import RelBERT
from relvec.data.sources import DEFAULT_SOURCE, load
from relvec.errors import UnknownWordsWarning
from relvec.model import catalogues
from relvec.model.model_check import PROBE_PAIRS
from relvec.naming.building import build_catalogue


@dataclass(frozen=True)
class Stored:
    """Something stored in `folder`, and what is read from it: the output of a command that must not be another."""

    name: str
    folder: Path
    files: tuple[str, ...]
    read: Callable[[Path], tuple[Ended, object]]


def damaged(world: World, times: int, draw: random.Random) -> Iterator[Case]:
    for stored in _stored(world):
        ended, wanted = stored.read(_copy(world, stored))
        if ended.code:
            raise SystemExit(f"{stored.name} cannot be read undamaged: {ended.complaint}")
        for number in range(times):
            folder = _copy(world, stored)
            what = _damage(folder, stored.files, draw)
            ended, found = stored.read(folder)
            problem = ended.problem
            if not problem and ended.code == 0 and found != wanted:
                problem = f"a wrong answer: {str(found)[:150]}"
            yield f"{stored.name}, {number}: {what}", problem
            emptied(folder)


def _copy(world: World, stored: Stored) -> Path:
    folder = world.new()
    shutil.copytree(stored.folder, folder, dirs_exist_ok=True, copy_function=shutil.copy)
    return folder


def _damage(folder: Path, names: tuple[str, ...], draw: random.Random) -> str:
    """Flip bits, overwrite a stretch, cut short, or exchange two files; say what was done."""
    files = sorted(path for name in names for path in folder.glob(name) if path.is_file())
    path = draw.choice(files)
    data = bytearray(path.read_bytes())
    kind = draw.choice(("flip", "flip", "overwrite", "quarter", "cut", "exchange" if len(files) > 1 else "flip"))
    if kind == "exchange":
        other = draw.choice([each for each in files if each != path])
        path_data, other_data = path.read_bytes(), other.read_bytes()
        path.write_bytes(other_data)
        other.write_bytes(path_data)
        return f"{path.name} and {other.name} exchanged"
    place = draw.randrange(len(data))
    if kind == "flip":
        data[place] ^= 1 << draw.randrange(8)
    elif kind == "overwrite":
        data[place : place + 64] = os.urandom(len(data[place : place + 64]))
    elif kind == "quarter":
        data[place : place + len(data) // 4] = os.urandom(len(data[place : place + len(data) // 4]))
    else:
        del data[place:]
    path.write_bytes(data)
    return f"{kind} at {place} of {path.name}"


def _stored(world: World) -> Iterator[Stored]:
    """Each format once, made by the command that makes it."""
    model, root = str(world.model), world.new()
    jobs = {job.name: job for job in world.jobs()}

    def asked(*words: object, then: str = "") -> Callable[[Path], tuple[Ended, object]]:
        def read(folder: Path) -> tuple[Ended, object]:
            ended = run(*words, folder=folder, environment=cache_in(folder))
            return ended, content(folder, then) if then and not ended.code else ended.output

        return read

    def made(name: str, *words: object) -> Path:
        folder = root / name
        folder.mkdir()
        ended = run(*words, folder=folder, environment=cache_in(folder))
        if ended.code:
            raise SystemExit(f"{name}: {ended.complaint}")
        return folder

    ask = ("neighbours", "Rome:Italy", "--index", "out", "-m", model, "-k", "30", "--json")
    for kind in ("flat", "hnsw"):
        folder = made(f"index {kind}", *jobs["index build"].words, "--kind", kind)
        yield Stored(f"index ({kind})", folder, ("out/*",), asked(*ask))
    compare = ("similarity", "Paris:France", "Tokyo:Japan", "cup:tea", "-m", "out", "--json")
    files = ("out/*.json", "out/*.safetensors", "out/*.sha256")
    yield Stored("adapter", made("adapter", *jobs["train"].words), files, asked(*compare))
    plain = made("plain", *jobs["merge"].words)
    yield Stored("plain model, numpy", plain, files, asked(*compare))
    yield Stored("plain model, torch", plain, files, asked(*compare, "--backend", "torch"))

    embedded = made("embedded", *jobs["embed"].words)
    importing = asked("index", "import", "out.npz", "-o", "out", "-m", model, then="out")
    yield Stored("vectors (.npz)", embedded, ("out.npz",), importing)
    cached = made("cached", *jobs["embed"].words)
    (cached / "out.npz").unlink()
    yield Stored("cache", cached, ("cache/cache.sqlite",), asked(*jobs["embed"].words, then="out.npz"))

    tuned = made("autoprompt", *jobs["autoprompt"].words)
    longer = jobs["autoprompt"].command.replace("--iterations 3", "--iterations 5").split()
    yield Stored("journal", tuned, ("out/history.jsonl",), asked(*longer, "-o", "out", then="out"))
    named = _with_catalogue(world, root / "catalogue")
    explaining = asked("explain", "Paris:France", "cup:tea", "-m", model, "--json")
    yield Stored("catalogue of relations", named, ("catalogue.npz",), explaining)
    sharded = made("shards", "embed", world.pairs, world.rated, "-m", model, "-o", "out", "--workers", "1")
    indexing = asked("index", "build", "out", "-o", "index", then="index")
    yield Stored("shards", sharded, ("out/*.parquet", "out/manifest.jsonl"), indexing)

    training = ("train", "--prompt", "out", "--data", world.rated, "--set", "steps=2", "-o", "new")
    yield Stored("prompt", tuned, ("out/prompt.json",), asked(*training, then="new"))

    begun = root / "checkpoint"
    begun.mkdir()
    _stopped_in_the_middle(jobs["train"].words, begun)
    yield Stored("checkpoint", begun, ("out/checkpoint.pt",), asked(*jobs["train"].words, then="out"))

    report = ("report", "--runs", "out", "--no-figures", "--json", "-o", "report")
    yield Stored("records", made("runs", *jobs["evaluate"].words), ("out/records.jsonl",), asked(*report))


def _with_catalogue(world: World, folder: Path) -> Path:
    """A folder with a small catalogue of the tiny model, which commands there take for the one that is shipped."""
    warnings.simplefilter("ignore", UnknownWordsWarning)
    vars(catalogues)["bundled_catalogue_path"] = lambda name: Path("catalogue.npz")
    model = RelBERT.from_pretrained(world.model, backend="numpy")
    built = build_catalogue(load(DEFAULT_SOURCE)[:30], lambda pairs: model.encode(pairs, truncate=True))
    folder.mkdir()
    content = replace(built, probes=model.encode(PROBE_PAIRS, normalize=True)).to_bytes()
    (folder / "catalogue.npz").write_bytes(content)
    return folder


def _stopped_in_the_middle(words: list[str], folder: Path) -> None:
    """Start a training and kill it once it has a checkpoint, before it is done."""
    while not (folder / "out" / "checkpoint.pt").is_file():
        shutil.rmtree(folder / "out", ignore_errors=True)
        started = start(*words, folder=folder, environment=cache_in(folder))
        while not (folder / "out" / "checkpoint.pt").is_file() and not (folder / "out" / "config.json").is_file():
            time.sleep(0.001)
        started.kill(0)
        started.wait()
