"""Encoding and searching for a long time in one process: its memory must not grow."""

import random
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from outputs import Case
from world import PAIRS, World

from relvec import PairIndex, RelBERT
from relvec.errors import UnknownWordsWarning
from relvec.index import build_index
from relvec.model.cached_vectors import ModelVectors

GROWTH = 1.05  # from the first quarter to the last


def soak(world: World, minutes: float, draw: random.Random) -> Iterator[Case]:
    """Mixed work for so many minutes; the resident memory of the last quarter is that of the first."""
    warnings.simplefilter("ignore", UnknownWordsWarning)
    folder = world.new()
    letters = "abcdefghijklmnopqrstuvwxyz"
    models = [RelBERT.from_pretrained(world.model, backend=backend) for backend in ("numpy", "torch")]
    build_index(models[0], PAIRS, folder / "index")
    sizes: list[int] = []
    start, calls = time.perf_counter(), 0
    while time.perf_counter() < start + 60 * minutes:
        model = draw.choice(models)
        words = ["".join(draw.choices(letters, k=draw.randrange(1, 12))) for _ in range(40)]
        pairs = list(zip(words[::2], words[1::2], strict=True))
        model.encode(pairs)
        model.rank(pairs[0], pairs[1:])
        index = PairIndex.load(folder / "index")
        index.neighbours(model, pairs[0], 5)
        if calls % 50 == 0:
            ModelVectors(model, folder / "cache").vectors(PAIRS)
            with PairIndex.editing(folder / "index") as edited:
                edited.add(model, pairs[:1])
                edited.remove(pairs[:1])
        calls += 1
        sizes.append(resident_bytes())
    quarter = max(1, len(sizes) // 4)
    first, last = (sum(part) / len(part) / 1e6 for part in (sizes[:quarter], sizes[-quarter:]))
    told = f"{minutes:g} minutes, {calls:,} calls: {first:.1f} MB in the first quarter, {last:.1f} MB in the last"
    yield told, "" if last <= GROWTH * first else "the memory grows"


def resident_bytes() -> int:
    import resource

    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
