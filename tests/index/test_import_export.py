from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relvec import RelBERT, RelvecError
from relvec.index.import_export import export_index, import_index
from relvec.index.pair_index import PairIndex
from relvec.io.pair_key import key_of, pair_of
from relvec.io.pair_vectors import FORMATS, PairFile, read_pair_file
from relvec.model.embed import embed_to_file
from relvec.pairs import Pair

PAIRS = [("Paris", "France"), ("ice cream", "cone"), ("snake_case", "_x_"), ("a__b", "C\\D"), ("東京", "日本 国")]
RELATIONS = ["capital", "", "", "other", ""]

WORD = st.text(st.sampled_from("ab_\\ é"), min_size=1, max_size=6).map(str.strip).filter(bool)


@given(WORD.map(lambda word: " ".join(word.split())), WORD.map(lambda word: " ".join(word.split())))
def test_every_pair_comes_back_from_its_key(head: str, tail: str) -> None:
    assert pair_of(key_of((head, tail))) == (head, tail)
    assert " " not in key_of((head, tail))


def test_keys_of_others_are_read() -> None:
    assert pair_of("barista__ice_coffee") == ("barista", "ice coffee")
    for key in ("barista", "a__b__c", "__b", "a__"):
        with pytest.raises(RelvecError):
            pair_of(key)


@pytest.fixture
def index(tiny: RelBERT) -> PairIndex:
    return PairIndex.of(tiny, PAIRS, relations=RELATIONS)


@pytest.mark.parametrize("ending", FORMATS)
def test_pairs_and_vectors_survive_export_and_import(
    tiny: RelBERT, index: PairIndex, tmp_path: Path, ending: str
) -> None:
    file = tmp_path / f"vectors{ending}"
    export_index(index, file)
    assert import_index(file, tmp_path / "again.index", model=tiny).count == len(PAIRS)
    again = PairIndex.load(tmp_path / "again.index")
    assert again.pairs.pairs() == PAIRS
    np.testing.assert_allclose(again.vectors(), index.vectors(), atol=1e-7)
    assert again.pairs.all_relations() == ([""] * 5 if ending in (".txt", ".bin") else RELATIONS)
    assert again.neighbours(tiny, ("cup", "tea"), 3)[0].pair == index.neighbours(tiny, ("cup", "tea"), 3)[0].pair


@pytest.mark.parametrize("is_binary", [False, True])
def test_gensim_reads_and_writes_the_word2vec_files(
    tiny: RelBERT, index: PairIndex, tmp_path: Path, is_binary: bool
) -> None:
    keyed_vectors: Any = pytest.importorskip("gensim.models").KeyedVectors
    name = "vectors.bin" if is_binary else "vectors.txt"
    export_index(index, tmp_path / name)
    loaded = keyed_vectors.load_word2vec_format(str(tmp_path / name), binary=is_binary)
    np.testing.assert_allclose(loaded["ice_cream__cone"], index.vectors()[1], atol=1e-6)
    loaded.save_word2vec_format(str(tmp_path / f"again-{name}"), binary=is_binary)
    import_index(tmp_path / f"again-{name}", tmp_path / "my.index", model=tiny)
    again = PairIndex.load(tmp_path / "my.index")
    assert sorted(again.pairs.pairs()) == sorted(PAIRS)


def test_what_embed_writes_is_imported(tiny: RelBERT, tmp_path: Path) -> None:
    embed_to_file(tiny, [*PAIRS, PAIRS[0]], tmp_path / "v.npz")
    import_index(tmp_path / "v.npz", tmp_path / "my.index", model=tiny)
    index = PairIndex.load(tmp_path / "my.index")
    assert index.pairs.pairs() == PAIRS
    np.testing.assert_allclose(index.vectors(), tiny.encode(PAIRS, normalize=True), atol=1e-6)


def test_other_parquet_writers_are_read(tiny: RelBERT, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    heads, tails = zip(*PAIRS, strict=True)
    vectors = [vector.tolist() for vector in tiny.encode(PAIRS)]  # lists of float64, as pandas would write
    frame = pandas.DataFrame({"head": heads, "tail": tails, "vector": vectors, "relation": [None, *RELATIONS[1:]]})
    frame.to_parquet(tmp_path / "v.parquet")
    found = read_pair_file(tmp_path / "v.parquet")
    assert (found.pairs, found.relations) == (PAIRS, ["", *RELATIONS[1:]])
    np.testing.assert_allclose(found.vectors, tiny.encode(PAIRS), atol=1e-6)


def test_pairs_of_a_compressed_index_are_encoded_again_for_export(tiny: RelBERT, tmp_path: Path) -> None:
    pairs: list[Pair] = [(f"word {number}", "cup") for number in range(300)]
    index = PairIndex.of(tiny, pairs, kind="int8")
    with pytest.raises(RelvecError, match="keeps no whole vectors; give the model"):
        export_index(index, tmp_path / "v.npz")
    export_index(index, tmp_path / "v.npz", model=tiny)
    np.testing.assert_allclose(
        read_pair_file(tmp_path / "v.npz").vectors, tiny.encode(pairs, normalize=True), atol=1e-6
    )
    assert [file.name for file in tmp_path.iterdir()] == ["v.npz"]


def test_what_was_removed_is_not_exported(index: PairIndex, tmp_path: Path) -> None:
    index.remove(PAIRS[:2])
    export_index(index, tmp_path / "v.npz")
    found = read_pair_file(tmp_path / "v.npz")
    assert (found.pairs, found.relations, len(found.vectors)) == (PAIRS[2:], RELATIONS[2:], 3)


def test_vectors_of_another_model_are_refused(
    tiny: RelBERT, tiny_folders: Callable[[str], Path], tmp_path: Path
) -> None:
    embed_to_file(RelBERT.from_pretrained(tiny_folders("bert")), PAIRS, tmp_path / "v.npz")
    with pytest.raises(RelvecError, match=r"vectors of another model than tiny-roberta"):
        import_index(tmp_path / "v.npz", tmp_path / "my.index", model=tiny)
    assert not (tmp_path / "my.index").exists()


def bad_files(folder: Path) -> dict[str, str]:
    """File names and what is said of them."""
    import pyarrow
    from pyarrow import parquet

    ones = np.ones((2, 16), dtype=np.float32)
    words = np.array(["a", "b"])
    np.savez(folder / "width.npz", head=words, tail=words, vectors=ones[:, :8])
    np.savez(folder / "missing.npz", head=words, vectors=ones)
    np.savez(folder / "shape.npz", head=words[:1], tail=words, vectors=ones)
    np.savez(folder / "nan.npz", head=words, tail=words, vectors=ones * np.nan)
    np.savez(folder / "huge.npz", head=words, tail=words, vectors=np.full((2, 16), 1e39))
    np.savez(folder / "single.npz", head="a", tail="b", vectors=ones)
    with (folder / "array.npz").open("wb") as file:
        np.save(file, ones)
    np.savez(folder / "none.npz", head=words[:0], tail=words[:0], vectors=ones[:0])
    np.savez(folder / "labels.npz", head=words, tail=words, vectors=ones, relation=words[:1])
    np.savez(folder / "numbers.npz", head=words, tail=words, vectors=ones, relation=np.arange(2))
    np.savez_compressed(folder / "changed.npz", head=words, tail=words, vectors=ones)
    changed = bytearray((folder / "changed.npz").read_bytes())
    place = changed.index(b"vectors.npy") + 50
    changed[place : place + 8] = b"\xff" * 8
    (folder / "changed.npz").write_bytes(changed)
    (folder / "broken.npz").write_bytes(b"PK\x03\x04")
    (folder / "broken.parquet").write_bytes(b"PAR1")
    (folder / "words.txt").write_text("tea 1 2\ncup 3 4\n")
    (folder / "vectors.doc").write_text("")
    columns = {"head": ["a", "b"], "tail": ["c", "d"]}
    more: dict[str, dict[str, Any]] = {
        "column": {},
        "ragged": {"vector": [[1.0], [1.0, 2.0]]},
        "text": {"vector": ["x", "y"]},
        "relation": {"vector": [[1.0] * 16] * 2, "relation": [1, 2]},
        "huge": {"vector": [[1e39] * 16] * 2},
    }
    for name, extra in more.items():
        parquet.write_table(pyarrow.table({**columns, **extra}), folder / f"{name}.parquet")
    return {
        "width.npz": "vectors of 8 dimensions where tiny-roberta makes 16",
        "missing.npz": "is no file of pair vectors",
        "shape.npz": "has head (1,), tail (2,)",
        "nan.npz": "row 1: the vector has a number that is not finite",
        "huge.npz": "row 1: the vector has a number that is not finite",
        "huge.parquet": "row 1: the vector has a number that is not finite",
        "single.npz": "has head (), tail ()",
        "array.npz": "is no file of pair vectors",
        "none.npz": "holds no pair",
        "labels.npz": "has head (2,) and relation (1,)",
        "numbers.npz": "row 1: the relation 0 is not text",
        "changed.npz": "is no file of pair vectors",
        "relation.parquet": "row 1: the relation 1 is not text",
        "broken.npz": "is no file of pair vectors",
        "broken.parquet": "is no whole parquet file",
        "column.parquet": "has no column vector",
        "ragged.parquet": "different lengths",
        "text.parquet": "make it lists of numbers",
        "words.txt": "the key 'tea' is no pair; write it as head__tail",
        "vectors.doc": "end its name in .txt",
        "nowhere.npz": "There is no file",
    }


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_bad_files_are_one_sentence(tiny: RelBERT, tmp_path: Path) -> None:
    for name, message in bad_files(tmp_path).items():
        with pytest.raises(RelvecError) as caught:
            import_index(tmp_path / name, tmp_path / "my.index", model=tiny)
        assert message in str(caught.value), name
        assert "\n" not in str(caught.value), name


@pytest.mark.parametrize(
    ("name", "message"), [("v.doc", "end its name in"), ("nowhere/v.npz", "no folder"), ("", "is a folder")]
)
def test_an_impossible_output_is_refused(index: PairIndex, tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(RelvecError, match=message):
        export_index(index, tmp_path / name)


@pytest.mark.parametrize("ending", FORMATS)
def test_a_full_disk_is_one_sentence(
    index: PairIndex, tmp_path: Path, ending: str, full_disk: Callable[[], Any]
) -> None:
    with pytest.raises(RelvecError, match=r"^Cannot write .*; .*free space\.$") as caught, full_disk():
        export_index(index, tmp_path / f"vectors{ending}")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_vectors_without_a_cosine_are_not_of_this_model(
    tiny: RelBERT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = PairFile(PAIRS, np.full((len(PAIRS), tiny.dim), np.nan, dtype=np.float32), RELATIONS)
    monkeypatch.setattr("relvec.index.import_export.read_pair_file", lambda _: nowhere)
    with pytest.raises(RelvecError, match="vectors of another model"):
        import_index("v.npz", tmp_path / "my.index", model=tiny)


def test_one_long_word_does_not_make_a_giant_npz_file(
    tiny: RelBERT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relvec.model.embed.WIDE_BYTES", 1000)
    index = PairIndex.of(tiny, [*PAIRS, ("a", "b")], relations=["long " * 20, *[""] * 5])
    with pytest.raises(RelvecError, match=r"longest word has 99 letters.*; write a \.parquet file"):
        export_index(index, tmp_path / "v.npz")
    export_index(index, tmp_path / "v.parquet")
    assert [file.name for file in tmp_path.iterdir()] == ["v.parquet"]
