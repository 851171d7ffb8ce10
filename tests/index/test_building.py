import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from relvec import RelBERT, RelvecError
from relvec.index import PairIndex, build_index
from relvec.index.storage import writing_index
from relvec.model import cached_vectors

PAIRS = [("Paris", "France"), ("Tokyo", "Japan"), ("cup", "tea"), ("Paris", "France"), ("cats", "dogs"), ("a", "b")]
DISTINCT = list(dict.fromkeys(PAIRS))


class CrashError(Exception):
    pass


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_vectors, "PAIRS_PER_STEP", 2)


def add(model: RelBERT, pairs: Any, folder: str | Path, **options: Any) -> int:
    with PairIndex.editing(folder) as index:
        return index.add(model, pairs, **options)


def crash_after(model: RelBERT, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    original, asked = model.encode, iter(range(steps))

    def encode(pairs: Any, **options: Any) -> Any:
        if next(asked, None) is None:
            raise CrashError
        return original(pairs, **options)

    monkeypatch.setattr(model, "encode", encode)


def test_a_killed_build_resumes_and_equals_one_that_was_not(
    tiny: RelBERT, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash_after(tiny, 1, monkeypatch)
    with pytest.raises(CrashError):
        build_index(tiny, PAIRS, tmp_path / "my.index")
    with pytest.raises(RelvecError, match="is not an index folder"):
        PairIndex.load(tmp_path / "my.index")
    again = RelBERT.from_pretrained(tiny_folder)
    assert build_index(again, PAIRS, tmp_path / "my.index") == (3, 2)
    whole = PairIndex.of(RelBERT.from_pretrained(tiny_folder), PAIRS)
    index = PairIndex.load(tmp_path / "my.index")
    assert index.pairs.pairs() == whole.pairs.pairs() == DISTINCT
    np.testing.assert_allclose(index.vectors(), whole.vectors(), atol=1e-6)
    assert [path.name for path in tmp_path.iterdir()] == ["my.index"]


def test_a_killed_addition_leaves_the_index_and_resumes(
    tiny: RelBERT, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_index(tiny, PAIRS[:1], tmp_path / "my.index", relations=["capital"])
    crash_after(tiny, 1, monkeypatch)
    with pytest.raises(CrashError):
        add(tiny, PAIRS, tmp_path / "my.index")
    assert len(PairIndex.load(tmp_path / "my.index")) == 1
    again = RelBERT.from_pretrained(tiny_folder)
    labels = ["x", "capital", "", "", "", ""]
    assert add(again, PAIRS, tmp_path / "my.index", relations=labels) == 4
    index = PairIndex.load(tmp_path / "my.index")
    assert (index.pairs.pairs(), index.pairs.all_relations()) == (DISTINCT, ["capital", "capital", "", "", ""])
    np.testing.assert_allclose(index.vectors(), PairIndex.of(again, DISTINCT).vectors(), atol=1e-6)
    assert add(again, PAIRS, tmp_path / "my.index") == 0


def test_a_build_replaces_an_index_even_a_broken_one(tiny: RelBERT, tmp_path: Path) -> None:
    for count in (2, 3):
        build_index(tiny, DISTINCT[:count], tmp_path / "my.index")
        assert len(PairIndex.load(tmp_path / "my.index")) == count
        (tmp_path / "my.index" / "meta.json").write_text("{")


def test_the_folder_may_be_the_one_where_the_command_runs(
    tiny: RelBERT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    build_index(tiny, PAIRS, ".")
    assert add(tiny, [("new", "pair")], ".") == 1
    assert len(PairIndex.load(".")) == len(DISTINCT) + 1


@pytest.mark.parametrize(
    ("pairs", "kind", "message"),
    [
        ([], "auto", "no pair to index"),
        (PAIRS, "magic", "Unknown index kind 'magic'"),
        (PAIRS, "rabitq", "^A rabitq index of .* at least 256"),
        (PAIRS, "ivfpq", "^An ivfpq index of .* at least 256"),
        (PAIRS, "int8", "^An int8 index of .* at least 256"),
    ],
)
def test_an_impossible_build_is_refused_before_encoding(
    tiny: RelBERT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairs: Any, kind: str, message: str
) -> None:
    monkeypatch.setattr(tiny, "encode", lambda *_, **__: pytest.fail("encoded in vain"))
    with pytest.raises(RelvecError, match=message):
        build_index(tiny, pairs, tmp_path / "my.index", kind=kind)
    assert not list(tmp_path.iterdir())


def test_a_second_build_is_refused_and_an_addition_waits(tiny: RelBERT, tmp_path: Path) -> None:
    build_index(tiny, PAIRS[:2], tmp_path / "my.index")
    adding = Thread(target=add, args=(tiny, PAIRS, tmp_path / "my.index"))
    with writing_index(tmp_path / "my.index"):
        with pytest.raises(RelvecError, match="Another run is writing"):
            build_index(tiny, PAIRS, tmp_path / "my.index")
        adding.start()
        assert len(PairIndex.load(tmp_path / "my.index")) == 2  # readers do not wait
    adding.join()
    assert len(PairIndex.load(tmp_path / "my.index")) == len(DISTINCT)


def test_a_pair_that_is_too_long_leaves_no_folder(tiny: RelBERT, tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match="tokens"):
        build_index(tiny, [*PAIRS, ("word " * 100, "tea")], tmp_path / "my.index")
    assert not list(tmp_path.iterdir())
    build_index(tiny, [*PAIRS, ("word " * 100, "tea")], tmp_path / "my.index", truncate=True)


BUILDING = """
import os, signal, sys
from relvec import RelBERT
from relvec.index import build_index
from relvec.model import cached_vectors
cached_vectors.PAIRS_PER_STEP = 2
model = RelBERT.from_pretrained(sys.argv[1])
encode, steps = model.encode, iter(range(2))
def encode_or_die(pairs, **options):
    return encode(pairs, **options) if next(steps, None) is not None else os.kill(os.getpid(), signal.SIGKILL)
model.encode = encode_or_die
build_index(model, [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h"), ("i", "j"), ("k", "l")], sys.argv[2])
"""


def test_a_build_that_is_killed_by_the_system_resumes_to_the_same_bytes(tiny_folder: Path, tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", BUILDING, tiny_folder, tmp_path / "my.index"], check=False)
    assert killed.returncode == -signal.SIGKILL
    pairs = [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h"), ("i", "j"), ("k", "l")]
    tiny = RelBERT.from_pretrained(tiny_folder)
    assert build_index(tiny, pairs, tmp_path / "my.index") == (2, 4)
    build_index(tiny, pairs, tmp_path / "whole.index")
    names = ["meta.json", "pairs-1.npz", "vectors-1.faiss"]
    assert sorted(file.name for file in (tmp_path / "my.index").iterdir()) == names
    for name in ("meta.json", "vectors-1.faiss"):
        assert (tmp_path / "my.index" / name).read_bytes() == (tmp_path / "whole.index" / name).read_bytes()


def test_a_dimension_that_is_impossible_is_refused_before_any_pair_is_encoded(
    tiny: RelBERT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash_after(tiny, 0, monkeypatch)
    with pytest.raises(RelvecError, match="cannot be reduced to 100 in a flat index"):
        build_index(tiny, PAIRS, tmp_path / "my.index", shorter=100)
