import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relvec import RelBERT, RelvecError
from relvec.io.vectors import read_pair_file
from relvec.model import cached_vectors
from relvec.model.cached_vectors import embed_to_file
from relvec.storage.cache import cache_info
from relvec.storage.lock import output_lock

PAIRS = [("Paris", "France"), ("Tokyo", "Japan"), ("cup", "tea"), ("Paris", "France"), ("cats", "dogs")]


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_vectors, "PAIRS_PER_STEP", 2)


def test_every_format_holds_the_vectors_in_order(tiny: RelBERT, tmp_path: Path) -> None:
    for ending in (".npz", ".jsonl", ".parquet", ".txt", ".bin"):
        embed_to_file(tiny, PAIRS[1:], tmp_path / f"v{ending}")
        found = read_pair_file(tmp_path / f"v{ending}")
        assert found.pairs == PAIRS[1:]
        np.testing.assert_allclose(found.vectors, tiny.encode(PAIRS[1:]), atol=1e-5)
    assert {path.suffix for path in tmp_path.iterdir()} == {".npz", ".jsonl", ".parquet", ".txt", ".bin"}


def test_vectors_are_normalized_on_the_way_to_the_file(tiny: RelBERT, tmp_path: Path) -> None:
    embed_to_file(tiny, PAIRS, tmp_path / "v.npy", normalize=True)
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), tiny.encode(PAIRS, normalize=True), atol=1e-6)
    assert embed_to_file(tiny, PAIRS, tmp_path / "w.npy") == (0, 4)  # the cache has them as they are
    np.testing.assert_allclose(np.load(tmp_path / "w.npy"), tiny.encode(PAIRS), atol=1e-6)


EMBEDDING = """
import sys
from relvec import RelBERT
from relvec.model import cached_vectors
from relvec.model.cached_vectors import embed_to_file
cached_vectors.PAIRS_PER_STEP = 4
model = RelBERT.from_pretrained(sys.argv[1], backend="numpy")
pairs = [(f"head {number}", f"tail {number}") for number in range(400)]
print(embed_to_file(model, pairs, sys.argv[2]))
"""


def embedding(model: Path, output: Path, cache: Path) -> "subprocess.Popen[str]":
    environment = {**os.environ, "RELVEC_CACHE": str(cache)}
    command = [sys.executable, "-c", EMBEDDING, str(model), str(output)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_a_killed_run_resumes_to_the_same_bytes(tiny_folders: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tiny_folders("bert")
    whole, _ = embedding(folder, tmp_path / "whole.npy", tmp_path / "cache").communicate()
    assert whole.strip() == "Prepared(encoded=400, cached=0)"
    killed = embedding(folder, tmp_path / "v.npy", tmp_path / "other cache")
    while not cache_info(tmp_path / "other cache"):
        time.sleep(0.01)
    killed.kill()
    killed.communicate()
    assert not (tmp_path / "v.npy").exists()
    said, _ = embedding(folder, tmp_path / "v.npy", tmp_path / "other cache").communicate()
    assert int(said.split("=")[-1].rstrip(")\n")) > 0
    assert (tmp_path / "v.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "other cache", "v.npy", "whole.npy"]


def test_a_second_run_of_the_same_output_is_refused(tiny: RelBERT, tmp_path: Path) -> None:
    with (
        output_lock(tmp_path / "v.npy"),
        pytest.raises(RelvecError, match=r"Another run is writing .*v\.npy; wait for it"),
    ):
        embed_to_file(tiny, PAIRS, tmp_path / "v.npy")
    embed_to_file(tiny, PAIRS, tmp_path / "v.npy")
    assert [file.name for file in tmp_path.iterdir()] == ["v.npy"]


def test_a_pair_that_is_too_long_is_named_before_any_work(
    tiny: RelBERT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [*PAIRS, ("word " * 100, "tea")]
    with monkeypatch.context() as patch:
        patch.setattr(tiny, "encode", lambda *_, **__: pytest.fail("encoded in vain"))
        with pytest.raises(RelvecError, match=r"The pair word word .* tokens"):
            embed_to_file(tiny, pairs, tmp_path / "v.npy")
    embed_to_file(tiny, pairs, tmp_path / "v.npy", truncate=True)
    with pytest.raises(RelvecError, match="tokens"):  # although the cache has it now
        embed_to_file(tiny, pairs, tmp_path / "v.npy")


def test_no_more_than_a_few_vectors_are_in_memory(
    tiny: RelBERT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relvec.io.vectors.ROWS_PER_STEP", 2)
    taken: list[int] = []
    read = cached_vectors.CachedRows.__getitem__

    def reading(rows: Any, wanted: Any) -> Any:
        found = read(rows, wanted)
        taken.append(len(found))
        return found

    monkeypatch.setattr(cached_vectors.CachedRows, "__getitem__", reading)
    for name in ("v.jsonl", "v.parquet", "v.txt", "v.bin", "v.npy", "v.npz"):
        embed_to_file(tiny, PAIRS, tmp_path / name)
    assert max(taken) == 2


@pytest.mark.parametrize(
    ("name", "message"), [("v.doc", "end its name in"), ("nowhere/v.npz", "no folder"), ("", "is a folder")]
)
def test_an_impossible_output_is_refused_before_encoding(
    tiny: RelBERT, tmp_path: Path, name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiny, "encode", lambda *_, **__: pytest.fail("encoded in vain"))
    with pytest.raises(RelvecError, match=message):
        embed_to_file(tiny, PAIRS, tmp_path / name)
