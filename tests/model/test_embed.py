import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from relvec import PairIndex, RelBERT, RelvecError
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


def test_columns_of_a_frame_keep_to_their_rows_in_every_format(tiny: RelBERT, tmp_path: Path) -> None:
    frame = pd.DataFrame({"head": list("abc"), "tail": list("xyz"), "id": [1, 2, 3], "note": ["p", None, "q"]})
    frame = frame.sort_values("head", ascending=False)
    columns = {"id": frame["id"], "note": frame["note"]}
    for name in ("v.jsonl", "v.parquet", "v.npz"):
        embed_to_file(tiny, frame, tmp_path / name, columns=columns)
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert [(row["head"], row["id"], row["note"]) for row in rows] == [("c", 3, "q"), ("b", 2, ""), ("a", 1, "p")]
    table = pd.read_parquet(tmp_path / "v.parquet")
    assert list(zip(table["head"], table["id"], strict=True)) == [("c", 3), ("b", 2), ("a", 1)]
    with np.load(tmp_path / "v.npz") as file:
        assert file["id"].tolist() == [3, 2, 1]
    with pytest.raises(RelvecError, match="The column id has 2 values for 3 pairs; give one for each"):
        embed_to_file(tiny, frame, tmp_path / "w.npz", columns={"id": [1, 2]})


def test_a_tilde_is_the_home_folder_wherever_something_is_written(
    tiny: RelBERT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    embed_to_file(tiny, PAIRS, "~/v.npz")
    PairIndex.of(tiny, PAIRS).save("~/my.index")
    assert len(PairIndex.load("~/my.index")) == 4
    tiny.save_pretrained("~/model")
    assert not (tmp_path / "~").exists()
    assert {path.name for path in (tmp_path / "home").iterdir()} >= {"v.npz", "my.index", "model"}


@pytest.mark.parametrize("backend", ["torch", "numpy"])
def test_every_backend_says_where_it_computes_and_how_much_it_takes(
    tiny_folders: Callable[[str], Path], backend: str
) -> None:
    model = RelBERT.from_pretrained(tiny_folders("bert"), backend=backend)
    assert (str(model.device), model.max_tokens is not None) == ("cpu", True)
