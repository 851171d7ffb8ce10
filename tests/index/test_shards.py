"""An index from shards of bulk encoding: what it holds, and that the shards are never all in memory."""

import tracemalloc
from collections.abc import Callable
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relvec import PairIndex, RelBERT, RelvecError
from relvec.bulk import embed_files
from relvec.bulk.manifest import JobHeader, Manifest, Shard
from relvec.index import index_shards
from relvec.index.shard_vectors import ShardVectors
from relvec.io.tables import read_related_pairs
from relvec.model.model_check import ModelCheck
from relvec.pairs import Pair

ROWS = [
    ("Paris", "France", ""),
    ("cup", "tea", "holds"),
    ("Paris", "France", "capital"),
    ("cats", "dogs", ""),
    ("cup", "tea", "part"),
    ("Tokyo", "Japan", None),
    ("Paris", "France", "city"),
    ("cats", "dogs", ""),
]
FIRST = {("Paris", "France"): "capital", ("cup", "tea"): "holds", ("cats", "dogs"): "", ("Tokyo", "Japan"): ""}


@pytest.fixture(scope="module")
def model(tiny_folders: Callable[[str], Path]) -> RelBERT:
    return RelBERT.from_pretrained(tiny_folders("mpnet"), backend="numpy")


@pytest.fixture(scope="module")
def shards(tiny_folders: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four shards of two rows; pairs and labels come back in later ones."""
    folder = tmp_path_factory.mktemp("shards")
    heads, tails, relations = zip(*ROWS, strict=True)
    pq.write_table(pa.table({"head": heads, "tail": tails, "relation": relations}), folder / "pairs.parquet")
    given: dict[str, Any] = {"model": tiny_folders("mpnet"), "backend": "numpy", "workers": 1}
    assert embed_files(folder / "pairs.parquet", folder / "vectors", shards=4, **given).shards == 4
    return folder / "vectors"


def address(kind: str, folder: Path) -> str:
    if kind == "milvus":
        pytest.importorskip("milvus_lite", reason="the extra milvus is not installed")
        return f"milvus:{folder}/pairs.db"
    return str(folder / "my.index")


@pytest.mark.parametrize("kind", ["folder", "milvus"])
def test_an_index_of_shards_has_each_pair_once_with_its_first_label(
    kind: str, model: RelBERT, shards: Path, tmp_path: Path
) -> None:
    place = address(kind, tmp_path)
    assert index_shards(shards, place) == len(FIRST)
    index = PairIndex.load(place)
    assert dict(zip(index.pairs.pairs(), index.pairs.all_relations(), strict=True)) == FIRST
    expected = model.encode(index.pairs.pairs(), normalize=True)
    np.testing.assert_allclose(index.vectors(), expected, atol=1e-5)
    assert [each.pair for each in index.neighbours(model, ("pot", "soup"), k=1, relation="holds")] == [("cup", "tea")]


@pytest.mark.parametrize("label", [3, 1.5, True, float("nan"), " part  of "])
def test_a_label_is_read_from_shards_as_it_is_from_a_file(
    label: object, tiny_folders: Callable[[str], Path], tmp_path: Path
) -> None:
    table = pa.table({"head": ["cup", "a"], "tail": ["tea", "b"], "relation": [label, None]})
    pq.write_table(table, tmp_path / "pairs.parquet")
    embed_files(tmp_path / "pairs.parquet", tmp_path / "vectors", model=tiny_folders("mpnet"), workers=1)
    index_shards(tmp_path / "vectors", tmp_path / "my.index")
    pairs = PairIndex.load(tmp_path / "my.index").pairs
    found = list(zip(pairs.pairs(), pairs.all_relations(), strict=True))
    assert found == read_related_pairs(tmp_path / "pairs.parquet")


@pytest.mark.parametrize("kind", ["folder", "milvus"])
def test_shorter_vectors_of_shards_find_the_same_pairs(kind: str, model: RelBERT, shards: Path, tmp_path: Path) -> None:
    place = address(kind, tmp_path)
    index_shards(shards, place, shorter=8)
    found = PairIndex.load(place).neighbours(model, ("pot", "soup"), k=4)
    assert {each.pair for each in found} == set(FIRST)


def test_the_same_folder_is_not_built_again_and_a_damaged_shard_is_refused(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_shards(shards, tmp_path / "my.index")
    with monkeypatch.context() as patched:
        patched.setattr(ShardVectors, "distinct", None)
        assert index_shards(shards, tmp_path / "my.index") == len(FIRST)
    whole = (shards / "part-00002.parquet").read_bytes()
    try:
        (shards / "part-00002.parquet").write_bytes(whole[:-1] + b"?")
        with pytest.raises(RelvecError, match=r"part-00002.parquet is damaged; remove it and run the same"):
            index_shards(shards, tmp_path / "other.index")
    finally:
        (shards / "part-00002.parquet").write_bytes(whole)


SHARDS, ROWS_A_SHARD, DIM = 24, 1_000, 256


@pytest.fixture
def many(model: RelBERT, tmp_path: Path) -> tuple[ShardVectors, int]:
    """Shards of a MB of vectors each, and the bytes of the largest."""
    made_by: dict[str, Any] = ModelCheck.of(model).as_dict()
    counts: dict[str, Any] = {"dim": DIM, "parts": SHARDS, "rows": SHARDS * ROWS_A_SHARD}
    header = JobHeader(**made_by, **counts, normalize=False, truncate=False, dtype="float32", plan="")
    manifest = Manifest(str(tmp_path), header)
    for part, (start, stop) in enumerate(pairwise(range(0, (SHARDS + 1) * ROWS_A_SHARD, ROWS_A_SHARD))):
        numbers = np.random.default_rng(part).normal(size=(ROWS_A_SHARD, DIM)).astype(np.float32)
        words = {"head": [f"head {row % 50}" for row in range(start, stop)]}
        words["tail"] = [f"tail {row}" for row in range(start, stop)]
        lists = pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), DIM)
        pq.write_table(pa.table({**words, "vector": lists}), tmp_path / f"part-{part}.parquet")
        content = (tmp_path / f"part-{part}.parquet").read_bytes()
        about: dict[str, Any] = {
            "output": f"part-{part}.parquet",
            "bytes": len(content),
            "sha256": sha256(content).hexdigest(),
        }
        counted: dict[str, Any] = {"rows": ROWS_A_SHARD, "distinct": ROWS_A_SHARD, "errors": 0, "unknown": 0}
        manifest.add(Shard(part=part, file="pairs.parquet", start=start, stop=stop, **counted, **about), [])
    return ShardVectors(manifest), len(content)


def peak_bytes(work: Callable[[], Any]) -> int:
    """What Python and numpy hold at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_rows_for_milvus_come_shard_by_shard(many: tuple[ShardVectors, int]) -> None:
    shards, of_one = many
    before = pa.total_allocated_bytes()
    held, seen = 0, set[Pair]()

    def stream() -> None:
        nonlocal held
        for pairs, _, vectors in shards.to_overwrite():
            assert len(pairs) == len(vectors) == ROWS_A_SHARD
            held = max(held, pa.total_allocated_bytes() - before)
            seen.add(pairs[0])

    assert peak_bytes(stream) + held < 8 * of_one < SHARDS * of_one
    assert len(seen) == SHARDS


def test_the_pairs_of_a_folder_are_read_without_their_vectors(many: tuple[ShardVectors, int]) -> None:
    shards, of_one = many
    assert peak_bytes(shards.distinct) < 8 * of_one < SHARDS * of_one
    pairs, vectors = shards.distinct()
    assert len(pairs) == len(vectors) == SHARDS * ROWS_A_SHARD
    np.testing.assert_array_equal(vectors[2_500:2_502], shards[2_500:2_502])
