"""An index in Milvus: embedded in a folder (Milvus Lite) or on a server, by the address alone.

`milvus:./pairs.db` is a folder, `milvus:http://host:19530/pairs` the collection `pairs` of a server. The collection has
a row for each pair: the key `head<tab>tail`, both words in lower case for the filters, the relation, and the vector. A
second collection, `<name>_about`, says which model made the vectors and keeps the projection of shortened ones; it is
marked complete last, so that a build that was killed does not count.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from relvec.errors import RelvecError, needed_for
from relvec.index.kinds import KINDS
from relvec.index.pair_index import Neighbour, PairFilter, PairIndex
from relvec.index.vector_store import VectorRows, check_shorter, training_sample
from relvec.index.vocabulary import PairVocabulary
from relvec.io.files import expanded
from relvec.model.model_check import ModelCheck
from relvec.pairs import Pair
from relvec.progress import progress_bar
from relvec.similarity import Vectors, normalized, principal_axes

COLLECTION = "pairs"
ROWS_PER_STEP = 1_000
WORD_BYTES = 4_096

MADE_BY, COMPLETE, AXIS = "made_by", "complete", "axis"
"""Keys of the collection `<name>_about`; the rows `axis 0`, `axis 1`, ... are the projection."""

Block = tuple[Sequence[Pair], Sequence[str], VectorRows]
"""Pairs, their relations and their vectors."""


class MilvusIndex(PairIndex):
    """The methods of `PairIndex` on a Milvus collection; changes are there at once, and nothing is held in memory."""

    def __init__(self, address: str, client: Any, name: str, made_by: ModelCheck, axes: Vectors | None) -> None:
        self.address = address
        self.made_by = made_by
        self.dim, self.kind, self.is_exact = made_by.vectors.shape[1], "milvus", axes is None
        self._client = client
        self._name = name
        self._axes = axes
        self._is_writable = True
        self._checked = None

    @classmethod
    def open(cls, address: str) -> Self:
        """Connect to an index that is complete."""
        client, name = connected(address, must_exist=True)
        with _answered(address):
            about = _about(client, name)
        if COMPLETE not in about:
            state = "holds an index that was not finished" if MADE_BY in about else "holds no index"
            raise RelvecError(f"{address} {state}; make it with `relvec index build`.")
        rows = [about[f"{AXIS} {number}"] for number in range(len(about) - 2)]
        axes = np.array([row["vector"] for row in rows], dtype=np.float32) if rows else None
        return cls(address, client, name, ModelCheck(**json.loads(about[MADE_BY]["value"])), axes)

    @classmethod
    def begin(cls, address: str, made_by: ModelCheck, dim: int, axes: Vectors | None = None) -> Self:
        """An empty index that does not count yet; one that was not finished is replaced."""
        client, name = connected(address, must_exist=False)
        with _answered(address):
            about = _about(client, name)
            if COMPLETE in about:
                fix = "choose another name, add to it with `relvec index add`, or drop it"
                raise RelvecError(f"{address} holds an index already; {fix}.")
            for old in (name, f"{name}_about"):
                if client.has_collection(old):
                    client.drop_collection(old)
            # The embedded engine spends its time on other things than comparing; a server picks an index of its own.
            method = "AUTOINDEX" if "://" in address else "FLAT"
            _create(client, f"{name}_about", {"key": 64, "value": 65_535}, dim, method)
            rows = [{"key": MADE_BY, "value": json.dumps(made_by.as_dict()), "vector": [0.0] * dim}]
            for number, axis in enumerate(() if axes is None else axes):
                rows.append({"key": f"{AXIS} {number}", "value": "", "vector": axis.tolist()})
            client.upsert(f"{name}_about", rows)
            words = {"pair": 2 * WORD_BYTES + 1, "head": WORD_BYTES, "tail": WORD_BYTES, "relation": WORD_BYTES}
            _create(client, name, words, dim if axes is None else len(axes), method)
        return cls(address, client, name, made_by, axes)

    @classmethod
    def filled(
        cls, address: str, made_by: ModelCheck, vectors: VectorRows, shorter: int | None, blocks: Iterable[Block]
    ) -> Self:
        """Make an index of all blocks of pairs; `vectors` are theirs, to fit the projection of `shorter` ones to."""
        dim = vectors.shape[1]
        axes = None
        if shorter:
            axes = principal_axes(training_sample(vectors), check_shorter(shorter, KINDS["flat"], dim))
        index = cls.begin(address, made_by, dim, axes)
        index._fill(blocks, len(vectors))
        with _answered(address):
            index._client.flush(index._name)
            row = {"key": COMPLETE, "value": "", "vector": [0.0] * dim}
            index._client.upsert(f"{index._name}_about", [row])
            index._client.flush(f"{index._name}_about")
        return index

    def __len__(self) -> int:
        with _answered(self.address):
            return int(self._client.query(self._name, filter="", output_fields=["count(*)"])[0]["count(*)"])

    @cached_property
    def pairs(self) -> PairVocabulary:  # type: ignore[override]
        """Every pair, read from the collection at the first use: for export."""
        rows = list(self._rows(["pair", "relation"]))
        return PairVocabulary.of([_pair(row["pair"]) for row in rows], [row["relation"] for row in rows])

    def _get(self, start: int, stop: int) -> Vectors:
        wanted = self.pairs.pairs()[start:stop]
        found: dict[Pair, Any] = {}
        for step in _steps(wanted):
            for row in self._query(_one_of("pair", map(_key, step)), ["pair", "vector"]):
                found[_pair(row["pair"])] = row["vector"]
        return np.array([found[pair] for pair in wanted], dtype=np.float32)

    def candidates(self, vector: NDArray[np.float32], k: int, wanted: PairFilter | None = None) -> list[Neighbour]:
        with _answered(self.address):
            found = self._client.search(
                self._name,
                self._projected(vector[None]).tolist(),
                limit=k,
                filter=expression(wanted or PairFilter()),
                output_fields=["pair", "relation"],
                search_params={"metric_type": "IP"},
            )[0]
        rows = [(row["entity"], min(1.0, float(row["distance"]))) for row in found]
        return [Neighbour(_pair(entity["pair"]), score, entity["relation"]) for entity, score in rows]

    def _has_relation(self, relation: str) -> bool:
        return bool(self._query(_one_of("relation", [relation]), ["relation"], limit=1))

    def _advice(self, relation: str) -> str:
        return "check its spelling"

    def partners(self, word: str) -> set[str]:
        key = [word.casefold()]
        rows = self._query(f"{_one_of('head', key)} or {_one_of('tail', key)}", ["pair"])
        return {each for row in rows for each in _pair(row["pair"])}

    def append(self, pairs: Sequence[Pair], relations: Sequence[str], vectors: VectorRows) -> None:
        """Write pairs with their vectors; one that is here already is replaced."""
        self._fill([(pairs, relations, vectors)], len(pairs))

    def _fill(self, blocks: Iterable[Block], total: int) -> None:
        with progress_bar(total, "Indexing") as bar, _answered(self.address):
            for pairs, relations, vectors in blocks:
                for start in range(0, len(pairs), ROWS_PER_STEP):
                    stop = min(start + ROWS_PER_STEP, len(pairs))
                    projected = self._projected(vectors[start:stop])
                    rows = [
                        {
                            "pair": _key(pairs[at]),
                            "head": pairs[at][0].casefold(),
                            "tail": pairs[at][1].casefold(),
                            "relation": relations[at],
                            "vector": projected[at - start],
                        }
                        for at in range(start, stop)
                    ]
                    self._client.upsert(self._name, rows)
                    bar.update(len(rows))
        self.__dict__.pop("pairs", None)

    def _drop(self, pairs: Iterable[Pair]) -> None:
        with _answered(self.address):
            for step in _steps(list(pairs)):
                self._client.delete(self._name, filter=_one_of("pair", map(_key, step)))
        self.__dict__.pop("pairs", None)

    def save(self, folder: str | Path) -> Any:
        raise RelvecError(f"{self.address} is written already; export it to a file, and import that into a folder.")

    def known(self, pairs: Iterable[Pair]) -> set[Pair]:
        found: set[Pair] = set()
        for step in _steps(list(dict.fromkeys(pairs))):
            found |= {_pair(row["pair"]) for row in self._query(_one_of("pair", map(_key, step)), ["pair"])}
        return found

    def _projected(self, vectors: Any) -> Vectors:
        unit = normalized(np.asarray(vectors, dtype=np.float32))
        return unit if self._axes is None else unit @ self._axes.T

    def _query(self, wanted: str, fields: list[str], **options: Any) -> list[Any]:
        with _answered(self.address):
            return list(self._client.query(self._name, filter=wanted, output_fields=fields, **options))

    def _rows(self, fields: list[str]) -> Iterator[Any]:
        with _answered(self.address):
            steps = self._client.query_iterator(self._name, batch_size=ROWS_PER_STEP, filter="", output_fields=fields)
            while step := steps.next():
                yield from step
            steps.close()


def connected(address: str, *, must_exist: bool) -> tuple[Any, str]:
    """A client for an address, and the name of the collection there."""
    with needed_for("An index in Milvus"):
        from pymilvus import MilvusClient
    for noisy in ("pymilvus", "milvus_lite"):  # they print tracebacks of what is told in a sentence
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    place = address.removeprefix("milvus:")
    if "://" in place:
        parts = urlsplit(place)
        uri, name = f"{parts.scheme}://{parts.netloc}", parts.path.strip("/") or COLLECTION
    else:
        path = expanded(place)
        if path.suffix != ".db" or not path.parent.is_dir() or (must_exist and not path.exists()):
            fix = "write milvus:FOLDER.db in a folder that exists, or milvus:http://host:19530/name"
            raise RelvecError(f"There is no Milvus index at {address}; {fix}.")
        with needed_for("An index in a Milvus folder"):
            import milvus_lite  # noqa: F401 - what pymilvus starts for a folder
        uri, name = str(path), COLLECTION
    with _answered(address):
        return MilvusClient(uri), name


@contextmanager
def _answered(address: str) -> Iterator[None]:
    """What Milvus refuses, and a server that does not answer, as one sentence."""
    from pymilvus import MilvusException

    try:
        yield
    except MilvusException as error:
        reason = str(error.message).strip().splitlines()[0].rstrip(".")
        fix = "check the address, that nobody else has it open, and the space there"
        raise RelvecError(f"Milvus at {address} does not do this ({reason}); {fix}.") from error


def _about(client: Any, name: str) -> dict[str, Any]:
    """The rows of the second collection by key; none where there is no index."""
    if not client.has_collection(f"{name}_about"):
        return {}
    client.load_collection(f"{name}_about")
    if client.has_collection(name):
        client.load_collection(name)
    rows = client.query(f"{name}_about", filter='key != ""', output_fields=["key", "value", "vector"])
    return {row["key"]: row for row in rows}


def _create(client: Any, name: str, texts: dict[str, int], dim: int, method: str) -> None:
    """A collection of texts, the first of which is the key, and vectors."""
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    for number, (text, length) in enumerate(texts.items()):
        schema.add_field(text, DataType.VARCHAR, is_primary=number == 0, max_length=length)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dim)
    index = client.prepare_index_params()
    index.add_index("vector", index_type=method, metric_type="IP")
    client.create_collection(name, schema=schema, index_params=index, consistency_level="Strong")


def expression(wanted: PairFilter) -> str:
    r"""The conditions in Milvus' own language.

    >>> expression(PairFilter(("part of",), without_words=frozenset(["Cup"])))
    'relation in ["part of"] and head not in ["cup"] and tail not in ["cup"]'
    """
    parts = [] if wanted.relations is None else [_one_of("relation", wanted.relations)]
    parts += [_one_of("head", [wanted.head.casefold()])] if wanted.head else []
    parts += [_one_of("tail", [wanted.tail.casefold()])] if wanted.tail else []
    if wanted.without_words:
        words = _listed(word.casefold() for word in sorted(wanted.without_words))
        parts += [f"head not in {words}", f"tail not in {words}"]
    for head, tail in sorted(wanted.without_pairs):
        parts.append(f"not ({_one_of('head', [head.casefold()])} and {_one_of('tail', [tail.casefold()])})")
    return " and ".join(parts)


def _one_of(field: str, texts: Iterable[str]) -> str:
    return f"{field} in {_listed(texts)}"


def _listed(texts: Iterable[str]) -> str:
    escaped = (text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") for text in texts)
    return "[" + ", ".join(f'"{text}"' for text in escaped) + "]"


def _key(pair: Pair) -> str:
    return "\t".join(pair)


def _pair(key: str) -> Pair:
    head, _, tail = key.partition("\t")
    return head, tail


def _steps(pairs: Sequence[Pair]) -> Iterator[Sequence[Pair]]:
    return (pairs[start : start + ROWS_PER_STEP] for start in range(0, len(pairs), ROWS_PER_STEP))
