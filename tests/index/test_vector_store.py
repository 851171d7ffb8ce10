from pathlib import Path

import numpy as np
import pytest

from relvec import RelvecError
from relvec.index.kinds import KINDS
from relvec.index.vector_store import VectorStore
from relvec.similarity import Vectors, normalized

ALL_KINDS = pytest.mark.parametrize("kind", KINDS)


def nearest(vectors: Vectors, query: Vectors, count: int) -> list[int]:
    return np.argsort(-(normalized(vectors) @ normalized(query[None])[0]), kind="stable")[:count].tolist()


def recall(store: VectorStore, vectors: Vectors, candidates: int = 32) -> float:
    """The share of the 10 true neighbours that are among the candidates which would be encoded again."""
    hits = [set(nearest(vectors, vectors[at], 10)) & set(store.search(vectors[at], candidates)[1]) for at in range(60)]
    return sum(map(len, hits)) / 600


def test_flat_search_equals_numpy(clusters: Vectors) -> None:
    store = VectorStore.of(clusters, KINDS["flat"])
    for query in clusters[:20]:
        scores, rows = store.search(query, 25)
        cosines = normalized(clusters) @ normalized(query[None])[0]
        np.testing.assert_allclose(scores, np.sort(cosines)[::-1][:25], atol=1e-6)
        np.testing.assert_allclose(scores, cosines[rows], atol=1e-6)


@ALL_KINDS
def test_every_kind_finds_planted_neighbours_with_their_cosines_or_nearly(clusters: Vectors, kind: str) -> None:
    store = VectorStore.of(clusters, KINDS[kind])
    assert recall(store, clusters) >= 0.95
    scores, rows = store.search(clusters[7], 10)
    cosines = normalized(clusters)[rows] @ normalized(clusters[7:8])[0]
    np.testing.assert_allclose(scores, cosines, atol=1e-6 if KINDS[kind].is_exact else 0.1)


@ALL_KINDS
@pytest.mark.parametrize("every", [2, 40])
def test_only_allowed_rows_are_found_and_all_of_them(clusters: Vectors, kind: str, every: int) -> None:
    allowed = np.arange(len(clusters)) % every == 0
    store = VectorStore.of(clusters, KINDS[kind])
    assert all(row % every == 0 for row in store.search(clusters[3], 20, allowed)[1])
    assert sorted(store.search(clusters[3], 3000, allowed)[1]) == np.flatnonzero(allowed).tolist()
    assert len(store.search(clusters[3], 5, np.zeros(len(clusters), dtype=bool))[1]) == 0


@ALL_KINDS
def test_a_mapped_file_answers_as_the_store_that_wrote_it_also_when_it_is_written_again(
    clusters: Vectors, tmp_path: Path, kind: str
) -> None:
    store = VectorStore.of(clusters, KINDS[kind])
    store.write(tmp_path / "first.faiss")
    VectorStore.read(tmp_path / "first.faiss", KINDS[kind], mapped=True).write(tmp_path / "v.faiss")
    (tmp_path / "first.faiss").unlink()
    for mapped in (True, False):
        again = VectorStore.read(tmp_path / "v.faiss", KINDS[kind], mapped=mapped)
        assert (len(again), again.dim) == (3000, 16)
        for query in clusters[:10]:
            assert again.search(query, 10)[1].tolist() == store.search(query, 10)[1].tolist()


@ALL_KINDS
def test_dropped_rows_are_gone_and_the_others_move_up(clusters: Vectors, kind: str) -> None:
    store = VectorStore.of(clusters, KINDS[kind])
    dropped = np.arange(0, 3000, 3)
    store.drop(dropped)
    kept = np.delete(clusters, dropped, axis=0)
    assert len(store) == 2000
    assert recall(store, kept) >= 0.95
    store.add(clusters[:1])
    assert 2000 in store.search(clusters[0], 5)[1]


def test_compressed_kinds_are_smaller(clusters: Vectors, tmp_path: Path) -> None:
    def size(kind: str) -> int:
        VectorStore.of(clusters, KINDS[kind]).write(tmp_path / kind)
        return (tmp_path / kind).stat().st_size

    assert all(size(kind.name) < size("flat") for kind in KINDS.values() if not kind.is_exact)


def test_a_code_of_768_dimensions_takes_less_than_110_bytes(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(1500, 768)).astype(np.float32)
    VectorStore.of(vectors[:1000], KINDS["rabitq"]).write(tmp_path / "small")
    VectorStore.of(vectors, KINDS["rabitq"]).write(tmp_path / "large")
    assert ((tmp_path / "large").stat().st_size - (tmp_path / "small").stat().st_size) / 500 < 110


def test_a_broken_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "v.faiss").write_bytes(b"IxFI and no more")
    with pytest.raises(RelvecError, match="not a complete FAISS file") as caught:
        VectorStore.read(tmp_path / "v.faiss", KINDS["flat"], mapped=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["flat", "rabitq", "int8"])
def test_shorter_vectors_still_find_their_cluster_and_are_no_longer_exact(
    clusters: Vectors, tmp_path: Path, kind: str
) -> None:
    VectorStore.of(clusters, KINDS[kind], 8).write(tmp_path / "short.faiss")
    store = VectorStore.read(tmp_path / "short.faiss", KINDS[kind], mapped=True)
    assert (store.dim, store.is_exact) == (16, False)
    found = [store.search(clusters[at], 20)[1] % 60 == at % 60 for at in range(60)]
    assert np.mean(found) > 0.5  # one in 60 by chance
    with pytest.raises(RelvecError, match=r"cannot be reduced to 12 .*use a multiple of 8"):
        VectorStore.of(clusters, KINDS[kind], 12)
