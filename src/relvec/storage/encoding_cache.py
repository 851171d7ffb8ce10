"""Vectors that were computed once: kept on disk by model and pair."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from relvec.errors import RelvecError
from relvec.pairs import Pair
from relvec.similarity import Vectors
from relvec.storage.cache import cache_folder
from relvec.storage.growing_file import GrowingFile


class EncodingCache:
    """Two growing files for each fingerprint: pairs and float32 rows. A row counts once its pair does."""

    def __init__(self, fingerprint: str, dim: int, folder: str | Path | None = None) -> None:
        root = Path(folder) if folder is not None else cache_folder() / "encodings"
        self._folder = root / fingerprint[:16]
        self._dim = dim
        self._rows: dict[Pair, int] = {}
        self._pairs, self._vectors = GrowingFile(self._folder / "pairs.jsonl"), self._folder / "vectors.f32"
        self._catch_up()

    def missing(self, pairs: Iterable[Pair]) -> list[Pair]:
        """The distinct pairs that are not here yet."""
        return [pair for pair in dict.fromkeys(pairs) if pair not in self._rows]

    def get(self, pairs: Sequence[Pair]) -> Vectors:
        """The vectors of known pairs, one row each."""
        if not pairs:
            return np.empty((0, self._dim), dtype=np.float32)
        stored = np.memmap(self._vectors, dtype=np.float32, mode="r", shape=(len(self._rows), self._dim))
        return np.asarray(stored[[self._rows[pair] for pair in pairs]])

    def add(self, pairs: Sequence[Pair], vectors: Vectors) -> None:
        """Keep the vectors of pairs."""
        with self._pairs.locked():
            self._catch_up()
            place = {pair: number for number, pair in enumerate(pairs)}
            new = self.missing(pairs)
            rows = np.ascontiguousarray(vectors[[place[pair] for pair in new]], dtype=np.float32)
            with self._vectors.open("r+b" if self._vectors.exists() else "wb") as file:
                file.truncate(self._bytes())
                file.seek(0, 2)
                file.write(rows.tobytes())
            self._pairs.append(new)
            self._catch_up()

    def _catch_up(self) -> None:
        for head, tail in self._pairs.news():
            self._rows[head, tail] = len(self._rows)
        if self._rows and (not self._vectors.is_file() or self._vectors.stat().st_size < self._bytes()):
            raise RelvecError(f"{self._vectors} lacks vectors; remove the folder {self._folder}.")

    def _bytes(self) -> int:
        return len(self._rows) * self._dim * np.dtype(np.float32).itemsize
