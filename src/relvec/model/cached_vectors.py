"""What evaluates as vectors of pairs: a protocol, and RelBERT models with a disk cache behind them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from relvec.model.relation_model import BATCH_SIZE, RelBERT
from relvec.pairs import Pair
from relvec.progress import progress_bar
from relvec.similarity import Vectors
from relvec.storage.encoding_cache import EncodingCache

PAIRS_PER_STEP = 256  # some seconds of work on two cores: what a kill may lose

Known = NDArray[np.bool_]


class PairVectors(Protocol):
    """Anything that turns pairs into vectors; the name is what tables call it."""

    name: str
    has_direction: bool
    """Whether a classifier should see (tail, head) besides (head, tail), as with relation vectors."""

    @property
    def fingerprint(self) -> str:
        """A checksum of all that decides the vectors."""
        ...

    def vectors(self, pairs: Sequence[Pair]) -> tuple[Vectors, Known]:
        """One row a pair, and whether the pair is known; the row of an unknown pair is zero."""
        ...


class ModelVectors:
    """The vectors of a RelBERT; each distinct pair is encoded once, ever, if there is a cache folder."""

    has_direction = True

    def __init__(
        self,
        model: RelBERT,
        cache_folder: str | Path | None = None,
        *,
        name: str = "",
        batch_size: int = BATCH_SIZE,
        show_progress: bool | None = None,
    ) -> None:
        self.model = model
        self.name = name or model.name
        self.fingerprint = model.fingerprint
        self._cache = EncodingCache(self.fingerprint, model.dim, cache_folder)
        self._batch_size = batch_size
        self._show_progress = show_progress

    def vectors(self, pairs: Sequence[Pair]) -> tuple[Vectors, Known]:
        """The vectors of pairs, encoded first where the cache lacks them."""
        self.prepare(pairs)
        return self._cache.get(pairs), np.ones(len(pairs), dtype=bool)

    def missing(self, pairs: Sequence[Pair]) -> list[Pair]:
        """The distinct pairs that the cache lacks."""
        return self._cache.missing(pairs)

    def prepare(self, pairs: Sequence[Pair]) -> None:
        """What the cache lacks is encoded and put there, step by step, so that an interruption loses little."""
        missing = self.missing(pairs)
        with progress_bar(len(missing), f"Encoding with {self.name}", show=self._show_progress) as bar:
            # Of like length: a step then has little padding.
            missing.sort(key=lambda pair: len(pair[0]) + len(pair[1]))
            for start in range(0, len(missing), PAIRS_PER_STEP):
                step = missing[start : start + PAIRS_PER_STEP]
                self._cache.add(step, self.model.encode(step, batch_size=self._batch_size, truncate=True))
                bar.update(len(step))
