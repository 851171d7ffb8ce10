import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from relvec import RelBERT, RelvecError
from relvec.model import embed as embedding_file
from relvec.model.embed import embed_to_file

PAIRS = [("Paris", "France"), ("Tokyo", "Japan"), ("cup", "tea"), ("Paris", "France"), ("cats", "dogs")]


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_file, "PAIRS_PER_STEP", 2)


def test_every_format_holds_the_vectors_in_order(tiny: RelBERT, tmp_path: Path) -> None:
    expected = tiny.encode(PAIRS)
    for name in ("v.npz", "v.npy", "v.jsonl", "v.parquet"):
        embed_to_file(tiny, PAIRS, tmp_path / name)
    with np.load(tmp_path / "v.npz", allow_pickle=False) as file:
        np.testing.assert_allclose(file["vectors"], expected, atol=1e-6)
        assert list(zip(file["head"], file["tail"], strict=True)) == PAIRS
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, atol=1e-6)
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    np.testing.assert_allclose([row["vector"] for row in rows], expected, atol=1e-5)
    frame = pd.read_parquet(tmp_path / "v.parquet")
    np.testing.assert_allclose(np.stack(frame["vector"]), expected, atol=1e-6)
    assert list(zip(frame["head"], frame["tail"], strict=True)) == PAIRS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v.jsonl", "v.npy", "v.npz", "v.parquet"]


@pytest.mark.parametrize(
    "pairs",
    [[list(pair) for pair in PAIRS], np.array(PAIRS), pd.DataFrame(PAIRS), (pair for pair in PAIRS)],
    ids=["lists", "array", "frame", "generator"],
)
def test_any_collection_of_pairs_is_embedded(tiny: RelBERT, tmp_path: Path, pairs: Any) -> None:
    embed_to_file(tiny, pairs, tmp_path / "v.npy")
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), tiny.encode(PAIRS), atol=1e-6)


class CrashError(Exception):
    pass


def interrupt_after(model: RelBERT, steps: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make the model fail after some steps; returns the sizes of the steps it was asked for."""
    asked: list[int] = []
    original = model.encode

    def encode(pairs: Any, **options: Any) -> Any:
        if len(asked) == steps:
            raise CrashError
        asked.append(len(pairs))
        return original(pairs, **options)

    monkeypatch.setattr(model, "encode", encode)
    return asked


def test_a_broken_off_run_goes_on_where_it_stopped(
    tiny: RelBERT, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "v.npy"
    interrupt_after(tiny, 1, monkeypatch)
    with pytest.raises(CrashError):
        embed_to_file(tiny, PAIRS, target)
    assert not target.exists()
    with (tmp_path / "v.npy.partial").open("ab") as file:
        file.write(b"half a row")  # the crash came in the middle of a write
    again = RelBERT.from_pretrained(tiny_folder)
    asked = interrupt_after(again, 9, monkeypatch)
    assert embed_to_file(again, PAIRS, target) == 2
    assert asked == [2]
    np.testing.assert_allclose(np.load(target), RelBERT.from_pretrained(tiny_folder).encode(PAIRS), atol=1e-6)


def test_another_jobs_leftovers_are_neither_used_nor_lost(
    tiny: RelBERT, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_after(tiny, 1, monkeypatch)
    with pytest.raises(CrashError):
        embed_to_file(tiny, PAIRS, tmp_path / "v.npy")
    other = RelBERT.from_pretrained(tiny_folder, pooling="mask")
    with pytest.raises(RelvecError, match=r"v\.npy\.partial holds the vectors of another job .*; .*remove the file"):
        embed_to_file(other, PAIRS, tmp_path / "v.npy")
    assert embed_to_file(RelBERT.from_pretrained(tiny_folder), PAIRS, tmp_path / "v.npy") == 2
    assert [file.name for file in tmp_path.iterdir()] == ["v.npy"]


def test_another_job_that_finished_nothing_is_not_in_the_way(
    tiny: RelBERT, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_after(tiny, 0, monkeypatch)
    with pytest.raises(CrashError):
        embed_to_file(tiny, PAIRS, tmp_path / "v.npy")
    assert embed_to_file(RelBERT.from_pretrained(tiny_folder), PAIRS[:3], tmp_path / "v.npy") == 0
    (tmp_path / "v.npy.partial").write_bytes(b"")  # a kill came before anything was written
    assert embed_to_file(RelBERT.from_pretrained(tiny_folder), PAIRS, tmp_path / "v.npy") == 0


def test_a_file_of_the_users_is_not_taken_for_a_leftover(tiny: RelBERT, tmp_path: Path) -> None:
    (tmp_path / "v.npz.partial").write_text("my own file")
    with pytest.raises(RelvecError, match=r"v\.npz\.partial is no unfinished work of relvec; move it"):
        embed_to_file(tiny, PAIRS, tmp_path / "v.npz")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("v.npz.partial", "my own file")]


def test_a_second_run_of_the_same_output_is_refused(
    tiny: RelBERT, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, original = tiny.encode(PAIRS), tiny.encode
    second = RelBERT.from_pretrained(tiny_folder)
    refused: list[str] = []

    def run() -> None:
        with pytest.raises(RelvecError) as caught:
            embed_to_file(second, PAIRS, tmp_path / "v.npy")
        refused.append(str(caught.value))

    def encode(pairs: Any, **options: Any) -> Any:
        run()  # in this thread and in another
        other = threading.Thread(target=run)
        other.start()
        other.join()
        return original(pairs, **options)

    monkeypatch.setattr(tiny, "encode", encode)
    assert embed_to_file(tiny, PAIRS, tmp_path / "v.npy") == 0
    assert len(refused) == 4
    assert set(refused) == {f"Another run is writing {tmp_path / 'v.npy'}; wait for it or choose another output."}
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, atol=1e-6)
    assert [file.name for file in tmp_path.iterdir()] == ["v.npy"]


def test_a_killed_runs_lock_keeps_nobody_out(tiny: RelBERT, tmp_path: Path) -> None:
    (tmp_path / ".v.npy.partial.lock").touch()
    embed_to_file(tiny, PAIRS, tmp_path / "v.npy")
    assert [file.name for file in tmp_path.iterdir()] == ["v.npy"]


def test_an_impossible_batch_leaves_nothing(tiny: RelBERT, tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match="A batch of 0 pairs is impossible"):
        embed_to_file(tiny, PAIRS, tmp_path / "v.npy", batch_size=0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["v.doc", "v", "nowhere/v.npz", ""])
def test_an_impossible_output_is_refused_before_encoding(
    tiny: RelBERT, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiny, "encode", lambda *_, **__: pytest.fail("encoded in vain"))
    with pytest.raises(RelvecError):
        embed_to_file(tiny, PAIRS, tmp_path / name)
