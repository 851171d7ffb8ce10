from pathlib import Path

import pytest

from relvec.baselines.joined import Joined
from relvec.baselines.pair_vectors import PairTable
from relvec.baselines.word_vectors import WordVectors
from relvec.errors import RelvecError


@pytest.fixture
def words(tmp_path: Path) -> WordVectors:
    (tmp_path / "glove.txt").write_text("tea 1 2\ncup 3 5\nwine 0 1\n")
    return WordVectors(tmp_path / "glove.txt", "diff+dot")


@pytest.fixture
def pairs(tmp_path: Path) -> PairTable:
    (tmp_path / "rel.txt").write_text("tea__cup 7 8\ncup__tea 9 10\ncup__milk 1 1\n")
    return PairTable(tmp_path / "rel.txt")


def test_word_features_come_once_and_pair_vectors_in_the_directions_asked_for(
    words: WordVectors, pairs: PairTable
) -> None:
    of_words = [2, 3, 3, 10]
    one, both = (Joined([words, pairs], both_directions=way).vectors([("tea", "cup")])[0] for way in (False, True))
    assert one.tolist() == [[*of_words, 7, 8]]
    assert both.tolist() == [[*of_words, 7, 8, 9, 10]]


def test_known_are_the_pairs_whose_words_are(words: WordVectors, pairs: PairTable) -> None:
    vectors, known = Joined([words, pairs], both_directions=True).vectors([("tea", "wine"), ("cup", "milk")])
    assert known.tolist() == [True, False]
    assert vectors[0, 4:].tolist() == [0, 0, 0, 0]
    assert not vectors[1].any()


def test_a_classifier_need_not_ask_for_both_directions(words: WordVectors, pairs: PairTable) -> None:
    assert not Joined([words, pairs], both_directions=True).has_direction


def test_the_fingerprint_depends_on_members_and_directions(
    words: WordVectors, pairs: PairTable, tmp_path: Path
) -> None:
    made = [
        Joined([words, pairs], both_directions=True),
        Joined([words, pairs], both_directions=False),
        Joined([WordVectors(tmp_path / "glove.txt"), pairs], both_directions=True),
    ]
    assert len({joined.fingerprint for joined in made}) == 3
    assert made[0].name == "glove: diff+dot+rel"


def test_pair_vectors_alone_are_refused(pairs: PairTable) -> None:
    with pytest.raises(RelvecError, match="only be joined to word vectors"):
        Joined([pairs], both_directions=False)
