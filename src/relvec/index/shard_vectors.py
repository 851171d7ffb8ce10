"""The vectors of a folder of shards, as a table that stays on disk."""

import hashlib
from functools import lru_cache
from typing import Any

import numpy as np

from relvec.bulk.manifest import Manifest, Shard
from relvec.bulk.parts import VECTOR
from relvec.errors import RelvecError
from relvec.index.vocabulary import as_label
from relvec.io.addresses import read_whole
from relvec.io.tables import RELATION_COLUMNS, pyarrow
from relvec.model.model_check import ModelCheck
from relvec.pairs import Pair
from relvec.progress import progress_bar
from relvec.similarity import Vectors


class ShardVectors:
    """Distinct pairs in the order of the shards, their relations, and their vectors: `rows[10:20]` is an array.

    A pair keeps its first vector and its first label. A shard whose checksum is another than the manifest's is refused.
    """

    def __init__(self, manifest: Manifest) -> None:
        if not manifest.is_complete:
            there = f"{len(manifest.shards)} of {manifest.header.parts} shards"
            raise RelvecError(f"{manifest.folder} has {there}; run the same `relvec embed` again to finish it.")
        header = manifest.header
        self.made_by = ModelCheck(model=header.model, fingerprint=header.fingerprint, probes=header.probes)
        self._manifest = manifest
        self._shards = [manifest.shards[part] for part in sorted(manifest.shards)]
        labels: dict[Pair, str] = {}
        places: list[tuple[int, int]] = []
        with progress_bar(header.rows, "Reading shards") as bar:
            for number, shard in enumerate(self._shards):
                table = self._table(shard)
                label = next((table[name].to_pylist() for name in RELATION_COLUMNS if name in table.column_names), None)
                words = zip(table["head"].to_pylist(), table["tail"].to_pylist(), strict=True)
                for row, pair in enumerate(words):
                    if pair not in labels:
                        places.append((number, row))
                    labels[pair] = labels.get(pair) or (as_label(label[row]) if label else "")
                bar.update(len(table))
        self.pairs, self.relations = list(labels), list(labels.values())
        self._places = np.array(places, dtype=np.int64).reshape(-1, 2)
        self.shape = (len(places), header.dim)
        self._vectors = lru_cache(maxsize=2)(self._read)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Vectors:
        places = self._places[rows]
        found = np.empty((len(places), self.shape[1]), dtype=np.float32)
        for number in np.unique(places[:, 0]):
            of_shard = places[:, 0] == number
            found[of_shard] = self._vectors(int(number))[places[of_shard, 1]]
        return found

    def _read(self, number: int) -> Vectors:
        lists = self._table(self._shards[number])[VECTOR].combine_chunks()
        return np.asarray(lists.flatten().to_numpy(zero_copy_only=False)).reshape(len(lists), self.shape[1])

    def _table(self, shard: Shard) -> Any:
        arrow, parquet = pyarrow()
        content = read_whole(self._manifest.address(shard))
        if hashlib.sha256(content).hexdigest() != shard.sha256:
            problem = f"{self._manifest.address(shard)} is damaged"
            raise RelvecError(f"{problem}; remove it and run the same `relvec embed` again.")
        return parquet.read_table(arrow.BufferReader(content))
