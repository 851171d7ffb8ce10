"""The vectors of a folder of shards, as a table that stays on disk: one or two shards are in memory at a time."""

import hashlib
from array import array
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relvec.bulk.manifest import Manifest
from relvec.bulk.parts import VECTOR
from relvec.errors import RelvecError
from relvec.index.vocabulary import PairVocabulary, as_label, distinct_pairs
from relvec.io.addresses import read_whole
from relvec.io.tables import RELATION_COLUMNS, Row, pyarrow
from relvec.pairs import Pair
from relvec.progress import progress_bar
from relvec.similarity import Vectors

Rows = NDArray[np.int64]


class ShardVectors:
    """The rows of a complete folder of shards, or some of them: `rows[10:20]` is an array of vectors.

    A shard whose checksum is another than the manifest's is refused.
    """

    def __init__(self, manifest: Manifest, some: Rows | None = None) -> None:
        if len(manifest.shards) < manifest.header.parts:
            there = f"{len(manifest.shards)} of {manifest.header.parts} shards"
            raise RelvecError(f"{manifest.folder} has {there}; run the same `relvec embed` again to finish it.")
        header = manifest.header
        self.made_by = header.plain
        self.shards = [manifest.shards[part] for part in sorted(manifest.shards)]
        self._manifest = manifest
        self._ends = np.cumsum([shard.rows for shard in self.shards])
        self._some = some
        self.shape = (int(self._ends[-1]) if some is None else len(some), header.dim)
        self._vectors = lru_cache(maxsize=2)(lambda number: _array(self._table(number)))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Vectors:
        wanted = np.arange(len(self))[rows] if self._some is None else self._some[rows]
        shard_of = np.searchsorted(self._ends, wanted, side="right")
        found = np.empty((len(wanted), self.shape[1]), dtype=np.float32)
        for number in np.unique(shard_of):
            of_shard = shard_of == number
            start = self._ends[number] - self.shards[number].rows
            found[of_shard] = self._vectors(int(number))[wanted[of_shard] - start]
        return found

    def distinct(self) -> tuple[PairVocabulary, "ShardVectors"]:
        """Each pair once, with the first label that it is given, and the vectors of their first rows."""
        words: dict[str, int] = {}
        names: dict[str, int] = {"": 0}
        heads, tails, labels = array("i"), array("i"), array("i")
        with progress_bar(len(self), "Reading pairs") as bar:
            for number in range(len(self.shards)):
                table = self._table(number, words=True)
                heads.extend(words.setdefault(word, len(words)) for word in table["head"].to_pylist())
                tails.extend(words.setdefault(word, len(words)) for word in table["tail"].to_pylist())
                labels.extend(names.setdefault(name, len(names)) for name in _labels(table))
                bar.update(len(table))
        head, tail, label = (np.frombuffer(numbers, dtype=np.int32) for numbers in (heads, tails, labels))
        pairs = head.astype(np.int64) << 32 | tail
        labelled_first = np.argsort(label == 0, kind="stable")
        _, first = np.unique(pairs, return_index=True)
        _, first_labelled = np.unique(pairs[labelled_first], return_index=True)
        label = label[labelled_first[first_labelled]]
        order = np.argsort(first)
        rows = first[order]
        vocabulary = PairVocabulary(list(words), head[rows], tail[rows], list(names), label[order])
        return vocabulary, ShardVectors(self._manifest, rows)

    def to_overwrite(self) -> Iterator[tuple[list[Pair], list[str], Vectors]]:
        """The rows by shard, each pair once a shard, for a writer that replaces a pair which it has already.

        They come from the last to the first and without a label before those with one: what stays in the end are the
        first label and vector of each pair, and no more than a shard is in memory.
        """
        for has_label in (False, True):
            for number in reversed(range(len(self.shards))):
                table = self._table(number)
                listed = list(zip(table["head"].to_pylist(), table["tail"].to_pylist(), strict=True))
                row_of = {pair: row for row, pair in reversed(list(enumerate(listed)))}
                known = zip(*distinct_pairs(listed, _labels(table)), strict=True)
                chosen = [(pair, label) for pair, label in known if bool(label) == has_label]
                if chosen:
                    vectors = _array(table)[[row_of[pair] for pair, _ in chosen]]
                    yield [pair for pair, _ in chosen], [label for _, label in chosen], vectors

    def _table(self, number: int, words: bool = False) -> Any:
        """A shard, or all of it but the vectors."""
        arrow, parquet = pyarrow()
        address = self._manifest.address(self.shards[number])
        content = read_whole(address)
        if hashlib.sha256(content).hexdigest() != self.shards[number].sha256:
            raise RelvecError(f"{address} is damaged; remove it and run the same `relvec embed` again.")
        file = parquet.ParquetFile(arrow.BufferReader(content))
        return file.read([name for name in file.schema_arrow.names if name != VECTOR] if words else None)


def _labels(table: Any) -> list[str]:
    """The label of each row of a shard, "" where there is none."""
    column = next((table[name] for name in RELATION_COLUMNS if name in table.column_names), None)
    if column is None:
        return [""] * len(table)
    return [as_label(Row("", {"relation": label}).relation()) for label in column.to_pylist()]


def _array(table: Any) -> Vectors:
    lists = table[VECTOR].combine_chunks()
    return np.asarray(lists.flatten().to_numpy(zero_copy_only=False)).reshape(len(lists), -1)
