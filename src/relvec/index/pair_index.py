"""PairIndex: which pairs, of many, are related as a given pair is?"""

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from relvec.errors import RelvecError, counted, did_you_mean
from relvec.index.kinds import check_kind
from relvec.index.storage import IndexMeta, index_folder, is_milvus, read_folder, read_meta, write_folder, writing_index
from relvec.index.vector_store import VectorRows, VectorStore
from relvec.index.vocabulary import Mask, PairVocabulary, distinct_pairs
from relvec.io.files import expanded
from relvec.io.vectors import as_float32
from relvec.model.cached_vectors import ModelVectors
from relvec.model.model_check import ModelCheck
from relvec.model.relation_model import BATCH_SIZE, RelBERT
from relvec.pairs import Pair, Prototype, Relation, as_pairs, as_relation, as_relations, is_single
from relvec.similarity import Vectors, check_top, cosine

RERANKED = 32
CANDIDATES = 1000
"""How many pairs a quick model finds for a better one to rank: `benchmarks/cascade.py` prints what is missed."""


UNRELATED_PENALTY = 0.3
"""What a pair loses if its words are not related: a vector says how two words would be, not whether they are."""


class Neighbour(NamedTuple):
    """A pair of the index, how similar its relation is to the query's, and the name of its relation, if it has one."""

    pair: Pair
    score: float
    relation: str = ""


@dataclass(frozen=True)
class PairFilter:
    """Which pairs of an index count: those that fulfil every condition; words are alike in upper and lower case."""

    relations: tuple[str, ...] | None = None
    head: str = ""
    tail: str = ""
    without_words: frozenset[str] = frozenset()
    without_pairs: frozenset[Pair] = frozenset()


class PairIndex:
    """Distinct pairs and their vectors by one model, to be searched with that model only.

    Vectors are kept with length 1: an index knows directions, not lengths. Up to 20,000 pairs are kept whole (`flat`);
    above, `auto` takes `rabitq`: the smallest of the compressed kinds, at 90 bytes a pair, with nothing to tune
    (`benchmarks/index.py` prints the numbers). An index stores its model's vectors for four probe pairs, so that using
    it with another model raises an error.

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
        self, vectors: VectorStore, pairs: PairVocabulary, made_by: ModelCheck, *, is_writable: bool = True
    ) -> None:
        self.pairs = pairs
        self.made_by = made_by
        self.dim, self.kind = vectors.dim, vectors.kind.name
        self.is_exact = vectors.is_exact  # whether the vectors are kept whole
        self._vectors = vectors
        self._is_writable = is_writable
        self._checked: tuple[weakref.ref[RelBERT], Any] | None = None

    @classmethod
    def of(cls, model: RelBERT, pairs: Any, *, relations: Sequence[str] | None = None, kind: str = "auto") -> Self:
        """Encode pairs and index them, in memory; `relations` names the relation of each.

        For a long list, `relvec.index.build_index` keeps what is encoded on disk.
        """
        distinct, labels = distinct_pairs(pairs, relations)
        return cls.of_vectors(distinct, model.encode(distinct), model=model, relations=labels, kind=kind)

    @classmethod
    def of_vectors(
        cls,
        pairs: Any,
        vectors: Any,
        *,
        model: RelBERT,
        relations: Sequence[str] | None = None,
        kind: str = "auto",
    ) -> Self:
        """Index vectors that the model has made before: one row for each of distinct pairs.

        >>> model = RelBERT.from_pretrained(tiny_model)
        >>> pairs = [("Paris", "France"), ("cup", "tea")]
        >>> PairIndex.of_vectors(pairs, model.encode(pairs), model=model)
        PairIndex(2 pairs, 16 dimensions, kind='flat', model='tiny-roberta')
        """
        listed = as_pairs(pairs)
        distinct, labels = distinct_pairs(listed, relations)
        chosen = check_kind(kind, len(listed))
        if len(distinct) < len(listed):
            raise RelvecError(f"{len(listed) - len(distinct)} of the pairs are given more than once; give each once.")
        store = VectorStore.of(_checked_rows(listed, vectors, model.dim), chosen)
        return cls(store, PairVocabulary.of(distinct, labels), ModelCheck.of(model))

    @classmethod
    def load(cls, folder: str | Path | None = None, *, writable: bool = False) -> Self:
        """Open an index for searching, by default the bundled one; it is mapped from disk, and processes share it.

        A `writable` one is read into memory; to change the folder itself, use `editing`. An address such as
        `milvus:./pairs.db` or `milvus:http://host:19530/pairs` opens an index in Milvus.
        """
        if is_milvus(folder):
            from relvec.index.milvus import MilvusIndex

            return cast(Self, MilvusIndex.open(str(folder)))
        meta, vectors, pairs = read_folder(index_folder(folder), mapped=not writable)
        return cls(vectors, pairs, meta, is_writable=writable)

    def save(self, folder: str | Path) -> IndexMeta:
        """Write the index as a folder, whole or not at all."""
        target = expanded(folder)
        with writing_index(target):
            return self.write(target)

    @classmethod
    @contextmanager
    def editing(cls, folder: str | Path) -> Iterator[Self]:
        """Load an index, let the block change it, and save it; other writers wait, readers are not disturbed.

        >>> model = RelBERT.from_pretrained(tiny_model)
        >>> _ = PairIndex.of(model, [("Paris", "France")]).save("my.index")
        >>> with PairIndex.editing("my.index") as index:
        ...     index.add(model, [("cup", "tea"), ("Paris", "France")]), index.remove([("Paris", "France")])
        (1, 1)
        >>> PairIndex.load("my.index").pairs.pairs()
        [('cup', 'tea')]
        """
        if is_milvus(folder):  # each change is there at once
            yield cls.load(folder)
            return
        target = expanded(folder)
        read_meta(target)  # no lock file is put where there is no index
        with writing_index(target):
            index = cls.load(target, writable=True)
            yield index
            index.write(target)

    def write(self, folder: Path, job: str = "") -> IndexMeta:
        """What `save` does, for a caller that holds the lock (`storage.writing_index`) already."""
        return write_folder(folder, self._vectors, self.pairs, self.made_by, job)

    def __len__(self) -> int:
        return len(self.pairs)

    def add(
        self,
        model: RelBERT,
        pairs: Any,
        *,
        relations: Sequence[str] | None = None,
        batch_size: int = BATCH_SIZE,
        truncate: bool = False,
    ) -> int:
        """Encode and append the pairs that are not here yet, and return how many they were."""
        self._check_writable()
        self.check_model(model)
        distinct, labels = distinct_pairs(pairs, relations)
        known = self.known(distinct)
        new = {pair: label for pair, label in zip(distinct, labels, strict=True) if pair not in known}
        if new:
            vectors = ModelVectors(model, batch_size=batch_size)
            vectors.prepare(list(new), truncate=truncate)
            self.append(list(new), list(new.values()), vectors.rows(list(new)))
        return len(new)

    def known(self, pairs: Iterable[Pair]) -> set[Pair]:
        """Those of the pairs that the index has."""
        return {pair for pair in pairs if pair in self.pairs}

    def append(self, pairs: Sequence[Pair], relations: Sequence[str], vectors: VectorRows) -> None:
        """Append pairs that are not here yet, with the vectors of the index's own model."""
        self._check_writable()
        self._vectors.add(vectors)
        self.pairs = self.pairs.joined(PairVocabulary.of(pairs, relations))

    def remove(self, pairs: Any) -> int:
        """Remove pairs with their vectors, and return how many were there."""
        self._check_writable()
        known = self.known(as_pairs(pairs))
        if len(known) == len(self):
            raise RelvecError("An index cannot be empty; delete it instead of removing every pair.")
        if known:
            self._drop(known)
        return len(known)

    def _drop(self, pairs: Iterable[Pair]) -> None:
        rows = self.pairs.rows_of(pairs)
        self._vectors.drop(rows)
        self.pairs = self.pairs.without(rows)

    def check_model(self, model: RelBERT) -> None:
        """Refuse a model that did not make these vectors; one that has not changed since is not asked again."""
        state = model.state()
        if self._checked is None or self._checked[0]() is not model or self._checked[1] != state:
            self.made_by.check(model)
            self._checked = weakref.ref(model), state

    def neighbours(
        self,
        model: RelBERT,
        query: Any,
        k: int = 10,
        *,
        rerank: int | None = None,
        reranker: RelBERT | None = None,
        shared_words: bool = False,
        relation: str | Iterable[str] | None = None,
    ) -> list[Neighbour]:
        """The k pairs whose relation is most similar to the query: a pair, or several (the mean of their vectors).

        score(p) = cos(x_query, x_p), less 0.3 times the probability that the words of p are not related, with a model
        that has a catalogue to tell it. For that, and as scores of a compressed index are estimates, the best `rerank`
        candidates (32, or 2k if that is more; at least k) are encoded again; with 0, scores are what the index knows.
        With a `reranker`, a better model than the index's own, the candidates (1,000) that it can encode are ranked
        by its vectors. The query's own pairs and their reverses never count, nor does a pair that has a word of the
        query, except with `shared_words`. `relation` keeps to pairs with this label, or one of several.
        """
        options: dict[str, Any] = {"rerank": rerank, "reranker": reranker}
        options |= {"shared_words": shared_words, "relation": relation}
        return self.neighbours_of_each(model, [as_query(query)], k, **options)[0]

    def most_similar(
        self, model: RelBERT, positive: Any, topn: int = 10, *, shared_words: bool = False
    ) -> list[tuple[Pair, float]]:
        """What `neighbours` finds, as gensim gives it: pairs and their similarity to one or more `positive` pairs."""
        found = self.neighbours(model, positive, topn, shared_words=shared_words)
        return [(neighbour.pair, neighbour.score) for neighbour in found]

    def neighbours_of_each(
        self,
        model: RelBERT,
        queries: Any,
        k: int = 10,
        *,
        rerank: int | None = None,
        reranker: RelBERT | None = None,
        shared_words: bool = False,
        relation: str | Iterable[str] | None = None,
        show_progress: bool | None = False,
    ) -> list[list[Neighbour]]:
        """The neighbours of every query by itself; all are encoded together, and so are all that are ranked again.

        >>> model = RelBERT.from_pretrained(tiny_model)
        >>> index = PairIndex.of(model, [("Tokyo", "Japan"), ("cup", "tea"), ("cats", "dogs")])
        >>> found = index.neighbours_of_each(model, [("Paris", "France"), ("pot", "tea")], k=1)
        >>> [neighbour.pair for of_query in found for neighbour in of_query]
        [('cup', 'tea'), ('cats', 'dogs')]
        """
        check_top(k)
        if rerank and rerank < k:
            raise RelvecError(f"The best {k} are not among {rerank} candidates; rerank {k} or more, or 0 for none.")
        asked = as_relations(queries)
        if not asked:
            return []
        self.check_model(model)
        if reranker is not None:
            rerank = max(k, CANDIDATES if rerank is None else rerank)
        elif self.is_exact and model.existing_catalogue is None:
            rerank = 0
        elif rerank is None:
            rerank = max(RERANKED, 2 * k)
        labels = None if relation is None else self.known_relations(relation)
        vectors = model.encode(asked, show_progress=show_progress)
        found = [
            self.candidates(vector, max(k, rerank), _wanted(query, labels, shared_words))
            for query, vector in zip(asked, vectors, strict=True)
        ]
        pairs = list(dict.fromkeys(each.pair for of_query in found for each in of_query)) if rerank else []
        if not pairs:
            return found
        if reranker is not None:
            model, vectors = reranker, reranker.encode(asked)
            refused = model.refused(pairs, truncate=True)  # such as a word that is a special token of this model only
            pairs = [pair for pair in pairs if pair not in refused]
        again = model.encode(pairs, truncate=True, show_progress=show_progress)
        catalogue = model.existing_catalogue
        lost = np.zeros(len(pairs)) if catalogue is None else UNRELATED_PENALTY * (1 - catalogue.related(again))
        exact = dict(zip(pairs, zip(again, lost, strict=True), strict=True))
        return [_ranked(vector, of_query, exact)[:k] for vector, of_query in zip(vectors, found, strict=True)]

    def candidates(self, vector: NDArray[np.float32], k: int, wanted: PairFilter | None = None) -> list[Neighbour]:
        """The best of the wanted pairs, with scores as the index knows them."""
        scores, rows = self._vectors.search(vector, k, None if wanted is None else self._allowed(wanted))
        return [
            Neighbour(self.pairs.pair(row), float(score), self.pairs.relation(row))
            for score, row in zip(scores, rows, strict=True)
        ]

    def known_relations(self, relations: str | Iterable[str]) -> tuple[str, ...]:
        """The labels, each of which some pair of the index must have."""
        wanted = (relations,) if isinstance(relations, str) else tuple(relations)
        for relation in wanted:
            if not self._has_relation(relation):
                raise RelvecError(f"No pair of this index has the relation {relation!r}; {self._advice(relation)}.")
        return wanted

    def _has_relation(self, relation: str) -> bool:
        return relation in self.pairs.relations[1:]

    def _advice(self, relation: str) -> str:
        """What to do about a relation label that no pair has."""
        known = self.pairs.relations[1:]
        few = ", ".join(known[:10]) + (", ..." if len(known) > 10 else "")
        advice = f"choose one of {few}" if known else "build it from a file with a column relation"
        return did_you_mean(relation, known, otherwise=advice)

    def partners(self, word: str) -> set[str]:
        """The words of all pairs that have this one, and the word itself."""
        return {each for row in np.flatnonzero(self.pairs.with_word([word])) for each in self.pairs.pair(int(row))}

    def vectors(self, start: int = 0, stop: int | None = None) -> Vectors:
        """The vectors of rows of `pairs`, of length 1; only an exact index still has them."""
        if not self.is_exact:
            raise RelvecError(f"A {self.kind} index keeps no whole vectors; give the model, to encode its pairs again.")
        return self._get(start, len(self.pairs) if stop is None else stop)

    def _get(self, start: int, stop: int) -> Vectors:
        return self._vectors.get(start, stop)

    def _allowed(self, wanted: PairFilter) -> Mask:
        pairs = self.pairs
        allowed = np.ones(len(pairs), dtype=bool) if wanted.relations is None else pairs.with_relation(wanted.relations)
        if wanted.head:
            allowed &= pairs.with_head([wanted.head])
        if wanted.tail:
            allowed &= pairs.with_tail([wanted.tail])
        if wanted.without_words:
            allowed &= ~pairs.with_word(wanted.without_words)
        for head, tail in wanted.without_pairs:
            allowed &= ~(pairs.with_head([head]) & pairs.with_tail([tail]))
        return allowed

    def _check_writable(self) -> None:
        if not self._is_writable:
            raise RelvecError("This index was opened for reading; open it with PairIndex.editing to change it.")

    def __repr__(self) -> str:
        held = f"{counted(len(self), 'pair')}, {self.dim} dimensions, kind={self.kind!r}"
        return f"PairIndex({held}, model={self.made_by.model!r})"


def _checked_rows(pairs: Sequence[Pair], vectors: Any, dim: int) -> Vectors:
    """A finite row for each pair."""
    rows = as_float32(vectors)
    if rows.shape != (len(pairs), dim):
        shape = " x ".join(map(str, rows.shape))
        raise RelvecError(f"The vectors are {shape}, not {len(pairs)} x {dim}; give those that this model made.")
    is_finite = np.isfinite(rows).all(axis=1)
    if not is_finite.all():
        pair = ":".join(pairs[int(np.argmin(is_finite))])
        raise RelvecError(f"The vector of {pair} has a number that is not finite; correct it or leave the pair out.")
    return rows


def _wanted(query: Relation, relations: tuple[str, ...] | None, shared_words: bool) -> PairFilter:
    """Not the query's own pairs and their reverses, or none that has a word of it."""
    pairs = query.pairs if isinstance(query, Prototype) else (query,)
    if shared_words:
        ways = ((head, tail) for pair in pairs for head, tail in (pair, pair[::-1]))
        return PairFilter(relations, without_pairs=frozenset(ways))
    return PairFilter(relations, without_words=frozenset(word for pair in pairs for word in pair))


def _ranked(
    vector: NDArray[np.float32],
    found: Sequence[Neighbour],
    exact: Mapping[Pair, tuple[NDArray[np.float32], float]],
) -> list[Neighbour]:
    """What was found and has an exact vector, best first by these and what they lose."""
    kept = [each for each in found if each.pair in exact]
    if not kept:
        return []
    again, lost = zip(*(exact[each.pair] for each in kept), strict=True)
    scores = cosine(vector[None], np.stack(again))[0] - np.array(lost)
    rescored = [each._replace(score=float(score)) for each, score in zip(kept, scores, strict=True)]
    return sorted(rescored, key=lambda each: -each.score)


def as_query(query: Any) -> Relation:
    """One pair as it is, several as a prototype.

    >>> as_query([("barista", "coffee")])
    ('barista', 'coffee')
    >>> len(as_query([("barista", "coffee"), ("brewer", "beer")]).pairs)
    2
    """
    if is_single(query):
        return as_relation(query)
    relations = as_relations(query)
    return relations[0] if len(relations) == 1 else RelBERT.prototype(relations)
