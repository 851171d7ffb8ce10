"""Vectors that were computed once: kept on disk by model and pair."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from filelock import FileLock

from relvec.encoders.cache import cache_folder
from relvec.errors import RelvecError
from relvec.pairs import Pair
from relvec.similarity import Vectors


class EncodingCache:
    """Two growing files for each fingerprint: pairs (JSON Lines) and float32 rows.

    A row counts once its pair's line is whole; what a kill left beyond that is cut off by the next writer.
    """

    def __init__(self, fingerprint: str, dim: int, folder: str | Path | None = None) -> None:
        root = Path(folder) if folder is not None else cache_folder() / "encodings"
        self._folder = root / fingerprint[:16]
        self._dim = dim
        self._rows: dict[Pair, int] = {}
        self._read = 0  # bytes of the pair file that are known
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RelvecError(f"Cannot make {self._folder}: {error.strerror}; choose another cache folder.") from error
        self._pairs, self._vectors = self._folder / "pairs.jsonl", self._folder / "vectors.f32"
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
        """Keep the vectors of pairs; one writer at a time."""
        with FileLock(self._folder / "lock"):
            self._catch_up()
            places = {pair: place for place, pair in enumerate(pairs)}
            new = [place for pair, place in places.items() if pair not in self._rows]
            rows = np.ascontiguousarray(vectors[new], dtype=np.float32)
            try:
                with self._vectors.open("r+b" if self._vectors.exists() else "wb") as file:
                    file.truncate(len(self._rows) * rows.itemsize * self._dim)
                    file.seek(0, 2)
                    file.write(rows.tobytes())
                with self._pairs.open("r+b" if self._pairs.exists() else "wb") as file:
                    file.truncate(self._read)
                    file.seek(0, 2)
                    file.write("".join(json.dumps(pairs[place], ensure_ascii=False) + "\n" for place in new).encode())
            except OSError as error:
                raise RelvecError(f"Cannot write to {self._folder}: {error.strerror}; free space there.") from error
            self._catch_up()

    def _catch_up(self) -> None:
        """Learn of the pairs that were added since, perhaps by another process."""
        if not self._pairs.exists():
            return
        with self._pairs.open("rb") as file:
            file.seek(self._read)
            added = file.read()
        whole = added[: added.rfind(b"\n") + 1]
        for line in whole.splitlines():
            head, tail = json.loads(line)
            self._rows[head, tail] = len(self._rows)
        self._read += len(whole)
