"""PairIndex: which pairs, of many, are related as a given pair is?"""

import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from relvec.errors import RelvecError
from relvec.index.kinds import check_kind
from relvec.index.storage import Meta, read_folder, read_meta, write_folder, writing
from relvec.index.vector_store import VectorStore
from relvec.index.vocabulary import Mask, PairVocabulary
from relvec.model import RelBERT
from relvec.pairs import Pair, Prototype, Relation, as_pair, as_relation, as_relations, is_single
from relvec.similarity import Vectors, cosine

RERANKED = 32


class Neighbour(NamedTuple):
    """A pair of the index, how alike its relation is to the query's, and the name of its relation, if it has one."""

    pair: Pair
    score: float
    relation: str = ""


class PairIndex:
    """Distinct pairs and their vectors by one model, to be searched with that model only.

    Vectors are kept with length 1: an index knows directions, not lengths. Up to 20,000 pairs are kept whole (`flat`);
    above, `auto` takes `rabitq`: of all kinds measured on 2 cores it was quickest to build, found the most true
    neighbours for its 90 bytes a pair, and needs no tuning (`benchmarks/index.py` prints the numbers).

    >>> from relvec import RelBERT
    >>> model = RelBERT.from_pretrained(tiny_model)
    >>> index = PairIndex.of(model, [("Tokyo", "Japan"), ("cup", "tea"), ("Paris", "France"), ("cats", "dogs")])
    >>> [neighbour.pair for neighbour in index.neighbours(model, ("Paris", "Japan"), k=2)]
    [('cup', 'tea'), ('cats', 'dogs')]
    >>> index.save("my.index").count
    4
    >>> PairIndex.load("my.index")
    PairIndex(4 pairs, 16 dimensions, kind='flat', model='tiny-roberta')
    """

    def __init__(
        self, vectors: VectorStore, pairs: PairVocabulary, *, model: str, fingerprint: str, is_writable: bool = True
    ) -> None:
        self.pairs = pairs
        self.model_name = model
        self.fingerprint = fingerprint
        self._vectors = vectors
        self._is_writable = is_writable
        self._removed = np.zeros(len(pairs), dtype=bool)
        self._checked: weakref.ref[RelBERT] | None = None

    @classmethod
    def of(cls, model: RelBERT, pairs: Any, *, relations: Sequence[str] | None = None, kind: str = "auto") -> Self:
        """Encode pairs and index them, in memory; `relations` names the relation of each.

        For a long list, `relvec.index.building.build_index` keeps what is finished on disk.
        """
        listed = [as_pair(pair) for pair in as_relations(pairs)]
        distinct, labels = distinct_pairs(listed, relations)
        vectors = model.encode(distinct)
        return cls.of_vectors(distinct, vectors, model=model, relations=labels, kind=kind)

    @classmethod
    def of_vectors(
        cls,
        pairs: Sequence[Pair],
        vectors: Vectors,
        *,
        model: RelBERT,
        relations: Sequence[str] | None = None,
        kind: str = "auto",
        show_progress: bool | None = False,
    ) -> Self:
        """Index vectors that the model has made before: one row for each of distinct pairs.

        >>> from relvec import RelBERT
        >>> model = RelBERT.from_pretrained(tiny_model)
        >>> pairs = [("Paris", "France"), ("cup", "tea")]
        >>> PairIndex.of_vectors(pairs, model.encode(pairs), model=model)
        PairIndex(2 pairs, 16 dimensions, kind='flat', model='tiny-roberta')
        """
        if not pairs:
            raise RelvecError("There is no pair to index; give at least one.")
        if vectors.shape != (len(pairs), model.dim):
            shape = " x ".join(map(str, vectors.shape))
            raise RelvecError(
                f"The vectors are {shape} where {len(pairs)} pairs and {model.name} need {len(pairs)} x {model.dim}; "
                "give the vectors that this model made."
            )
        vocabulary = PairVocabulary.of(pairs, relations)
        store = VectorStore.of(vectors, check_kind(kind, len(pairs)), show_progress)
        return cls(store, vocabulary, model=model.name, fingerprint=model.fingerprint)

    @classmethod
    def load(cls, folder: str | Path, *, writable: bool = False) -> Self:
        """Open an index for searching: it is mapped from disk, not copied, and several processes share it.

        A `writable` one is read into memory; to change the folder itself, use `editing`.
        """
        stored = read_folder(Path(folder), mapped=not writable)
        meta = stored.meta
        return cls(stored.vectors, stored.pairs, model=meta.model, fingerprint=meta.fingerprint, is_writable=writable)

    def save(self, folder: str | Path) -> Meta:
        """Write the index as a folder, whole or not at all; what was removed is left out."""
        target = Path(folder)
        with writing(target):
            return self.write(target)

    @classmethod
    @contextmanager
    def editing(cls, folder: str | Path) -> Iterator[Self]:
        """Load an index, let the block change it, and save it; other writers wait, readers go on.

        >>> from relvec import RelBERT
        >>> model = RelBERT.from_pretrained(tiny_model)
        >>> _ = PairIndex.of(model, [("Paris", "France")]).save("my.index")
        >>> with PairIndex.editing("my.index") as index:
        ...     index.add(model, [("cup", "tea"), ("Paris", "France")]), index.remove([("Paris", "France")])
        (1, 1)
        >>> PairIndex.load("my.index").pairs.pairs()
        [('cup', 'tea')]
        """
        target = Path(folder)
        read_meta(target)  # no lock file is put where there is no index
        with writing(target):
            index = cls.load(target, writable=True)
            yield index
            index.write(target)

    def write(self, folder: Path) -> Meta:
        """What `save` does, for a caller that holds the lock (`storage.writing`) already."""
        self.compact()
        return write_folder(folder, self._vectors, self.pairs, model=self.model_name, fingerprint=self.fingerprint)

    def __len__(self) -> int:
        return len(self.pairs) - int(self._removed.sum())

    @property
    def dim(self) -> int:
        return self._vectors.dim

    @property
    def kind(self) -> str:
        return self._vectors.kind.name

    @property
    def is_exact(self) -> bool:
        """Whether the vectors are kept whole."""
        return self._vectors.kind.is_exact

    def add(
        self, model: RelBERT, pairs: Any, *, relations: Sequence[str] | None = None, vectors: Vectors | None = None
    ) -> int:
        """Append the pairs that are not here yet, and return how many; their `vectors` may be known already."""
        self._check_writable()
        self.check_model(model)
        listed = [as_pair(pair) for pair in as_relations(pairs)]
        self.compact()
        distinct, labels = distinct_pairs(listed, relations)
        is_new = self.pairs.rows_of(distinct) < 0
        new = [pair for pair, keep in zip(distinct, is_new, strict=True) if keep]
        if not new:
            return 0
        if vectors is None:
            rows = model.encode(new)
        else:
            place = {pair: row for row, pair in reversed(list(enumerate(listed)))}
            rows = vectors[[place[pair] for pair in new]]
        self._vectors.add(rows)
        new_labels = [label for label, keep in zip(labels, is_new, strict=True) if keep]
        self.pairs = self.pairs.joined(PairVocabulary.of(new, new_labels))
        self._removed = np.zeros(len(self.pairs), dtype=bool)
        return len(new)

    def remove(self, pairs: Any) -> int:
        """Take pairs out, and return how many were there; their vectors go when the index is saved or compacted."""
        self._check_writable()
        rows = self.pairs.rows_of(dict.fromkeys(as_pair(pair) for pair in as_relations(pairs)))
        rows = rows[rows >= 0]
        removed = int((~self._removed[rows]).sum())
        if removed == len(self):
            raise RelvecError("An index cannot be empty; delete its folder instead of removing every pair.")
        self._removed[rows] = True
        return removed

    def compact(self) -> None:
        """Free the room of what was removed."""
        if self._removed.any():
            self._vectors.drop(np.flatnonzero(self._removed))
            self.pairs = self.pairs.kept(~self._removed)
            self._removed = np.zeros(len(self.pairs), dtype=bool)

    def check_model(self, model: RelBERT) -> None:
        """Refuse a model that did not make these vectors; its weights are compared once."""
        if self._checked is not None and self._checked() is model:
            return
        if model.fingerprint != self.fingerprint:
            raise RelvecError(
                f"The index was made with another model ({self.model_name}) than this {model.name}; use that model, "
                "or build an index with this one."
            )
        self._checked = weakref.ref(model)

    def neighbours(
        self,
        model: RelBERT,
        query: Any,
        k: int = 10,
        *,
        rerank: int = RERANKED,
        exclude_shared_words: bool = True,
        relations: Iterable[str] | None = None,
    ) -> list[Neighbour]:
        """The k pairs whose relation is most like that of the query: a pair, or several (the mean of their vectors).

        score(p) = cos(x_query, x_p). Of a compressed index the best `rerank` candidates are encoded again, which makes
        their scores exact; further ones keep their estimates. The query's own pairs and their reverses never count,
        nor, unless told otherwise, does a pair that has a word of the query. `relations` keeps to pairs so labelled.
        """
        if k < 1:
            raise RelvecError(f"{k} neighbours cannot be found; ask for 1 or more.")
        relation = as_query(query)
        self.check_model(model)
        vector = model.encode(relation)
        allowed = self._allowed(relation, exclude_shared_words, relations)
        wanted = k if self.is_exact else max(k, rerank)
        return self._reranked(model, vector, *self.search(vector, wanted, allowed), rerank)[:k]

    def search(
        self, vector: NDArray[np.float32], k: int, allowed: Mask | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores as the index knows them, and rows of `pairs`, best first."""
        if self._removed.any():
            allowed = ~self._removed if allowed is None else allowed & ~self._removed
        return self._vectors.search(vector, k, allowed)

    def vectors(self, start: int = 0, stop: int | None = None) -> Vectors:
        """The vectors of rows of `pairs`, of length 1; only an exact index still has them."""
        if not self.is_exact:
            raise RelvecError(f"A {self.kind} index keeps no whole vectors; encode its pairs with the model.")
        return self._vectors.get(start, len(self.pairs) if stop is None else stop)

    def _allowed(self, query: Relation, exclude_shared_words: bool, relations: Iterable[str] | None) -> Mask:
        pairs = query.pairs if isinstance(query, Prototype) else (query,)
        if exclude_shared_words:
            excluded = self.pairs.with_word({word for pair in pairs for word in pair})
        else:
            excluded = np.zeros(len(self.pairs), dtype=bool)
            for pair in pairs:
                for head, tail in (pair, pair[::-1]):
                    excluded |= self.pairs.with_head([head]) & self.pairs.with_tail([tail])
        return ~excluded if relations is None else ~excluded & self.pairs.with_relation(relations)

    def _reranked(
        self,
        model: RelBERT,
        vector: NDArray[np.float32],
        scores: NDArray[np.float32],
        rows: NDArray[np.int64],
        rerank: int,
    ) -> list[Neighbour]:
        pairs = [self.pairs.pair(row) for row in rows]
        if not self.is_exact and rerank > 0 and pairs:
            exact = model.encode(pairs[:rerank], truncate=True)
            scores = np.concatenate([cosine(vector[None], exact)[0], scores[rerank:]])
        order = np.argsort(-scores, kind="stable")
        return [Neighbour(pairs[at], float(scores[at]), self.pairs.relation(rows[at])) for at in order]

    def _check_writable(self) -> None:
        if not self._is_writable:
            raise RelvecError("This index was opened for reading; open it with PairIndex.editing to change it.")

    def __repr__(self) -> str:
        return f"PairIndex({len(self):,} pairs, {self.dim} dimensions, kind={self.kind!r}, model={self.model_name!r})"


def as_query(query: Any) -> Relation:
    """One pair as it is, several as a prototype.

    >>> as_query([("barista", "coffee")])
    ('barista', 'coffee')
    >>> len(as_query([("barista", "coffee"), ("brewer", "beer")]).pairs)
    2
    """
    if is_single(query):
        return as_relation(query)
    pairs = as_relations(query)
    return pairs[0] if len(pairs) == 1 else Prototype(pair for pair in pairs if not isinstance(pair, Prototype))


def distinct_pairs(pairs: Sequence[Pair], relations: Sequence[str] | None = None) -> tuple[list[Pair], list[str]]:
    """Each pair once, with the first relation that it is given.

    >>> distinct_pairs([("a", "b"), ("c", "d"), ("a", "b")], ["", "r", "s"])
    ([('a', 'b'), ('c', 'd')], ['s', 'r'])
    """
    found: dict[Pair, str] = {}
    names = [""] * len(pairs) if relations is None else list(relations)
    if len(names) != len(pairs):
        raise RelvecError(f"There are {len(names)} relations for {len(pairs)} pairs; give one for each.")
    for pair, name in zip(pairs, names, strict=True):
        found[pair] = found.get(pair) or name
    return list(found), list(found.values())
