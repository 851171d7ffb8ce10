import errno
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from relvec.errors import RelvecError
from relvec.io.files import atomic_write
from relvec.io.vectors import FORMATS, check_output, key_of, pair_of, read_pair_file, write_pair_file
from relvec.similarity import Vectors

PAIRS = [("Paris", "France"), ("ice cream", "cone"), ("snake_case", "_x_"), ("a__b", "C\\D"), ("東京", "日本 国")]
RELATIONS = ["capital", "", "", "other", ""]
VECTORS = np.random.default_rng(0).normal(size=(len(PAIRS), 4)).astype(np.float32)

READABLE = [ending for ending in FORMATS if ending != ".npy"]
WORD = st.text(st.sampled_from("ab_\\ é"), min_size=1, max_size=6).map(lambda word: " ".join(word.split())).filter(bool)


def rows(start: int, stop: int) -> Vectors:
    return VECTORS[start:stop]


@given(WORD, WORD)
def test_every_pair_comes_back_from_its_key(head: str, tail: str) -> None:
    assert pair_of(key_of((head, tail))) == (head, tail)
    assert " " not in key_of((head, tail))


def test_keys_of_others_are_read() -> None:
    assert pair_of("barista__ice_coffee") == ("barista", "ice coffee")
    for key in ("barista", "a__b__c", "__b", "a__"):
        with pytest.raises(RelvecError):
            pair_of(key)


@pytest.mark.parametrize("ending", READABLE)
def test_every_format_reads_back_what_it_wrote(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relvec.io.vectors.ROWS_PER_STEP", 2)
    path = tmp_path / f"v{ending}"
    write_pair_file(path, PAIRS, rows, {"relation": RELATIONS})
    found = read_pair_file(path)
    assert found.pairs == PAIRS
    np.testing.assert_allclose(found.vectors, VECTORS, atol=1e-6 if ending == ".jsonl" else 0)
    assert found.relations == ([""] * 5 if ending in (".txt", ".bin") else RELATIONS)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_an_array_holds_the_vectors_alone(tmp_path: Path) -> None:
    write_pair_file(tmp_path / "v.npy", PAIRS, rows)
    assert np.array_equal(np.load(tmp_path / "v.npy"), VECTORS)
    with pytest.raises(RelvecError, match="holds no pairs beside the vectors"):
        read_pair_file(tmp_path / "v.npy")


def test_further_columns_are_written_beside_the_pairs(tmp_path: Path) -> None:
    columns: dict[str, Sequence[Any]] = {"score": [0, 1, 2, 3, 4], "note": list("vwxyz"), "year": [None, 1, 2, 3, 4]}
    for ending in (".parquet", ".jsonl", ".npz"):
        write_pair_file(tmp_path / f"v{ending}", PAIRS, rows, columns)
    frames = pd.read_parquet(tmp_path / "v.parquet"), pd.read_json(tmp_path / "v.jsonl", lines=True)
    for frame in frames:
        assert list(frame) == ["head", "tail", "score", "note", "year", "vector"]
        assert {name: frame[name].tolist() for name in ("score", "note")} == {
            name: columns[name] for name in ("score", "note")
        }
        assert frame["year"].fillna(0).tolist() == [0, 1, 2, 3, 4]
    with np.load(tmp_path / "v.npz", allow_pickle=False) as arrays:
        assert arrays["score"].tolist() == columns["score"]
        assert arrays["year"].tolist() == ["", "1", "2", "3", "4"]


def test_parquet_files_of_others_are_read(tmp_path: Path) -> None:
    heads, tails = zip(*PAIRS, strict=True)
    columns = {
        "Subject": heads,
        "Object": tails,
        "vector": VECTORS.astype(float).tolist(),
        "relation": [1, *[None] * 4],
    }
    pd.DataFrame(columns).astype({"relation": "Int64"}).to_parquet(tmp_path / "v.parquet")
    found = read_pair_file(tmp_path / "v.parquet")
    assert (found.pairs, found.relations) == (PAIRS, ["1", *[""] * 4])
    np.testing.assert_allclose(found.vectors, VECTORS)


def bad_files(folder: Path) -> dict[str, str]:
    """File names and what is said of them."""
    ones = np.ones((2, 4), dtype=np.float32)
    words = np.array(["a", "b"])
    np.savez(folder / "missing.npz", head=words, vectors=ones)
    np.savez(folder / "shape.npz", head=words[:1], tail=words, vectors=ones)
    np.savez(folder / "labels.npz", head=words, tail=words, vectors=ones, relation=words[:1])
    np.savez(folder / "nan.npz", head=words, tail=words, vectors=ones * np.nan)
    np.savez(folder / "flat.npz", head=words, tail=words, vectors=ones[:, 0])
    with (folder / "array.npz").open("wb") as file:
        np.save(file, ones)
    (folder / "broken.npz").write_bytes(b"PK\x03\x04")
    np.savez(folder / "flag.npz", head=words, tail=words, vectors=ones)
    content = bytearray((folder / "flag.npz").read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1 << 5  # the flag of a patch: zipfile has not implemented it
    (folder / "flag.npz").write_bytes(content)
    (folder / "broken.parquet").write_bytes(b"PAR1")
    (folder / "words.txt").write_text("tea 1 2\ncup 3 4\n")
    (folder / "vectors.doc").write_text("")
    (folder / "none.jsonl").write_text('{"head": "a", "tail": "b"}')
    (folder / "nan.jsonl").write_text('{"head": "a", "tail": "b", "vector": [NaN]}')
    more: dict[str, dict[str, Any]] = {
        "column": {},
        "ragged": {"vector": [[1.0], [1.0, 2.0]]},
        "text": {"vector": ["x", "y"]},
        "huge": {"vector": [[1e39] * 4] * 2},
    }
    for name, extra in more.items():
        parquet.write_table(pa.table({"head": ["a", "b"], "tail": ["c", "d"], **extra}), folder / f"{name}.parquet")
    return {
        "missing.npz": "is not a file of pair vectors",
        "shape.npz": "is not a file of pair vectors",
        "labels.npz": "is not a file of pair vectors",
        "nan.npz": "row 1: the vector has a number that is not finite",
        "flat.npz": "are not lists of numbers of one length",
        "array.npz": "is not a file of pair vectors",
        "broken.npz": "is not a file of pair vectors",
        "flag.npz": "is not a file of pair vectors",
        "broken.parquet": "is not a complete parquet file",
        "column.parquet": "has no column vector",
        "ragged.parquet": "are not lists of numbers of one length",
        "text.parquet": "are not lists of numbers of one length",
        "huge.parquet": "row 1: the vector has a number that is not finite",
        "none.jsonl": "are not lists of numbers of one length",
        "nan.jsonl": "line 1: the vector has a number that is not finite",
        "words.txt": "the key 'tea' is not a pair; write it as head__tail",
        "vectors.doc": "end its name in .npz",
        "nowhere.npz": "There is no file",
    }


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_bad_files_are_one_sentence(tmp_path: Path) -> None:
    for name, message in bad_files(tmp_path).items():
        with pytest.raises(RelvecError) as caught:
            read_pair_file(tmp_path / name)
        assert message in str(caught.value), name
        assert "\n" not in str(caught.value), name


@pytest.mark.parametrize("ending", FORMATS)
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path, ending: str) -> None:
    def full(start: int, stop: int) -> Vectors:
        if stop > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return rows(start, stop)

    path, message = tmp_path / f"vectors{ending}", r"^Cannot write .*: No space left on device; .*free space\.$"
    with pytest.raises(RelvecError, match=message), atomic_write(path) as partial:
        write_pair_file(partial, PAIRS, full)
    assert not list(tmp_path.iterdir())


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(RelvecError, match=r"pip install 'relvec\[parquet\]'"):
        check_output(tmp_path / "v.parquet")
