from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relvec import RelBERT, RelvecError
from relvec.index import PairIndex, complete
from relvec.index.completion import ATTESTED, candidate_words
from relvec.model.relation_model import PromptedRelBERT

PAIRS = [("Tokyo", "Japan"), ("wine", "Tokyo"), ("cup", "tea"), ("cats", "dogs"), ("Paris", "bread")]


@pytest.fixture
def index(tiny: RelBERT) -> PairIndex:
    return PairIndex.of(tiny, PAIRS)


def test_candidates_are_partners_and_tails_but_not_a_or_c(tiny: RelBERT, index: PairIndex) -> None:
    words = candidate_words(tiny, index, "Paris", "France", "tokyo")
    assert words[:2] == ["Japan", "wine"]
    assert sorted(words) == ["Japan", "bread", "dogs", "tea", "wine"]


def test_word_vectors_add_words_near_c_and_near_its_analogue(tiny: RelBERT, index: PairIndex, tmp_path: Path) -> None:
    lines = ["Tokyo 1 0 0", "kyoto 1 0.1 0", "paris 0 0 -1", "france 0 1 -1", "rice_cake 1 1 0", "far -1 -1 -1"]
    (tmp_path / "glove.txt").write_text("\n".join(lines) + "\n")
    options: dict[str, Any] = {"word_vectors": tmp_path / "glove.txt", "from_each": 2}
    words = candidate_words(tiny, index, "Paris", "France", "Tokyo", **options)
    assert {"kyoto", "rice cake"} <= set(words)
    assert "far" not in words
    without = candidate_words(tiny, index, "Paris", "France", "unheard", **options)
    assert "kyoto" not in without


def test_a_reranker_scores_the_candidates_of_the_index(tiny: RelBERT, index: PairIndex, tiny_folder: Path) -> None:
    better = RelBERT.from_pretrained(tiny_folder, pooling="mask")
    found = complete(tiny, index, "Paris", "France", "cats", reranker=better)
    assert {word for word, _ in found} == set(candidate_words(tiny, index, "Paris", "France", "cats"))
    for word, score in found:
        attested = ATTESTED * (word == "dogs")
        assert score == pytest.approx(better.similarity(("Paris", "France"), ("cats", word)) + attested, abs=1e-5)


def test_words_that_the_reranker_cannot_encode_are_no_candidates(
    tiny: RelBERT, tiny_folders: Callable[[str], Path]
) -> None:
    better = RelBERT.from_pretrained(tiny_folders("bert"))
    index = PairIndex.of(tiny, [*PAIRS, ("x", "[SEP]")])
    question = ("Paris", "France", "cats")
    found, reranked = (
        {word for word, _ in complete(tiny, index, *question, reranker=reranker)} for reranker in (None, better)
    )
    assert found - reranked == {"[SEP]"}
    assert reranked < found
    with pytest.raises(RelvecError, match="special token"):
        complete(tiny, index, "Paris", "France", "[SEP]", reranker=better)


def test_words_are_ranked_by_relational_similarity_and_pairs_of_the_index_have_the_start(
    tiny: RelBERT, index: PairIndex
) -> None:
    found = complete(tiny, index, "Paris", "France", "Tokyo", 30)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    similarity = dict(tiny.complete("Paris", "France", "Tokyo", [word for word, _ in found]))
    partners = {word for pair in index.pairs.pairs() if "Tokyo" in pair for word in pair}
    assert {word in partners for word, _ in found} == {True, False}
    for word, score in found:
        assert score == pytest.approx(similarity[word] + ATTESTED * (word in partners), abs=1e-5)


def test_words_that_cannot_be_encoded_are_no_candidates(tiny: RelBERT, tmp_path: Path) -> None:
    pairs = [*PAIRS, ("cup", ("tea " * 200).strip())]
    index = PairIndex.of_vectors(pairs, tiny.encode(pairs, truncate=True), model=tiny)
    (tmp_path / "vectors.txt").write_text("Tokyo 1 0\nkyoto 1 0.1\n</s> 1 0.2\n")
    found = complete(tiny, index, "Paris", "France", "Tokyo", 30, word_vectors=tmp_path / "vectors.txt")
    words = {word for word, _ in found}
    assert {"kyoto", "tea"} <= words
    assert not {"</s>", ("tea " * 200).strip()} & words
    with pytest.raises(RelvecError, match="special token"):
        complete(tiny, index, "Paris", "France", "</s>")


def test_a_long_word_is_completed_if_it_has_room_beside_a_candidate(tiny: PromptedRelBERT, index: PairIndex) -> None:
    room = tiny.max_tokens - len(tiny.token_ids([("Paris", "tea")])[0])
    long = " ".join(["Paris"] * (room * 3 // 4))
    with pytest.raises(RelvecError, match="tokens"):
        tiny.encode([(long, long)])
    assert complete(tiny, index, "Paris", "France", long)
    with pytest.raises(RelvecError, match="tokens"):
        complete(tiny, index, "Paris", "France", " ".join(["Paris"] * tiny.max_tokens))


def test_whitespace_around_a_word_change_nothing(tiny: RelBERT, index: PairIndex) -> None:
    assert complete(tiny, index, " Paris", "France ", "  Tokyo ") == complete(tiny, index, "Paris", "France", "Tokyo")


def test_a_removed_pair_has_no_start(tiny: RelBERT, index: PairIndex) -> None:
    before = dict(complete(tiny, index, "Paris", "France", "cats", 30))
    index.remove([("cats", "dogs")])
    index.add(tiny, [("wolves", "dogs")])
    after = dict(complete(tiny, index, "Paris", "France", "cats", 30))
    assert after["dogs"] == pytest.approx(before["dogs"] - ATTESTED, abs=1e-5)


def test_bad_requests_are_refused(tiny: RelBERT, tiny_folder: Path, index: PairIndex) -> None:
    with pytest.raises(RelvecError, match="no candidate for y"):
        complete(tiny, PairIndex.of(tiny, [("x", "y")]), "x", "z", "y")
    with pytest.raises(RelvecError, match="another precision, prompt or weights"):
        complete(RelBERT.from_pretrained(tiny_folder, pooling="mask"), index, "Paris", "France", "Tokyo")
