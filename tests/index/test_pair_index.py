from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from relvec import Prototype, RelvecError
from relvec.data.sources import load
from relvec.index import PairIndex
from relvec.index.pair_index import UNRELATED_PENALTY
from relvec.model.torch_backend import TorchRelBERT
from relvec.naming.building import build_catalogue
from relvec.pairs import Pair
from relvec.similarity import Vectors, cosine

WORDS = ["Paris", "France", "Tokyo", "Japan", "cup", "tea", "cats", "dogs", "wine", "bread", "ice cream", "coffee"]
PAIRS = [(head, tail) for head in WORDS for tail in WORDS if head != tail]
LABELS = ["place" if head in WORDS[:4] else "" for head, _ in PAIRS]


@pytest.fixture
def index(tiny: TorchRelBERT) -> PairIndex:
    return PairIndex.of(tiny, PAIRS, relations=LABELS)


def exact(model: TorchRelBERT, query: Vectors, pairs: list[Pair], k: int) -> list[Pair]:
    scores = cosine(query[None], model.encode(pairs))[0]
    return [pairs[row] for row in np.argsort(-scores, kind="stable")[:k]]


def test_neighbours_are_the_most_similar_pairs_without_a_word_of_the_query(
    tiny: TorchRelBERT, index: PairIndex
) -> None:
    query = ("Paris", "France")
    others = [pair for pair in PAIRS if not set(pair) & set(query)]
    found = index.neighbours(tiny, query, 15)
    assert [neighbour.pair for neighbour in found] == exact(tiny, tiny.encode(query), others, 15)
    np.testing.assert_allclose(
        [neighbour.score for neighbour in found],
        [tiny.similarity(query, neighbour.pair) for neighbour in found],
        atol=1e-5,
    )


def test_shared_words_can_be_allowed_but_never_the_query_or_its_reverse(tiny: TorchRelBERT, index: PairIndex) -> None:
    query = ("paris", "France")  # another case is no other pair
    found = index.neighbours(tiny, query, len(PAIRS), shared_words=True)
    pairs = {neighbour.pair for neighbour in found}
    assert pairs == set(PAIRS) - {("Paris", "France"), ("France", "Paris")}


def test_a_reranker_ranks_the_candidates_of_the_index_as_it_would_rank_all_pairs(
    tiny: TorchRelBERT, index: PairIndex, tiny_folder: Path
) -> None:
    better = TorchRelBERT.from_pretrained(tiny_folder, pooling="mask")
    query = ("Paris", "France")
    wanted = PairIndex.of(better, PAIRS).neighbours(better, query, 10)
    found = index.neighbours(tiny, query, 10, reranker=better)
    assert [neighbour.pair for neighbour in found] == [neighbour.pair for neighbour in wanted]
    np.testing.assert_allclose([each.score for each in found], [each.score for each in wanted], atol=1e-5)
    candidates = {neighbour.pair for neighbour in index.neighbours(tiny, query, 12)}
    few = index.neighbours(tiny, query, 10, rerank=12, reranker=better)
    assert {neighbour.pair for neighbour in few} < candidates


def test_pairs_that_the_reranker_cannot_encode_are_left_out_and_long_ones_are_cut(
    tiny: TorchRelBERT, tiny_folders: Callable[[str], Path]
) -> None:
    better, query = TorchRelBERT.from_pretrained(tiny_folders("bert")), ("Paris", "France")
    special, long = ("x", "[SEP]"), (("wine " * 600).strip(), "bread")  # BERT has [SEP] as a special token
    pairs = [("cup", "tea"), long, special]
    index = PairIndex.of_vectors(pairs, tiny.encode(pairs, truncate=True), model=tiny)
    assert {found.pair for found in index.neighbours(tiny, query)} == set(pairs)
    assert {found.pair for found in index.neighbours(tiny, query, reranker=better)} == {("cup", "tea"), long}
    of_each = index.neighbours_of_each(tiny, [query, ("cup", "bread")], reranker=better)
    assert [len(found) for found in of_each] == [2, 0]


def test_a_relation_label_keeps_the_others_out(tiny: TorchRelBERT, index: PairIndex) -> None:
    found = index.neighbours(tiny, ("cup", "tea"), 100, relation=["place"])
    assert found == index.neighbours(tiny, ("cup", "tea"), 100, relation="place")
    assert {neighbour.relation for neighbour in found} == {"place"}
    labelled = [pair for pair, label in zip(PAIRS, LABELS, strict=True) if label == "place"]
    assert len(found) == sum(not {"cup", "tea"} & set(pair) for pair in labelled)
    with pytest.raises(RelvecError, match="relation 'plaice'; did you mean 'place'"):
        index.neighbours(tiny, ("cup", "tea"), relation="plaice")


def test_most_similar_gives_pairs_and_scores_as_gensim_does(tiny: TorchRelBERT, index: PairIndex) -> None:
    found = index.neighbours(tiny, ("Paris", "France"), 3)
    assert index.most_similar(tiny, ("Paris", "France"), topn=3) == [(each.pair, each.score) for each in found]
    assert len(index.most_similar(tiny, [("Paris", "France"), ("Tokyo", "Japan")])) == 10


def test_several_pairs_ask_by_the_mean_of_their_vectors(tiny: TorchRelBERT, index: PairIndex) -> None:
    examples = [("Paris", "France"), ("Tokyo", "Japan")]
    others = [pair for pair in PAIRS if not set(pair) & {word for example in examples for word in example}]
    expected = exact(tiny, tiny.encode(examples).mean(axis=0), others, 5)
    assert [found.pair for found in index.neighbours(tiny, examples, 5)] == expected
    assert [found.pair for found in index.neighbours(tiny, Prototype(examples), 5)] == expected
    mixed = index.neighbours(tiny, [Prototype(examples), ("cup", "tea")], 5)
    assert mixed == index.neighbours(tiny, [*examples, ("cup", "tea")], 5)


@pytest.fixture(scope="session")
def many_pairs() -> list[Pair]:
    return [(f"{head} {number}", f"{tail} {number}") for head, tail in PAIRS for number in range(6)]


@pytest.mark.parametrize("kind", ["rabitq", "int8", "ivfpq"])
def test_a_compressed_index_is_reranked_exactly(tiny: TorchRelBERT, many_pairs: list[Pair], kind: str) -> None:
    index = PairIndex.of(tiny, many_pairs, kind=kind)
    query = ("barista", "coffee")
    found = index.neighbours(tiny, query, 10)
    best = exact(tiny, tiny.encode(query), many_pairs, 10)
    assert len(set(best) & {neighbour.pair for neighbour in found}) >= 8
    more = index.neighbours(tiny, query, 60)
    exact_scores = tiny.similarity(query, [neighbour.pair for neighbour in more])
    np.testing.assert_allclose([neighbour.score for neighbour in more], exact_scores, atol=1e-5)


def test_the_given_number_of_candidates_is_encoded_again_or_none(
    tiny: TorchRelBERT, many_pairs: list[Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = PairIndex.of(tiny, many_pairs, kind="rabitq")
    index.check_model(tiny)
    encoded: list[int] = []
    original = tiny._encode_distinct

    def counting(pairs: list[Pair], *options: object) -> Vectors:
        encoded.append(len(pairs))
        return original(pairs, *options)  # type: ignore[arg-type]

    monkeypatch.setattr(tiny, "_encode_distinct", counting)
    for rerank, again in ((60, [60]), (50, [50]), (0, [])):
        encoded.clear()
        found = index.neighbours(tiny, ("barista", "coffee"), 50, rerank=rerank)
        assert encoded == [1, *again]
        assert len(found) == 50
        scores = [neighbour.score for neighbour in found]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("rerank", [1, 4])
def test_fewer_candidates_than_neighbours_are_refused(tiny: TorchRelBERT, index: PairIndex, rerank: int) -> None:
    for reranker in (None, tiny):
        with pytest.raises(RelvecError, match=f"not among {rerank} candidates; rerank 5 or more, or 0 for none"):
            index.neighbours(tiny, ("cup", "tea"), 5, rerank=rerank, reranker=reranker)


@pytest.mark.parametrize("number", [0, -1])
def test_fewer_than_one_neighbour_cannot_be_asked_for(tiny: TorchRelBERT, index: PairIndex, number: int) -> None:
    with pytest.raises(RelvecError, match=f"top is {number}; use 1 or more"):
        index.neighbours(tiny, ("cup", "tea"), k=number)


@pytest.mark.parametrize("kind", ["flat", "rabitq"])
def test_all_scores_of_a_list_are_less_what_unrelated_words_lose_or_none_is(
    tiny: TorchRelBERT, many_pairs: list[Pair], kind: str
) -> None:
    index, query = PairIndex.of(tiny, many_pairs, kind=kind), ("barista", "coffee")
    tiny.catalogue = build_catalogue(load("bundled")[:12], lambda pairs: tiny.encode(pairs, truncate=True))
    for rerank in (10, 20):
        found = index.neighbours(tiny, query, 10, rerank=rerank)
        pairs = [each.pair for each in found]
        expected = tiny.similarity(query, pairs) - UNRELATED_PENALTY * (1 - tiny.relatedness(pairs))
        np.testing.assert_allclose([each.score for each in found], expected, atol=1e-5)
    plain = index.neighbours(tiny, query, 10, rerank=0)
    atol = 1e-5 if kind == "flat" else 0.2
    cosines = tiny.similarity(query, [each.pair for each in plain])
    np.testing.assert_allclose([each.score for each in plain], cosines, atol=atol)


def test_another_model_is_refused_even_of_the_same_architecture(
    tiny: TorchRelBERT, tiny_folder: Path, tiny_folders: Callable[[str], Path], index: PairIndex
) -> None:
    index.neighbours(tiny, ("cup", "tea"))
    for other, problem in (
        (TorchRelBERT.from_pretrained(tiny_folder, pooling="mask"), "with another precision, prompt or weights"),
        (TorchRelBERT.from_pretrained(tiny_folders("bert")), "vectors made by a model other than"),
    ):
        with pytest.raises(RelvecError, match=problem):
            index.neighbours(other, ("a", "b"))
        with pytest.raises(RelvecError, match=problem):
            index.add(other, [("a", "b")])


def test_a_model_that_was_trained_further_is_refused(tiny: TorchRelBERT, index: PairIndex) -> None:
    index.neighbours(tiny, ("cup", "tea"))
    with torch.no_grad():
        next(weight for name, weight in tiny.encoder.named_parameters() if "query.weight" in name).mul_(-1)
    with pytest.raises(RelvecError, match="with another precision, prompt or weights"):
        index.neighbours(tiny, ("cup", "tea"))


def test_last_bits_of_the_weights_do_not_make_another_model(tiny: TorchRelBERT, index: PairIndex) -> None:
    before = tiny.fingerprint
    with torch.no_grad():
        for weight in tiny.encoder.parameters():
            weight.mul_(1 + 2**-22)  # as when an adapter is merged on another processor
    assert tiny.fingerprint != before
    assert index.neighbours(tiny, ("cup", "tea"), 1)


@pytest.mark.parametrize("kind", ["flat", "rabitq", "ivfpq", "hnsw"])
def test_an_index_that_grew_and_shrank_answers_as_one_built_at_once(
    tiny: TorchRelBERT, many_pairs: list[Pair], tmp_path: Path, kind: str
) -> None:
    PairIndex.of(tiny, many_pairs[:600], kind=kind).save(tmp_path / "my.index")
    with PairIndex.editing(tmp_path / "my.index") as index:
        assert index.remove([*many_pairs[:100], ("not", "there"), many_pairs[0]]) == 100
        assert len(index) == 500
        assert index.remove(many_pairs[:100]) == 0
        assert many_pairs[50] not in {found.pair for found in index.neighbours(tiny, ("x", "y"), 500)}
        assert index.add(tiny, [*many_pairs[590:], many_pairs[0], many_pairs[0]]) == len(many_pairs) - 599
    again = PairIndex.load(tmp_path / "my.index")
    kept = [*many_pairs[100:], many_pairs[0]]
    assert again.pairs.pairs() == kept
    query = ("barista", "coffee")
    best = exact(tiny, tiny.encode(query), kept, 10)
    hits = len(set(best) & {found.pair for found in again.neighbours(tiny, query, 10)})
    assert hits == 10 if kind == "flat" else hits >= 8


def test_an_index_opened_for_reading_cannot_be_changed(tiny: TorchRelBERT, index: PairIndex, tmp_path: Path) -> None:
    index.save(tmp_path / "my.index")
    opened = PairIndex.load(tmp_path / "my.index")

    def append() -> None:
        opened.append([("x", "y")], [""], np.ones((1, 16), dtype=np.float32))

    for change in (lambda: opened.remove(PAIRS[:1]), lambda: opened.add(tiny, [("x", "y")]), append):
        with pytest.raises(RelvecError, match="opened for reading"):
            change()


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("number", [np.nan, np.inf, 1e39])
@pytest.mark.parametrize("make", [np.asarray, np.ndarray.tolist])
def test_vectors_that_are_not_finite_are_refused(tiny: TorchRelBERT, number: float, make: Callable[[Any], Any]) -> None:
    vectors = tiny.encode([("x", "y"), ("ice cream", "cone")]).astype(np.float64)
    vectors[1, 3] = number
    with pytest.raises(RelvecError, match="The vector of ice cream:cone has a number that is not finite"):
        PairIndex.of_vectors([("x", "y"), ("ice cream", "cone")], make(vectors), model=tiny)


def test_each_query_of_many_has_the_neighbours_that_it_has_alone(tiny: TorchRelBERT, many_pairs: list[Pair]) -> None:
    queries = [("Paris", "Japan"), many_pairs[0], Prototype(many_pairs[3:5])]
    for kind in ("flat", "rabitq"):
        index = PairIndex.of(tiny, many_pairs, kind=kind)
        found = index.neighbours_of_each(tiny, queries, k=4)
        for query, of_query in zip(queries, found, strict=True):
            alone = index.neighbours(tiny, query, k=4)
            assert [each.pair for each in of_query] == [each.pair for each in alone]
            np.testing.assert_allclose([each.score for each in of_query], [each.score for each in alone], atol=1e-5)
    assert index.neighbours_of_each(tiny, []) == []


def test_bad_requests_are_refused(tiny: TorchRelBERT, index: PairIndex) -> None:
    with pytest.raises(RelvecError, match="no pair to index"):
        PairIndex.of(tiny, [])
    with pytest.raises(RelvecError, match="cannot be empty"):
        index.remove(PAIRS)
    with pytest.raises(RelvecError, match="the relation 'capital'; build it from a file with a column relation"):
        PairIndex.of(tiny, PAIRS[:2]).neighbours(tiny, ("a", "b"), relation="capital")
    with pytest.raises(RelvecError, match="Got 1 relation for 2 pairs;"):
        PairIndex.of(tiny, PAIRS[:2], relations=["x"])
    with pytest.raises(RelvecError, match="1 of the pairs are given more than once"):
        PairIndex.of_vectors([("a", "b"), (" a ", "b")], np.zeros((2, 16), dtype=np.float32), model=tiny)
    with pytest.raises(RelvecError, match="The vectors are 2 x 8, not 2 x 16"):
        PairIndex.of_vectors(PAIRS[:2], np.zeros((2, 8), dtype=np.float32), model=tiny)


def test_a_table_brings_the_labels_of_its_pairs(tiny: TorchRelBERT) -> None:
    table = pd.DataFrame({"head": ["a", "b", "c"], "tail": ["x", "y", "z"], "relation": ["r", pd.NA, 7]})
    assert PairIndex.of(tiny, table).pairs.all_relations() == ["r", "", "7"]
    assert PairIndex.of(tiny, table, relations=["s", "", "t"]).pairs.all_relations() == ["s", "", "t"]
