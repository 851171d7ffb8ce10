import json
import multiprocessing
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relvec import RelBERT, RelvecError
from relvec.index import PairIndex, build_index, storage
from relvec.index.storage import read_meta

PAIRS = [("Paris", "France"), ("Tokyo", "Japan"), ("cup", "tea"), ("cats", "dogs")]


@pytest.fixture
def folder(tiny: RelBERT, tmp_path: Path) -> Path:
    PairIndex.of(tiny, PAIRS, relations=["capital", "capital", "", ""]).save(tmp_path / "my.index")
    return tmp_path / "my.index"


def test_a_saved_index_comes_back(tiny: RelBERT, folder: Path) -> None:
    index = PairIndex.load(folder)
    assert (index.pairs.pairs(), index.made_by.fingerprint, index.made_by.model) == (PAIRS, tiny.fingerprint, tiny.name)
    assert [found.relation for found in index.neighbours(tiny, ("cup", "tea"), 3)].count("capital") == 2
    assert sorted(file.name for file in folder.iterdir()) == ["meta.json", "pairs-1.npz", "vectors-1.faiss"]


def test_reading_leaves_no_trace(tiny: RelBERT, folder: Path) -> None:
    before = {file.name: file.stat().st_mtime_ns for file in (folder, *folder.iterdir())}
    PairIndex.load(folder).neighbours(tiny, ("cup", "tea"), 3)
    assert {file.name: file.stat().st_mtime_ns for file in (folder, *folder.iterdir())} == before


def test_a_reader_of_the_old_version_goes_on_while_a_writer_replaces_it(tiny: RelBERT, folder: Path) -> None:
    old = PairIndex.load(folder)
    before = old.neighbours(tiny, ("wine", "bread"))
    with PairIndex.editing(folder) as index:
        index.remove(PAIRS[:2])
    assert old.neighbours(tiny, ("wine", "bread")) == before
    assert len(PairIndex.load(folder)) == 2
    assert len(list(folder.glob("vectors-*"))) == 1


def test_readers_never_meet_half_a_version(tiny: RelBERT, folder: Path) -> None:
    stop = threading.Event()
    problems: list[Exception] = []
    seen: set[int] = set()

    def read() -> None:
        while not stop.is_set():
            try:
                index = PairIndex.load(folder)
                seen.add(len(index))
                assert len(index.candidates(tiny_vector, 100)) == len(index)
            except Exception as error:
                problems.append(error)

    tiny_vector = tiny.encode(("wine", "bread"))
    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(20):
        with PairIndex.editing(folder) as index:
            index.add(tiny, [("word", f"number {number}")])
    stop.set()
    for reader in readers:
        reader.join()
    assert problems == []
    assert seen <= set(range(4, 25))


def _remove(folder: Path, pair: tuple[str, str]) -> None:
    with PairIndex.editing(folder) as index:
        index.remove([pair])


def test_two_writers_take_turns(folder: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_remove, args=(folder, pair)) for pair in PAIRS[:3]]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert PairIndex.load(folder).pairs.pairs() == PAIRS[3:]
    assert read_meta(folder).version == 4


def test_a_writer_that_dies_leaves_the_old_version(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    index = PairIndex.load(folder, writable=True)
    index.remove(PAIRS[:1])
    with monkeypatch.context() as patch:
        patch.setattr("relvec.index.vocabulary.PairVocabulary.write", dies)
        with pytest.raises(KeyboardInterrupt):
            index.save(folder)
    assert (folder / "vectors-2.faiss").exists()  # a kill leaves it; nobody reads it
    assert PairIndex.load(folder).pairs.pairs() == PAIRS
    with PairIndex.editing(folder) as index:
        index.remove(PAIRS[:1])
    assert len(list(folder.glob("vectors-*"))) == 1
    assert len(PairIndex.load(folder)) == 3


def test_what_is_no_index_is_named(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "nowhere", folder / "meta.json"):
        with pytest.raises(RelvecError, match="is not an index folder"):
            PairIndex.load(path)
        with pytest.raises(RelvecError, match="is not an index folder"), PairIndex.editing(path):
            pass
    assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.parametrize("wrong", ["", "{", "[]", '{"format": 1}', {"probes": "AAA"}, {"kind": "magic"}, {"format": 9}])
def test_a_broken_meta_file_is_one_sentence(folder: Path, wrong: Any) -> None:
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(wrong if isinstance(wrong, str) else json.dumps({**meta, **wrong}))
    with pytest.raises(RelvecError, match=r"meta\.json cannot be read .*; build the index again") as caught:
        PairIndex.load(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["vectors-1.faiss", "pairs-1.npz"])
def test_a_file_cut_short_is_noticed_before_it_is_mapped(folder: Path, name: str) -> None:
    with pytest.raises(RelvecError, match="belongs to a run with another base"):
        storage.is_finished(folder, "another job")
    (folder / name).write_bytes((folder / name).read_bytes()[:-40])
    with pytest.raises(RelvecError, match=f"{name} is missing or cut short .*; build the index again"):
        PairIndex.load(folder)
    assert not storage.is_finished(folder, "another job")  # so that it can be built again


@pytest.mark.parametrize(
    "names",
    [
        ["thesis.doc"],
        ["meta.json"],
        ["pairs-en.npz"],
        ["vectors-en.faiss"],
        ["pairs-1.npz"],  # what `relvec embed` may have written
        [".pre-commit-config.yaml"],
        [".env"],
        ["locksmith.txt"],
        ["lock", "pairs-en.npz"],
        ["lock", "meta.json"],
    ],
)
def test_a_folder_of_other_things_is_not_written_to(tiny: RelBERT, tmp_path: Path, names: list[str]) -> None:
    content = "work of years" if names == ["meta.json"] else '{"work": "of years"}'
    for name in names:
        (tmp_path / name).write_text(content)
    for save in (PairIndex.of(tiny, PAIRS).save, lambda folder: build_index(tiny, PAIRS, folder)):
        with pytest.raises(RelvecError, match="exists and is not an index"):
            save(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(names)
    assert {file.read_text() for file in tmp_path.iterdir()} == {content}


def test_a_save_keeps_what_others_put_beside_an_index(tiny: RelBERT, folder: Path) -> None:
    names = ["vectors-en.faiss", "pairs-en.npz", ".env-prod.txt", ".pre-commit-config.yaml", "vectors-1.faiss.bak"]
    for name in names:
        (folder / name).write_text("mine")
    PairIndex.of(tiny, PAIRS).save(folder)
    assert {(folder / name).read_text() for name in names} == {"mine"}


@pytest.mark.parametrize("lock", storage.LOCKS)
def test_a_first_save_that_was_killed_can_be_made_again(tiny: RelBERT, tmp_path: Path, lock: str) -> None:
    left = [lock, "vectors-1.faiss", ".pairs-1.npz.relvec_y2z3a.npz", ".meta.json.relvec_abcdefgh.json"]
    for name in left:
        (tmp_path / name).write_text("")
    PairIndex.of(tiny, PAIRS).save(tmp_path)
    kept = sorted(file.name for file in tmp_path.iterdir() if file.name != "lock")
    assert kept == ["meta.json", "pairs-1.npz", "vectors-1.faiss"]


def test_a_save_within_an_editing_block_is_one_sentence(folder: Path) -> None:
    with (
        pytest.raises(RelvecError, match=r"writes .* already; leave out this write\.$"),
        PairIndex.editing(folder) as index,
    ):
        index.save(folder)
    assert read_meta(folder).version == 1


def test_a_full_disk_is_one_sentence_and_leaves_the_old_version(folder: Path, full_disk: Callable[[], Any]) -> None:
    index = PairIndex.load(folder, writable=True)
    index.remove(PAIRS[:1])
    with pytest.raises(RelvecError, match=r"^Cannot write .*; .*free space.*\.$"), full_disk():
        index.save(folder)
    assert PairIndex.load(folder).pairs.pairs() == PAIRS
