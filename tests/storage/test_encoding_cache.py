import subprocess
import sys
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from relvec import RelvecError
from relvec.pairs import Pair
from relvec.similarity import Vectors
from relvec.storage.encoding_cache import EncodingCache

DIM = 3
PAIRS: list[Pair] = [("Paris", "France"), ("東京", "日本"), ("a\u2028b", 'c"\\d')]


def vectors_of(pairs: list[Pair]) -> Vectors:
    return np.array([[len(head), len(tail), hash_of(head + tail)] for head, tail in pairs], dtype=np.float32)


def hash_of(text: str) -> int:
    return sum(map(ord, text)) % 1000


def open_cache(folder: Path, fingerprint: str = "one model") -> EncodingCache:
    return EncodingCache(fingerprint, DIM, folder)


def test_another_instance_finds_the_rows(tmp_path: Path) -> None:
    first = open_cache(tmp_path)
    assert first.missing([*PAIRS, PAIRS[0]]) == PAIRS
    first.add(PAIRS, vectors_of(PAIRS))
    second = open_cache(tmp_path)
    assert second.missing(PAIRS) == []
    asked = [PAIRS[2], PAIRS[0], PAIRS[2]]
    np.testing.assert_array_equal(second.get(asked), vectors_of(asked))


def test_another_process_finds_the_rows(tmp_path: Path) -> None:
    open_cache(tmp_path).add(PAIRS, vectors_of(PAIRS))
    code = (
        "import sys; from relvec.storage.encoding_cache import EncodingCache\n"
        "print(EncodingCache('one model', 3, sys.argv[1]).get([('Paris', 'France')]).tolist())"
    )
    found = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(vectors_of(PAIRS[:1]).tolist())


def test_no_pairs_give_no_rows(tmp_path: Path) -> None:
    assert open_cache(tmp_path).get([]).shape == (0, DIM)


def test_what_a_kill_left_half_written_is_computed_again(tmp_path: Path) -> None:
    open_cache(tmp_path).add(PAIRS, vectors_of(PAIRS))
    (folder,) = tmp_path.iterdir()
    lines, rows = folder / "pairs.jsonl", folder / "vectors.f32"
    lines.write_bytes(lines.read_bytes()[:-3])  # the last line has no end
    rows.write_bytes(rows.read_bytes() + b"rest of a row")
    cache = open_cache(tmp_path)
    assert cache.missing(PAIRS) == [PAIRS[2]]
    more = [PAIRS[2], ("cup", "tea")]
    cache.add(more, vectors_of(more))
    everything = [*PAIRS, more[1]]
    for each in (cache, open_cache(tmp_path)):
        np.testing.assert_array_equal(each.get(everything), vectors_of(everything))


def test_rows_without_a_line_do_not_count(tmp_path: Path) -> None:
    open_cache(tmp_path).add(PAIRS[:1], vectors_of(PAIRS[:1]))
    (folder,) = tmp_path.iterdir()
    rows = folder / "vectors.f32"
    rows.write_bytes(rows.read_bytes() + np.full(DIM, 7, dtype=np.float32).tobytes())
    cache = open_cache(tmp_path)
    cache.add(PAIRS[1:], vectors_of(PAIRS[1:]))
    np.testing.assert_array_equal(cache.get(PAIRS), vectors_of(PAIRS))


def test_two_models_do_not_share_rows(tmp_path: Path) -> None:
    open_cache(tmp_path, "one model").add(PAIRS, vectors_of(PAIRS))
    assert open_cache(tmp_path, "other model").missing(PAIRS) == PAIRS


def test_a_pair_that_is_added_twice_has_one_row(tmp_path: Path) -> None:
    cache = open_cache(tmp_path)
    twice = [PAIRS[0], PAIRS[0], PAIRS[1]]
    cache.add(twice, vectors_of(twice))
    cache.add(PAIRS, vectors_of(PAIRS))
    for each in (cache, open_cache(tmp_path)):
        np.testing.assert_array_equal(each.get(PAIRS), vectors_of(PAIRS))


def test_adders_at_the_same_time_leave_every_row_in_its_place(tmp_path: Path) -> None:
    pairs = [(f"head{number}", f"tail{number % 7}") for number in range(60)]

    def add(share: list[Pair]) -> None:
        cache = open_cache(tmp_path)
        for start in range(0, len(share), 4):
            cache.add(share[start : start + 4], vectors_of(share[start : start + 4]))

    shares = [pairs[:40], pairs[20:], pairs[::-1]]  # some pairs come from several
    threads = [Thread(target=add, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cache = open_cache(tmp_path)
    np.testing.assert_array_equal(cache.get(pairs), vectors_of(pairs))
    (folder,) = tmp_path.iterdir()
    assert (folder / "vectors.f32").stat().st_size == len(pairs) * DIM * 4


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RelvecError, match=r"Cannot make .*; choose another cache folder"):
        open_cache(tmp_path / "file")


@pytest.mark.parametrize("damage", ["nonsense", "short", "gone"])
def test_a_damaged_cache_says_what_to_remove(tmp_path: Path, damage: str) -> None:
    open_cache(tmp_path).add(PAIRS, vectors_of(PAIRS))
    (folder,) = tmp_path.iterdir()
    if damage == "nonsense":
        (folder / "pairs.jsonl").write_text("nonsense\n")
    elif damage == "short":
        (folder / "vectors.f32").write_bytes(b"1234")
    else:
        (folder / "vectors.f32").unlink()
    with pytest.raises(RelvecError, match=f"; remove the folder {folder}"):
        open_cache(tmp_path)
