import gzip
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from gensim.models import FastText, KeyedVectors
from gensim.models.fasttext import save_facebook_model

from relvec.errors import RelvecError
from relvec.io.word2vec import read_vectors

WORDS = ["tea", "coffee", "wine", "東京"]
VECTORS = np.array([[0.5, 1, -2], [1, 0, 3], [0, 0, 0.25], [1, 1, 1]], dtype=np.float32)


def text_rows(ending: str = "\n") -> str:
    return "".join(f"{word} {' '.join(map(str, row))}{ending}" for word, row in zip(WORDS, VECTORS, strict=True))


def write(folder: Path, kind: str) -> Path:
    """The same four vectors in any format."""
    path = folder / f"vectors.{kind}"
    of_gensim = KeyedVectors(3)
    of_gensim.add_vectors(WORDS, VECTORS)
    if kind == "glove":
        path.write_text(text_rows())
    elif kind == "glove.gz":
        path.write_bytes(gzip.compress(text_rows().encode()))
    elif kind == "vec":  # as fastText writes it: a header, and a blank at the end of each line
        path.write_text("4 3\n" + text_rows(" \n"))
    elif kind == "windows":
        path.write_bytes(b"\xef\xbb\xbf4 3\r\n" + text_rows("\r\n").encode() + b"\r\n")
    elif kind == "gensim":
        of_gensim.save_word2vec_format(str(path))
    elif kind == "bin":
        of_gensim.save_word2vec_format(str(path), binary=True)
    elif kind == "word2vec":  # the original program puts a line end after each vector
        rows = [
            word.encode() + b" " + row.astype("<f4").tobytes() + b"\n" for word, row in zip(WORDS, VECTORS, strict=True)
        ]
        path.write_bytes(b"4 3\n" + b"".join(rows))
    elif kind == "bin.gz":
        path.write_bytes(gzip.compress(write(folder, "bin").read_bytes()))
    else:
        np.savez(path, words=np.array(WORDS), vectors=VECTORS.astype(np.float64))
    return path


KINDS = ["glove", "glove.gz", "vec", "windows", "gensim", "bin", "word2vec", "bin.gz", "npz"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_gives_the_same_vectors_all_or_those_of_the_wanted_keys(kind: str, tmp_path: Path) -> None:
    table = read_vectors(write(tmp_path, kind))
    assert list(table.rows) == WORDS
    assert np.array_equal(table.matrix, VECTORS)
    assert table.matrix.dtype == np.float32
    some = read_vectors(tmp_path / f"vectors.{kind}", ["東京", "coffee", "milk"])
    assert sorted(some.rows) == ["coffee", "東京"]
    assert some.find(["milk", "東京"]) == pytest.approx(VECTORS[3])
    assert some.find(["tea"]) is None
    assert (some.checksum, some.first_key, some.dim) == (table.checksum, "tea", 3)
    assert read_vectors(tmp_path / f"vectors.{kind}", ["milk"]).matrix.shape == (0, 3)


def test_of_rows_with_one_key_the_first_counts(tmp_path: Path) -> None:
    (tmp_path / "twice.txt").write_text("tea 1 2\ntea 3 4\n")
    assert read_vectors(tmp_path / "twice.txt").matrix.tolist() == [[1, 2]]
    np.savez(tmp_path / "twice.npz", words=np.array(["tea", "tea"]), vectors=np.eye(2))
    assert read_vectors(tmp_path / "twice.npz").matrix.tolist() == [[1, 0]]


def test_a_key_may_hold_blanks(tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text("tea 1 2\n. . . 3 4\nat me@mine.org 5 6\n")
    assert read_vectors(tmp_path / "glove.txt").rows == {"tea": 0, ". . .": 1, "at me@mine.org": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tea 1 2\ncup 3\n", "line 2: 1 numbers where 2 are expected"),
        ("tea 1 2\ncup 3 4 5\n", "line 2: 3 numbers where 2 are expected"),
        ("1 2\ntea 1 2 3\n", "line 2: 3 numbers where 2 are expected"),
        ("tea 1 two\n", "line 1: could not convert string to float"),
        ("tea 1 2\nwine 1 x\n", "line 2: could not convert string to float"),
        ("tea 1 2\nwine nan 1\n", "the vector of 'wine' has a number that is not finite"),
        ("tea 1 2\nwine 1e99 1\n", "the vector of 'wine' has a number that is not finite"),
        ("tea\nwine\n", "line 1: no key with numbers"),
        ("3 2\ntea 1 2\nwine 3 4\n", "holds 2 vectors where its first line says 3"),
        ("1 2\ntea 1 2\nwine 3 4\n", "holds 2 vectors where its first line says 1"),
        ("", "line 1: no key with numbers"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "broken.txt").write_text(text)
    with pytest.raises(RelvecError, match=message):
        read_vectors(tmp_path / "broken.txt", ["wine"])


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    for kind in ("bin", "glove.gz"):
        path = write(tmp_path, kind)
        path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(RelvecError, match=r"vectors\.bin holds 3 vectors where its first line says 4; download it"):
        read_vectors(tmp_path / "vectors.bin")
    with pytest.raises(RelvecError, match=r"vectors\.glove\.gz is not a complete gzip file"):
        read_vectors(tmp_path / "vectors.glove.gz")


def test_a_number_that_is_not_finite_is_refused_in_any_format(tmp_path: Path) -> None:
    (tmp_path / "bad.bin").write_bytes(b"1 1\ntea " + np.array([np.inf], dtype="<f4").tobytes())
    with pytest.raises(RelvecError, match=r"bad\.bin: the vector of .tea. .* not finite"):
        read_vectors(tmp_path / "bad.bin")
    np.savez(tmp_path / "bad.npz", words=np.array(["tea", "wine"]), vectors=np.array([[1], [np.nan]]))
    with pytest.raises(RelvecError, match=r"bad\.npz: the vector of 'wine' has a number that is not finite"):
        read_vectors(tmp_path / "bad.npz")


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_file_is_refused_unopened(protocol: int, tmp_path: Path) -> None:
    (tmp_path / "vectors.kv").write_bytes(pickle.dumps({"tea": [1.0]}, protocol))
    with pytest.raises(RelvecError, match=r"is pickled, which is not safe to read; .*save_word2vec_format"):
        read_vectors(tmp_path / "vectors.kv")


@pytest.mark.parametrize("words", [np.array(["tea"], dtype=object), np.array([]), np.array(["tea", "cup"])])
def test_npz_of_pickled_words_or_other_content_is_refused(tmp_path: Path, words: np.ndarray) -> None:
    np.savez(tmp_path / "a.npz", words=words, vectors=np.eye(1))
    with pytest.raises(RelvecError, match=r"a\.npz does not hold `words` \(text\)"):
        read_vectors(tmp_path / "a.npz")


@pytest.fixture(scope="module")
def fasttext_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sentences = [["coffee", "barista", "tea"], ["wine", "winemaker"]] * 5
    model = FastText(sentences, vector_size=4, min_count=1, bucket=50, epochs=1, workers=1)
    path = tmp_path_factory.mktemp("fasttext") / "model.bin"
    save_facebook_model(model, str(path))
    return path


def test_fasttext_makes_vectors_of_unseen_words(fasttext_file: Path) -> None:
    whole = read_vectors(fasttext_file)
    some = read_vectors(fasttext_file, ["coffee", "baristas"])
    assert whole.subwords is not None
    assert some.subwords is not None
    assert list(some.rows) == ["coffee"]
    assert some.find(["coffee"]) == pytest.approx(whole.find(["coffee"]))
    made = some.subwords("baristas")
    assert made is not None
    assert made.any()
    assert made == pytest.approx(whole.subwords("baristas"))
    assert (read_vectors(fasttext_file, ["baristas"]).rows, some.dim) == ({}, 4)


def test_a_broken_fasttext_model_is_refused(fasttext_file: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.bin").write_bytes(fasttext_file.read_bytes()[:60])
    with pytest.raises(RelvecError, match="is not a complete fastText model"):
        read_vectors(tmp_path / "broken.bin")


def test_fasttext_without_gensim_names_the_extra(fasttext_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models.fasttext", None)
    with pytest.raises(RelvecError, match=r"pip install 'relvec\[evaluate\]'"):
        read_vectors(fasttext_file)
