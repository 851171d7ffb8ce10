"""Open analogies: a is to b as c is to what?"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from relvec.errors import RelvecError
from relvec.index.pair_index import CANDIDATES, UNRELATED_PENALTY, PairFilter, PairIndex
from relvec.io.word2vec import VectorTable, read_vectors, spellings
from relvec.model.relation_model import RelBERT
from relvec.pairs import as_word
from relvec.similarity import Ranked, cosine, normalized, ranked

FROM_EACH = 48
"""How many candidates each source gives: an encoding costs more than it takes to find them."""

ATTESTED = 0.05
"""What a pair of the index has before others, with a model that cannot tell whether two words are related at all."""


def complete(
    model: RelBERT,
    index: PairIndex,
    a: str,
    b: str,
    c: str,
    k: int = 10,
    *,
    from_each: int | None = None,
    word_vectors: str | Path | None = None,
    reranker: RelBERT | None = None,
) -> list[Ranked[str]]:
    """Words d such that c is to d as a is to b, by falling cos(x_cd, x_ab) - 0.3 (1 - P(c and d are related)).

    With a model that has no catalogue yet to tell this probability, pairs of the index have a bonus of 0.05 instead.
    With a `reranker`, a better model than the index's own, there are 1,000 candidates, and x are its vectors; what it
    cannot encode is left out. `from_each` is how many candidates each source gives, by default 48 or `k`.

    >>> model = RelBERT.from_pretrained(tiny_model)
    >>> index = PairIndex.of(model, [("Tokyo", "Japan"), ("Tokyo", "tea"), ("cup", "tea"), ("dog", "cat")])
    >>> sorted(word for word, _ in complete(model, index, "Paris", "France", "Tokyo"))
    ['Japan', 'cat', 'tea']
    """
    a, b, c = as_word(a), as_word(b), as_word(c)
    from_each = from_each or (max(FROM_EACH, k) if reranker is None else CANDIDATES // 3)
    candidates = candidate_words(model, index, a, b, c, from_each=from_each, word_vectors=word_vectors)
    if not candidates:
        raise RelvecError(f"There is no candidate for {c}; use an index of more pairs, or give word vectors.")
    judge = reranker or model
    if reranker is not None:
        candidates = _encodable(reranker, c, candidates)
    vectors = judge.encode([(a, b), *((c, word) for word in candidates)])
    scores = cosine(vectors[:1], vectors[1:])[0]
    if judge.existing_catalogue is not None:
        return ranked(candidates, scores - UNRELATED_PENALTY * (1 - judge.catalogue.related(vectors[1:])), k)
    partners = {word.casefold() for word in index.partners(c)}
    attested = np.array([word.casefold() in partners for word in candidates])
    return ranked(candidates, scores + ATTESTED * attested, k)


def candidate_words(
    model: RelBERT,
    index: PairIndex,
    a: str,
    b: str,
    c: str,
    *,
    from_each: int = FROM_EACH,
    word_vectors: str | Path | None = None,
) -> list[str]:
    """Where d may come from: partners of c in the index, tails of the neighbours of (a, b), words near c.

    Partners d of pairs (c, d) that are most like (a, b) come first, as do those of (d, c) most like (b, a). Of a file
    of word vectors w, the words near w(c) and near w(c) + w(b) - w(a) are taken. What the model cannot encode beside c,
    such as a special token of a vector file, is left out.
    """
    index.check_model(model)
    forward, backward = model.encode([(a, b), (b, a)])
    words = [found.pair[1] for found in index.candidates(forward, from_each, PairFilter(head=c))]
    words += [found.pair[0] for found in index.candidates(backward, from_each, PairFilter(tail=c))]
    words += [found.pair[1] for found in index.candidates(forward, from_each)]
    if word_vectors is not None:
        words += _near(read_vectors(word_vectors), a, b, c, from_each)
    taken = {a.casefold(), c.casefold()}
    return _encodable(model, c, [word for word in dict.fromkeys(words) if word.casefold() not in taken])


def _encodable(model: RelBERT, c: str, words: Sequence[str]) -> list[str]:
    """The words that a model can encode beside c."""
    refused = model.refused([(c, word) for word in words])
    if words and len(refused) == len(words):  # then c is wrong, not the words
        raise RelvecError(refused[c, words[0]])
    return [word for word in words if (c, word) not in refused]


def _near(table: VectorTable, a: str, b: str, c: str, count: int) -> list[str]:
    vectors = [table.find(spellings(word)) for word in (a, b, c)]
    of_a, of_b, of_c = (None if vector is None else normalized(vector[None])[0] for vector in vectors)
    if of_c is None:
        return []
    words, matrix = list(table.rows), normalized(table.matrix[list(table.rows.values())])
    near = [of_c] if of_a is None or of_b is None else [of_c, of_c + of_b - of_a]
    rows = [row for vector in near for row in np.argsort(-(matrix @ vector), kind="stable")[:count]]
    found = [words[row].replace("_", " ") for row in rows]
    return [as_word(word) for word in found if word.strip()]
