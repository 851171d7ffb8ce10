"""An index in Milvus answers as the one in a folder does; here the embedded engine, also behind a port."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from relvec import PairIndex, RelBERT, RelvecError
from relvec.index import build_index, complete, export_index, import_index
from relvec.pairs import Pair

pytest.importorskip("pymilvus", reason="the extra milvus is not installed")
pytest.importorskip("milvus_lite", reason="the extra milvus is not installed")

PAIRS = [
    ("Tokyo", "Japan"),
    ("cup", "tea"),
    ("Cup", "coffee"),
    ("it's", 'a "quote"'),
    ("back\\slash", "{brace}"),
    ("cats", "dogs"),
    ("Paris", "France"),
    ("ice cream", "東京"),
]
RELATIONS = ["capital", "holds", "holds", "", "", 'kinds of "pets"', "capital", ""]


@pytest.fixture(scope="module")
def model(tiny_folders: Callable[[str], Path]) -> RelBERT:
    return RelBERT.from_pretrained(tiny_folders("mpnet"), backend="numpy")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The embedded engine behind a port, which speaks the protocol of a Milvus server."""
    from milvus_lite.adapter.grpc.server import start_server_in_thread

    server, database, port = start_server_in_thread(str(tmp_path_factory.mktemp("server")))
    yield f"http://127.0.0.1:{port}"
    server.stop(grace=2)
    database.close()


@pytest.fixture(scope="module", params=["folder", "server"])
def address(request: pytest.FixtureRequest, model: RelBERT, tmp_path_factory: pytest.TempPathFactory) -> str:
    made = f"milvus:{tmp_path_factory.mktemp('milvus')}/pairs.db"
    if request.param == "server":
        made = f"milvus:{request.getfixturevalue('server')}/my_pairs"
    build_index(model, PAIRS, made, relations=RELATIONS)
    return made


@pytest.fixture
def folder(model: RelBERT) -> PairIndex:
    return PairIndex.of(model, PAIRS, relations=RELATIONS)


@pytest.mark.parametrize("query", [("Paris", "France"), ("cup", "milk"), ("it's", "{brace}")])
@pytest.mark.parametrize("shared_words", [False, True])
@pytest.mark.parametrize("relation", [None, "holds", ["capital", 'kinds of "pets"']])
def test_neighbours_are_those_of_a_folder(
    model: RelBERT, address: str, folder: PairIndex, query: Pair, shared_words: bool, relation: str | list[str] | None
) -> None:
    found, expected = (
        index.neighbours(model, query, k=5, shared_words=shared_words, relation=relation)
        for index in (PairIndex.load(address), folder)
    )
    assert [(each.pair, each.relation) for each in found] == [(each.pair, each.relation) for each in expected]
    np.testing.assert_allclose([each.score for each in found], [each.score for each in expected], atol=1e-5)


def test_analogies_are_completed_as_from_a_folder(model: RelBERT, address: str, folder: PairIndex) -> None:
    found, expected = (complete(model, index, "Paris", "France", "Cup") for index in (PairIndex.load(address), folder))
    assert [word for word, _ in found] == [word for word, _ in expected]


def test_pairs_are_added_removed_and_exported(model: RelBERT, tmp_path: Path) -> None:
    address = f"milvus:{tmp_path}/pairs.db"
    build_index(model, PAIRS, address, relations=RELATIONS)
    with PairIndex.editing(address) as index:
        assert index.add(model, [("cup", "tea"), ("pot", "soup")]) == 1
    with PairIndex.editing(address) as index:
        assert index.remove([("it's", 'a "quote"'), ("not", "here")]) == 1
    index = PairIndex.load(address)
    assert len(index) == len(PAIRS)
    export_index(index, tmp_path / "vectors.npz")
    import_index(tmp_path / "vectors.npz", tmp_path / "copy.index", model=model)
    copy = PairIndex.load(tmp_path / "copy.index")
    assert set(copy.pairs.pairs()) == {*PAIRS, ("pot", "soup")} - {("it's", 'a "quote"')}
    with pytest.raises(RelvecError, match=r"An index cannot be empty"):
        index.remove(copy.pairs.pairs())


def test_shorter_vectors_are_ranked_again_by_the_model(model: RelBERT, folder: PairIndex, tmp_path: Path) -> None:
    address = f"milvus:{tmp_path}/short.db"
    build_index(model, PAIRS, address, relations=RELATIONS, shorter=8)
    index = PairIndex.load(address)
    assert not index.is_exact
    found, expected = (each.neighbours(model, ("Paris", "France"), k=8) for each in (index, folder))
    np.testing.assert_allclose([each.score for each in found], [each.score for each in expected], atol=1e-5)


def test_another_model_an_unfinished_index_and_a_missing_one_are_refused(
    model: RelBERT, address: str, tiny_folders: Callable[[str], Path], tmp_path: Path
) -> None:
    with pytest.raises(RelvecError, match=r"vectors made by a model other than tiny-bert"):
        PairIndex.load(address).neighbours(RelBERT.from_pretrained(tiny_folders("bert")), ("Paris", "France"))
    with pytest.raises(RelvecError, match=r"holds an index already; choose another name"):
        build_index(model, PAIRS, address)
    with pytest.raises(RelvecError, match=r"There is no Milvus index at .*; write milvus:FOLDER.db"):
        PairIndex.load(f"milvus:{tmp_path}/none.db")
    with pytest.raises(RelvecError, match=r"Milvus at milvus:http://127.0.0.1:1/pairs does not do this .*; check"):
        PairIndex.load("milvus:http://127.0.0.1:1/pairs")
    with pytest.raises(RelvecError, match=r"No pair of this index has the relation 'capitals'"):
        PairIndex.load(address).neighbours(model, ("Paris", "France"), relation="capitals")


def test_a_build_that_is_killed_does_not_count_and_is_made_again(
    model: RelBERT, tiny_folders: Callable[[str], Path], tmp_path: Path
) -> None:
    address = f"milvus:{tmp_path}/killed.db"
    code = (
        "import sys, numpy as np\n"
        "from relvec import RelBERT\n"
        "from relvec.index.milvus import MilvusIndex\n"
        "from relvec.model.model_check import ModelCheck\n"
        "made_by = ModelCheck.of(RelBERT.from_pretrained(sys.argv[2], backend='numpy'))\n"
        "index = MilvusIndex.begin(sys.argv[1], made_by, 16)\n"
        "for step in range(1000):\n"
        "    pairs = [(f'a{step}', f'b{row}') for row in range(1000)]\n"
        "    index.append(pairs, [''] * 1000, np.ones((1000, 16)))\n"
        "    print(step, flush=True)\n"
    )
    arguments = [sys.executable, "-c", code, address, str(tiny_folders("mpnet"))]
    writer = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert writer.stdout is not None
    assert writer.stdout.readline() == "0\n"
    time.sleep(0.05)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    with pytest.raises(RelvecError, match=r"holds an index that was not finished; make it with"):
        PairIndex.load(address)
    build_index(model, PAIRS, address)
    assert len(PairIndex.load(address)) == len(PAIRS)
