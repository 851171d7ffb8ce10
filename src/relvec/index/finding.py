"""Pairs of an index for a relation that is said in words."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from relvec.index.pair_index import PairFilter, PairIndex
from relvec.model.catalogues import encoded_texts, with_texts
from relvec.model.relation_model import RelBERT
from relvec.naming import NamedRelation
from relvec.naming.sentences import as_definition
from relvec.pairs import Pair, as_word

MATCHED = 3
FROM_EACH = 32
SHARPNESS = 0.1
"""The smaller, the more the best match counts beside the others."""


class Matched(NamedTuple):
    """A relation of the catalogue with a similar definition, and how similar: 1 for the best match, less for others.

    Which of its words is X, a definition does not tell.
    """

    relation: NamedRelation
    weight: float


class Found(NamedTuple):
    """A pair of the index, the probability of the matched relations by their weights, and the likeliest in words."""

    pair: Pair
    probability: float
    sentence: str


def match(model: RelBERT, definition: str, *, top: int = MATCHED) -> list[Matched]:
    """The relations of the catalogue whose definitions are most like this one, which has an X and a Y."""
    text = as_definition(definition)
    model.catalogue = catalogue = with_texts(model.catalogue)
    (vector,) = encoded_texts([text], catalogue.text_encoder)
    similar = catalogue.by_text(vector[None])[0]
    best = np.argsort(-similar, kind="stable")[:top]
    weights = np.exp((similar[best] - similar[best[0]]) / SHARPNESS)
    return [Matched(catalogue.relations[number], float(weight)) for number, weight in zip(best, weights, strict=True)]


def find(
    model: RelBERT, index: PairIndex, definition: str, k: int = 10, *, words: Iterable[str] | None = None
) -> tuple[list[Matched], list[Found]]:
    """The relations that a definition may mean, and the k pairs of the index that most probably stand in them.

    `words` keeps to pairs that have one of them.
    """
    matched = match(model, definition)
    index.check_model(model)
    wanted: list[PairFilter | None] = (
        [None] if words is None else [side for word in words for side in _with(as_word(word))]
    )
    vectors = model.encode([RelBERT.prototype(each.relation.examples) for each in matched])
    size = max(FROM_EACH, 2 * k)
    near = (each for vector in vectors for side in wanted for each in index.candidates(vector, size, side))
    pairs = list(dict.fromkeys(neighbour.pair for neighbour in near))
    return matched, _ranked(model, matched, pairs)[:k] if pairs else []


def _with(word: str) -> tuple[PairFilter, PairFilter]:
    return PairFilter(head=word), PairFilter(tail=word)


def _ranked(model: RelBERT, matched: Sequence[Matched], pairs: Sequence[Pair]) -> list[Found]:
    catalogue = model.catalogue
    vectors = model.encode(pairs, truncate=True)
    # The first answers are the relations as they are, the others their reverses.
    columns = [catalogue.relations.index(each.relation) for each in matched]
    probabilities = catalogue.names(vectors)[:, columns] * catalogue.related(vectors)[:, None]
    likeliest = probabilities.argmax(axis=1)
    weighted = probabilities @ np.array([each.weight for each in matched], dtype=np.float32)
    return [
        Found(pairs[at], float(weighted[at]), matched[likeliest[at]].relation.said_of(pairs[at]))
        for at in np.argsort(-weighted, kind="stable")
    ]
