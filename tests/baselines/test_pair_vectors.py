from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors

from relvec.baselines.pair_vectors import PairTable
from relvec.errors import RelvecError

ROWS = {"paris__france": [1, 2], "france__paris": [3, 4], "ice_cream__hot_dog": [5, 6], "Rome__Italy": [7, 8]}


@pytest.fixture(params=["txt", "bin"])
def relative(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"relative.{request.param}"
    vectors = KeyedVectors(2)
    vectors.add_vectors(list(ROWS), np.array(list(ROWS.values()), dtype=np.float32))
    vectors.save_word2vec_format(str(path), binary=request.param == "bin")
    return path


def test_each_direction_has_a_vector_of_its_own_and_nothing_is_inferred(relative: Path) -> None:
    pairs = [("paris", "france"), ("france", "paris"), ("ice cream", "hot dog"), ("hot dog", "ice cream")]
    for only in (None, pairs[:3]):
        vectors, known = PairTable(relative, pairs=only).vectors(pairs)
        assert vectors.tolist() == [[1, 2], [3, 4], [5, 6], [0, 0]]
        assert known.tolist() == [True, True, True, False]


def test_a_pair_is_found_as_it_is_else_lower_cased(relative: Path) -> None:
    vectors, known = PairTable(relative).vectors([("Rome", "Italy"), ("Paris", "France"), ("rome", "italy")])
    assert vectors.tolist() == [[7, 8], [1, 2], [0, 0]]
    assert known.tolist() == [True, True, False]


def test_a_pair_that_was_not_read_is_no_silent_unknown(relative: Path) -> None:
    with pytest.raises(AssertionError, match="was not read for"):
        PairTable(relative, pairs=[("a", "b")]).vectors([("paris", "france")])


def test_a_file_of_words_is_refused(tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text("paris 1 2\nfrance 3 4\n")
    with pytest.raises(RelvecError, match=r"glove\.txt holds no pair vectors: its first key is 'paris'"):
        PairTable(tmp_path / "glove.txt")


def test_the_name_is_the_files(relative: Path) -> None:
    table = PairTable(relative)
    assert (table.name, table.has_direction) == ("relative", True)
    assert PairTable(relative, name="RELATIVE").name == "RELATIVE"
    assert table.fingerprint == PairTable(relative, pairs=[("a", "b")]).fingerprint
