"""Many files become shards; a job resumes after any kill, and bad rows are told, not fatal."""

import json
import multiprocessing
import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relvec import RelBERT, RelvecError
from relvec.bulk import Summary, embed_files
from relvec.io.addresses import find_files

PAIRS = [("Paris", "France"), ("Tokyo", "Japan"), ("cup", "tea"), ("cats", "dogs")]


@pytest.fixture
def model(tiny_folders: Callable[[str], Path]) -> Path:
    return tiny_folders("mpnet")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """A folder with a parquet file of 60 rows in small row groups and a csv file of 4, each with further columns."""
    folder = tmp_path / "pairs"
    folder.mkdir()
    rows = [PAIRS[at % 4] for at in range(60)]
    table = {"subject": [head for head, _ in rows], "object": [tail for _, tail in rows], "weight": list(range(60))}
    pq.write_table(pa.table(table), folder / "a.parquet", row_group_size=7)
    lines = "".join(f"{head},{tail},r{at}\n" for at, (head, tail) in enumerate(PAIRS))
    (folder / "b.csv").write_text("head,tail,relation\n" + lines)
    return folder


@pytest.fixture
def embed(model: Path, tmp_path: Path) -> Callable[..., Summary]:
    def run(inputs: Any, name: str = "vectors", **options: Any) -> Summary:
        given = {"model": model, "backend": "numpy", "workers": 1, **options}
        return embed_files(inputs, tmp_path / name, **given)

    return run


class Recorder:
    """In place of a progress bar: what it was told."""

    def __init__(self) -> None:
        self.told: list[int] = []
        self.total = 0

    def __call__(self, total: int, *given: Any, initial: int = 0, **options: Any) -> AbstractContextManager[Any]:
        self.total, self.told = total, [initial]
        return nullcontext(self)

    def update(self, rows: int) -> None:
        self.told.append(rows)


@pytest.fixture
def bar(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    made = Recorder()
    monkeypatch.setattr("relvec.bulk.job.progress_bar", made)
    return made


def tables(folder: Path) -> list[dict[str, list[Any]]]:
    return [pq.read_table(file).to_pydict() for file in sorted(folder.glob("part-*.parquet"))]


def test_shards_hold_every_row_in_order_with_its_columns_and_vector(
    embed: Callable[..., Summary], pairs: Path, model: Path, tmp_path: Path
) -> None:
    done = embed([pairs], shards=8)
    assert (done.rows, done.shards, done.errors) == (64, 9, 0)
    shards = tables(tmp_path / "vectors")
    rows = [row for shard in shards for row in zip(shard["head"], shard["tail"], strict=True)]
    assert rows == [PAIRS[at % 4] for at in range(60)] + PAIRS
    assert [weight for shard in shards[:-1] for weight in shard["weight"]] == list(range(60))
    assert shards[-1]["relation"] == ["r0", "r1", "r2", "r3"]
    vectors = np.array([vector for shard in shards for vector in shard["vector"]])
    expected = RelBERT.from_pretrained(model, backend="numpy").encode(rows)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_a_pair_is_encoded_once_a_shard(
    embed: Callable[..., Summary], pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert embed(pairs, shards=8).distinct == 9 * 4


def test_progress_is_told_within_a_shard_and_adds_up_to_the_rows(
    embed: Callable[..., Summary], tmp_path: Path, bar: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relvec.bulk.shards.PAIRS_PER_STEP", 2)
    rows = "cup,tea\nParis,France\ncats,dogs\n,nothing\nTokyo,Japan\ncup,tea\n"
    (tmp_path / "pairs.csv").write_text(f"head,tail\n{rows}")
    embed(tmp_path / "pairs.csv")
    assert bar.told == [0, 2, 2, 2]  # two steps of distinct pairs, then the bad row and the repeated one
    assert sum(bar.told) == bar.total == 6


def test_several_workers_give_what_one_gives_also_when_one_is_killed(
    embed: Callable[..., Summary], pairs: Path, tmp_path: Path, bar: Recorder
) -> None:
    embed(pairs, "alone", shards=8)

    def kill_the_first() -> None:
        while not (workers := multiprocessing.active_children()):
            time.sleep(0.01)
        workers[0].kill()

    killer = threading.Thread(target=kill_the_first)
    killer.start()
    done = embed(pairs, "together", shards=8, workers=2)
    killer.join()
    assert done.shards == 9
    assert tables(tmp_path / "together") == tables(tmp_path / "alone")
    assert sum(bar.told) == bar.total == 64


def test_a_job_encodes_only_the_shards_that_are_not_whole(
    embed: Callable[..., Summary], pairs: Path, tmp_path: Path
) -> None:
    embed(pairs, shards=8)
    before = tables(tmp_path / "vectors")
    (tmp_path / "vectors" / "part-00001.parquet").unlink()
    (tmp_path / "vectors" / "part-00002.parquet").write_bytes(b"cut short")
    (tmp_path / "vectors" / ".part-00003.parquet.relvec_left").write_bytes(b"by a kill")
    done = embed(pairs, shards=8)
    assert (done.shards, done.shards_before) == (9, 7)
    assert tables(tmp_path / "vectors") == before
    assert not list((tmp_path / "vectors").glob(".*"))


def test_bad_rows_are_told_with_file_and_row(embed: Callable[..., Summary], tmp_path: Path) -> None:
    long = "tea " * 100
    bad = tmp_path / "bad.tsv"
    bad.write_text(f"head\ttail\ncup\ttea\n\tnothing\nalone\n{long}\tcup\nParis\tFrance\n")
    done = embed(bad)
    told = [json.loads(line) for line in (tmp_path / "vectors" / "errors.jsonl").read_text().splitlines()]
    assert (done.rows, done.errors) == (2, 3)
    assert [(row["file"], row["row"]) for row in told] == [(str(bad), 3), (str(bad), 4), (str(bad), 5)]
    assert "is empty" in told[0]["problem"]
    assert "1 column where 2" in told[1]["problem"]
    assert "tokens where the model takes" in told[2]["problem"]
    assert embed(bad, "cut", truncate=True).rows == 3
    for folder in ("strict", "vectors"):  # also where all else is done
        with pytest.raises(RelvecError, match=r"bad.tsv, row 3: a word of the pair is empty"):
            embed(bad, folder, strict=True)


@pytest.mark.parametrize("truncate", [False, True])
def test_a_row_with_a_special_token_is_told_and_the_others_are_encoded(
    embed: Callable[..., Summary], tmp_path: Path, truncate: bool
) -> None:
    (tmp_path / "bad.csv").write_text("head,tail\n<mask>,tea\ncup,tea\n")
    done = embed(tmp_path / "bad.csv", truncate=truncate)
    (told,) = (json.loads(line) for line in (tmp_path / "vectors" / "errors.jsonl").read_text().splitlines())
    assert (done.rows, done.errors, told["row"]) == (1, 1, 2)
    assert "a special token of this model" in told["problem"]


def test_rows_that_were_mended_are_no_longer_told(embed: Callable[..., Summary], tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("cup,tea\n,France\n")
    assert embed(tmp_path / "pairs.csv").errors == 1
    (tmp_path / "pairs.csv").write_text("cup,tea\nParis,France\n")
    for name in ("manifest.jsonl", "part-00000.parquet"):
        (tmp_path / "vectors" / name).unlink()
    assert embed(tmp_path / "pairs.csv").errors == 0
    assert (tmp_path / "vectors" / "errors.jsonl").read_text() == ""
    assert embed(tmp_path / "pairs.csv", strict=True).rows == 2


def test_files_of_any_filesystem_are_read_and_written_and_known_again(model: Path) -> None:
    import fsspec

    fsspec.filesystem("memory").pipe("/pairs/a.jsonl", b'{"head": "cup", "tail": "tea", "n": 3}\n["Paris", "France"]\n')
    done = embed_files("memory://pairs", "memory://vectors", model=model, backend="numpy", workers=1)
    assert done.rows == 2
    again = embed_files("memory://pairs/*.jsonl", "memory://vectors", model=model, backend="numpy", workers=1)
    assert again.shards_before == 1
    with fsspec.open("memory://vectors/part-00000.parquet") as file:
        assert pq.read_table(file)["n"].to_pylist() == ["3", None]
    fsspec.filesystem("memory").pipe("/pairs/a.jsonl", b'{"head": "cup", "tail": "tee", "n": 3}\n["Paris", "France"]\n')
    with pytest.raises(RelvecError, match="other input or other options"):
        embed_files("memory://pairs", "memory://vectors", model=model, backend="numpy", workers=1)


def test_an_address_of_this_machine_gives_what_its_path_gives(
    embed: Callable[..., Summary], pairs: Path, model: Path, tmp_path: Path
) -> None:
    embed(pairs, shards=8)
    address = f"file://{tmp_path}/remote"
    done = embed_files(f"file://{pairs}", address, model=model, backend="numpy", workers=2, shards=8)
    assert (done.rows, done.shards) == (64, 9)
    assert tables(tmp_path / "remote") == tables(tmp_path / "vectors")


@pytest.mark.parametrize("known_to_pyarrow", [False, True])
def test_an_address_without_its_package_is_pyarrows_or_names_the_package(
    known_to_pyarrow: bool, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(address: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr("fsspec.core.url_to_fs", lacking)
    if known_to_pyarrow:
        assert [Path(file).name for file in find_files([f"file://{pairs}"], "")] == ["a.parquet", "b.csv"]
    else:
        with pytest.raises(
            RelvecError, match=r"^other://x needs a package .*\(Install s3fs to access S3\); install it"
        ):
            find_files(["other://x"], "")


def test_a_folder_of_another_job_or_model_is_refused(
    embed: Callable[..., Summary], pairs: Path, tiny_folders: Callable[[str], Path], tmp_path: Path
) -> None:
    embed(pairs)
    with pytest.raises(RelvecError, match=r"other input or other options; give the same ones"):
        embed(pairs, shards=8)
    with pytest.raises(RelvecError, match=r"vectors holds vectors made by a model other than tiny-bert"):
        embed(pairs, model=tiny_folders("bert"))
    (tmp_path / "vectors" / "manifest.jsonl").write_text("{}\n")
    with pytest.raises(RelvecError, match=r"manifest.jsonl is damaged .*; remove it and the shards beside it"):
        embed(pairs)


def test_an_edited_file_is_other_input_and_a_copied_one_is_not(
    embed: Callable[..., Summary], pairs: Path, tmp_path: Path
) -> None:
    embed(pairs)
    shutil.copytree(pairs, tmp_path / "copied")
    shutil.rmtree(pairs)
    (tmp_path / "copied").rename(pairs)
    assert embed(pairs).shards_before == 2
    lines = (pairs / "b.csv").read_text()
    for table in (lines.replace("cup,tea", "cup,tee"), lines):
        (pairs / "b.csv").write_text(table)
        with nullcontext() if table == lines else pytest.raises(RelvecError, match="other input or other options"):
            embed(pairs)
    rows = pq.read_table(pairs / "a.parquet").to_pydict()
    pq.write_table(pa.table({**rows, "weight": rows["weight"][::-1]}), pairs / "a.parquet", row_group_size=7)
    with pytest.raises(RelvecError, match="other input or other options"):
        embed(pairs)


@pytest.mark.parametrize("output", ["pairs/vectors", "."])
def test_what_lies_in_the_output_is_no_input(embed: Callable[..., Summary], pairs: Path, output: str) -> None:
    embed(pairs, output)
    (pairs.parent / output / "part-00000.parquet").unlink()
    assert (embed(pairs.parent, output).shards_before, embed(pairs, output).rows) == (1, 64)


def test_a_folder_that_holds_the_input_itself_is_no_output(embed: Callable[..., Summary], pairs: Path) -> None:
    with pytest.raises(RelvecError, match=r"pairs lie in the output itself; choose another output"):
        embed(pairs, "pairs")
    assert embed(pairs / "*.csv", "pairs").rows == embed(pairs / "*.csv", "pairs").rows == 4


def test_no_shard_is_written_over_that_no_manifest_knows(embed: Callable[..., Summary], pairs: Path) -> None:
    foreign = pairs / "part-00000.parquet"
    (pairs / "a.parquet").rename(foreign)
    before = foreign.read_bytes()
    own = pairs.parent / "own.csv"
    own.write_text("cup,tea\n")
    with pytest.raises(RelvecError, match=r"holds part-\*.parquet, but no manifest.jsonl .*; choose another output"):
        embed(own, "pairs")
    with pytest.raises(RelvecError, match=r"holds part-\*.parquet, but no manifest.jsonl"):
        embed(foreign, "pairs")
    assert foreign.read_bytes() == before
    assert sorted(file.name for file in pairs.iterdir()) == ["b.csv", "part-00000.parquet"]


def test_no_shard_at_another_address_is_written_over(model: Path, pairs: Path) -> None:
    import fsspec

    content = (pairs / "a.parquet").read_bytes()
    store = fsspec.filesystem("memory")
    store.pipe("/foreign/part-00000.parquet", content)
    for given in (pairs, "memory://foreign/*.parquet"):
        with pytest.raises(RelvecError, match=r"but no manifest\.jsonl"):
            embed_files(given, "memory://foreign", model=model, backend="numpy", workers=1)
    assert store.cat("/foreign/part-00000.parquet") == content


def test_a_job_killed_before_the_manifest_has_its_first_shard_resumes(
    embed: Callable[..., Summary], pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*given: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("relvec.bulk.job.Manifest.add", killed)
        with pytest.raises(KeyboardInterrupt):
            embed(pairs)
    assert len(tables(tmp_path / "vectors")) == 1
    assert embed(pairs).rows == 64


def test_a_job_without_a_shard_may_be_given_up_for_another(embed: Callable[..., Summary], tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("cup,tea\n,France\n")
    with pytest.raises(RelvecError, match="a word of the pair is empty"):
        embed(tmp_path / "pairs.csv", strict=True)
    (tmp_path / "pairs.csv").write_text("cup,tea\nParis,France\n")
    assert embed(tmp_path / "pairs.csv", strict=True).rows == 2


def test_a_name_with_brackets_may_be_that_of_a_file(embed: Callable[..., Summary], tmp_path: Path) -> None:
    for rows, name in enumerate(("p1.csv", "p2.csv", "p[1].csv"), start=1):
        (tmp_path / name).write_text("cup,tea\n" * rows)
    assert embed(tmp_path / "p[1].csv").rows == 3
    assert embed(tmp_path / "p[12].csv", "both").rows == 3


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ("nowhere/*.csv", "There is no file nowhere/"),
        ("hollow", "The folder hollow holds no table; give one"),
        ("what://is/this", "Cannot read what://is/this"),
        ("broken.parquet", "Cannot read broken.parquet"),
        ("empty.csv", "holds no pair"),
        ("bad.csv", "No row of bad.csv is a pair; .*errors.jsonl says why"),
    ],
)
def test_what_is_no_input_is_refused_in_one_sentence(
    embed: Callable[..., Summary], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inputs: str, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    (tmp_path / "hollow").mkdir()
    (tmp_path / "empty.csv").write_text("head,tail\n")
    (tmp_path / "bad.csv").write_text("head,tail\n,\nx,\n")
    with pytest.raises(RelvecError, match=problem):
        embed(inputs)


def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_written(
    embed: Callable[..., Summary],
    pairs: Path,
    tmp_path: Path,
    full_disk: Callable[[], AbstractContextManager[None]],
) -> None:
    with full_disk(), pytest.raises(RelvecError, match=r"Cannot write .*manifest.jsonl: .*free space"):
        embed(pairs)
    assert not list((tmp_path / "vectors").iterdir())
    embed(pairs)
    (tmp_path / "vectors" / "part-00000.parquet").unlink()
    with full_disk(), pytest.raises(RelvecError, match=r"Cannot write .*part-00000.parquet: .*free space"):
        embed(pairs)
    assert len(tables(tmp_path / "vectors")) == 1
    assert not list((tmp_path / "vectors").glob(".*"))
    assert embed(pairs).rows == 64


def test_ray_without_its_extra_is_one_sentence(
    embed: Callable[..., Summary], pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RelvecError, match=r"The Ray runner needs ray; run pip install 'relvec\[ray\]'"):
        embed(pairs, runner="ray")
