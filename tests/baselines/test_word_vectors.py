from pathlib import Path

import numpy as np
import pytest
from gensim.models import FastText
from gensim.models.fasttext import save_facebook_model

from relvec.baselines.pair_vectors import PairTable
from relvec.baselines.word_vectors import FEATURES, Joined, WordVectors
from relvec.data.benchmarks.analogy import Question
from relvec.errors import RelvecError
from relvec.evaluation.analogy import predict
from relvec.evaluation.systems import CosineSolver

ROWS = {"paris": [1, 2], "Paris": [3, 4], "france": [5, 7], "ice": [2, 0], "cream": [0, 4], "New_York": [9, 9]}


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    path = tmp_path / "glove.6B.txt"
    path.write_text("".join(f"{word} {row[0]} {row[1]}\n" for word, row in ROWS.items()))
    return path


def test_the_difference_leads_from_head_to_tail(glove: Path) -> None:
    vectors, known = WordVectors(glove).vectors([("paris", "france")])
    assert (vectors.tolist(), known.tolist()) == ([[4, 5]], [True])


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ("cat", [1, 2, 5, 7]),
        ("dot", [5, 14]),
        ("diff+dot", [4, 5, 5, 14]),
        ("cat+dot", [1, 2, 5, 7, 5, 14]),
    ],
)
def test_features_are_concatenated_in_the_order_of_their_names(glove: Path, features: str, expected: list[int]) -> None:
    assert WordVectors(glove, features).vectors([("paris", "france")])[0].tolist() == [expected]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Paris", [3, 4]),
        ("PARIS", [1, 2]),
        ("France", [5, 7]),
        ("New York", [9, 9]),
        ("ice cream", [1, 2]),
        ("ice_cream", [1, 2]),
        ("Ice-Cream", [1, 2]),
    ],
)
def test_a_word_is_found_however_it_is_written(glove: Path, word: str, expected: list[float]) -> None:
    for words in (None, [word]):
        vectors, known = WordVectors(glove, "cat", words=words).vectors([(word, word)])
        assert (vectors.tolist(), known.tolist()) == ([expected * 2], [True])


def test_a_pair_with_an_unknown_word_is_unknown_and_zero(glove: Path) -> None:
    vectors, known = WordVectors(glove, "cat+dot").vectors([("paris", "london"), ("ice skate", "paris"), ("-", "ice")])
    assert not vectors.any()
    assert not known.any()
    assert WordVectors(glove).vectors([])[0].shape == (0, 2)


def test_the_fingerprint_tells_content_and_features_apart_but_not_words(glove: Path, tmp_path: Path) -> None:
    diff = WordVectors(glove)
    assert diff.fingerprint == WordVectors(glove, words=["ice"]).fingerprint
    assert diff.fingerprint != WordVectors(glove, "cat").fingerprint
    (tmp_path / "other.txt").write_text(glove.read_text() + "tea 1 1\n")
    assert diff.fingerprint != WordVectors(tmp_path / "other.txt").fingerprint


def test_the_name_says_file_and_features(glove: Path) -> None:
    assert WordVectors(glove, "cat+dot").name == "glove.6B: cat+dot"
    assert WordVectors(glove, name="GloVe").name == "GloVe"


def test_an_unknown_feature_suggests_the_known(glove: Path) -> None:
    with pytest.raises(RelvecError, match="Unknown feature of word vectors 'diif'; did you mean 'diff'"):
        WordVectors(glove, "diif+dot")
    with pytest.raises(RelvecError, match=f"choose one of {', '.join(FEATURES)}"):
        WordVectors(glove, "")


def test_a_word_that_was_not_read_is_no_silent_unknown(glove: Path) -> None:
    with pytest.raises(AssertionError, match="was not read for"):
        WordVectors(glove, words=["paris"]).vectors([("paris", "france")])


def test_analogies_are_solved_by_the_difference(tmp_path: Path) -> None:
    places = {"paris": (0, 1), "france": (1, 1), "tokyo": (0, 2), "japan": (1, 2), "wine": (5, 5)}
    (tmp_path / "v.txt").write_text("".join(f"{word} {x} {y}\n" for word, (x, y) in places.items()))
    question = Question(("paris", "france"), (("japan", "tokyo"), ("tokyo", "japan"), ("wine", "beer")), answer=1)
    (prediction,) = predict([question], CosineSolver(WordVectors(tmp_path / "v.txt")).scores([question]))
    assert prediction.credit == 1
    assert prediction.scores == [-1, 1, None]


def test_fasttext_leaves_no_word_unknown(tmp_path: Path) -> None:
    model = FastText([["ice", "cream", "cone"]] * 5, vector_size=4, min_count=1, bucket=50, epochs=1, workers=1)
    save_facebook_model(model, str(tmp_path / "m.bin"))
    words = ["cones", "ice cream", "Creams"]
    some, whole = WordVectors(tmp_path / "m.bin", words=words), WordVectors(tmp_path / "m.bin")
    pairs = [("cones", "ice cream"), ("ice cream", "Creams")]
    vectors, known = some.vectors(pairs)
    assert known.all()
    assert vectors == pytest.approx(whole.vectors(pairs)[0])
    mean = np.mean([model.wv["ice"], model.wv["cream"]], axis=0)
    assert vectors[0] == pytest.approx(mean - model.wv["cones"], abs=1e-5)


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
    one, both = (Joined([words, pairs], both_directions=way) for way in (False, True))
    assert one.vectors([("tea", "cup")])[0].tolist() == [[*of_words, 7, 8]]
    assert both.vectors([("tea", "cup")])[0].tolist() == [[*of_words, 7, 8, 9, 10]]
    assert not both.has_direction
    assert one.fingerprint != both.fingerprint
    assert both.name == "glove: diff+dot+rel"


def test_joined_vectors_are_known_where_the_words_are(words: WordVectors, pairs: PairTable) -> None:
    vectors, known = Joined([words, pairs], both_directions=True).vectors([("tea", "wine"), ("cup", "milk")])
    assert known.tolist() == [True, False]
    assert vectors[0, 4:].tolist() == [0, 0, 0, 0]
    assert not vectors[1].any()
