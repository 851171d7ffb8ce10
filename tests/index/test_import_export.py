from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relvec import RelBERT, RelvecError
from relvec.index.building import export_index, import_index
from relvec.index.pair_index import PairIndex
from relvec.io.vectors import FORMATS, read_pair_file
from relvec.model.cached_vectors import embed_to_file
from relvec.pairs import Pair

PAIRS = [("Paris", "France"), ("ice cream", "cone"), ("snake_case", "_x_"), ("a__b", "C\\D"), ("東京", "日本 国")]
RELATIONS = ["capital", "", "", "other", ""]


@pytest.fixture
def index(tiny: RelBERT) -> PairIndex:
    return PairIndex.of(tiny, PAIRS, relations=RELATIONS)


@pytest.mark.parametrize("ending", [ending for ending in FORMATS if ending != ".npy"])
def test_pairs_and_vectors_survive_export_and_import(
    tiny: RelBERT, index: PairIndex, tmp_path: Path, ending: str
) -> None:
    file = tmp_path / f"vectors{ending}"
    export_index(index, file)
    assert import_index(file, tmp_path / "again.index", model=tiny) == len(PAIRS)
    again = PairIndex.load(tmp_path / "again.index")
    assert again.pairs.pairs() == PAIRS
    np.testing.assert_allclose(again.vectors(), index.vectors(), atol=1e-6 if ending == ".jsonl" else 1e-7)
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


def test_a_file_without_a_place_for_pairs_is_refused(index: PairIndex, tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match=r"v\.npy is not a file for pairs .* end its name in \.npz, \.jsonl"):
        export_index(index, tmp_path / "v.npy")
    assert not list(tmp_path.iterdir())


def test_what_was_removed_is_not_exported(index: PairIndex, tmp_path: Path) -> None:
    index.remove(PAIRS[:2])
    export_index(index, tmp_path / "v.npz")
    found = read_pair_file(tmp_path / "v.npz")
    assert (found.pairs, found.relations, len(found.vectors)) == (PAIRS[2:], RELATIONS[2:], 3)


def test_vectors_of_another_model_are_refused(
    tiny: RelBERT, tiny_folders: Callable[[str], Path], tmp_path: Path
) -> None:
    embed_to_file(RelBERT.from_pretrained(tiny_folders("bert")), PAIRS, tmp_path / "v.npz")
    with pytest.raises(RelvecError, match=r"vectors made by a model other than tiny-roberta"):
        import_index(tmp_path / "v.npz", tmp_path / "my.index", model=tiny)
    assert not (tmp_path / "my.index").exists()


@pytest.mark.parametrize(("count", "width", "message"), [(2, 8, "8 dimensions where"), (0, 16, "no pair to index")])
def test_a_file_that_cannot_be_of_this_model_is_refused(
    tiny: RelBERT, tmp_path: Path, count: int, width: int, message: str
) -> None:
    words = np.array(["a", "b"])[:count]
    np.savez(tmp_path / "v.npz", head=words, tail=words, vectors=np.ones((count, width), dtype=np.float32))
    with pytest.raises(RelvecError, match=message):
        import_index(tmp_path / "v.npz", tmp_path / "my.index", model=tiny)
