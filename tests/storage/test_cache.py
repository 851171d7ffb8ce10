import random
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from relvec import RelvecError
from relvec.storage.cache import FILE_NAME, Cache, cache_info, clear_cache

ITEMS = {"Paris\tFrance": b"1", "東京\t日本": b"", 'a\u2028b\tc"\\d\n': bytes(range(256))}


def test_another_instance_finds_what_was_added(tmp_path: Path) -> None:
    Cache("one", folder=tmp_path).add(ITEMS)
    other = Cache("one", folder=tmp_path)
    assert other.get([*ITEMS, *ITEMS, "unknown"]) == ITEMS
    assert other.missing(["new", *ITEMS, "new", "newer"]) == ["new", "newer"]
    assert other.get([]) == {}


def test_spaces_do_not_share_keys(tmp_path: Path) -> None:
    Cache("one", folder=tmp_path).add(ITEMS)
    other = Cache("two", folder=tmp_path)
    assert other.missing(ITEMS) == list(ITEMS)
    other.add({"Paris\tFrance": b"2"})
    assert Cache("one", folder=tmp_path).get(ITEMS) == ITEMS


def test_a_key_that_is_added_again_has_the_new_value(tmp_path: Path) -> None:
    cache = Cache("one", folder=tmp_path)
    cache.add({"key": b"old"})
    cache.add({"key": b"new"})
    assert cache.get(["key"]) == {"key": b"new"}
    assert [space.entries for space in cache_info(tmp_path)] == [1]
    cache.remove(["key", "unknown"])
    assert cache.missing(["key"]) == ["key"]


def test_json_values_come_back(tmp_path: Path) -> None:
    cache = Cache("one", folder=tmp_path)
    cache.add_json({"a": [-3.5, 4], "b": {"é": None}})
    assert cache.get_json(["b", "a"]) == {"a": [-3.5, 4], "b": {"é": None}}


def test_a_damaged_value_and_one_that_changed_places_are_missing(tmp_path: Path) -> None:
    cache = Cache("one", folder=tmp_path)
    cache.add({"bad": b"value", "good": b"value", "moved": b"value"})
    with sqlite3.connect(tmp_path / FILE_NAME) as database:
        database.execute("UPDATE entries SET value = ? WHERE key = 'bad'", (b"valve",))
        database.execute("UPDATE entries SET key = 'other' WHERE key = 'moved'")
    database.close()
    assert cache.get(["bad", "good", "other"]) == {"good": b"value"}
    assert cache.missing(["bad", "good", "other"]) == ["bad", "other"]


def test_many_keys_at_once(tmp_path: Path) -> None:
    cache = Cache("one", folder=tmp_path)
    items = {f"key {number}": str(number).encode() for number in range(20_000)}
    cache.add(dict(list(items.items())[::2]))
    assert cache.missing(items) == list(items)[1::2]
    assert len(cache.get(items)) == 10_000


ADDING = """
import sys
from relvec.storage.cache import Cache
folder, first = sys.argv[1], int(sys.argv[2])
cache = Cache("one", folder=folder)
for number in range(first, first + 100):
    cache.add({f"key {number}": str(number).encode()})
    cache.get([f"key {number - 7}"])
"""


def test_processes_and_threads_add_at_the_same_time(tmp_path: Path) -> None:
    workers = [subprocess.Popen([sys.executable, "-c", ADDING, tmp_path, str(50 * number)]) for number in range(4)]

    def add(first: int) -> None:
        for number in range(first, first + 50):
            Cache("one", folder=tmp_path).add({f"key {number}": str(number).encode()})

    threads = [Thread(target=add, args=(first,)) for first in (225, 260)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [worker.wait() for worker in workers] == [0] * 4
    found = Cache("one", folder=tmp_path).get(f"key {number}" for number in range(400))
    assert found == {f"key {number}": str(number).encode() for number in range(310)}


def test_a_killed_writer_leaves_a_sound_cache(tmp_path: Path) -> None:
    code = (
        "import os, sys; from relvec.storage.cache import Cache\n"
        "cache = Cache('one', folder=sys.argv[1])\n"
        "cache.add({'a': b'1'})\n"
        "class Rows(dict):\n"
        "    def items(self):\n"
        "        yield 'b', b'2'\n"
        "        os.kill(os.getpid(), 9)\n"
        "cache.add(Rows())\n"
    )
    assert subprocess.run([sys.executable, "-c", code, tmp_path], check=False).returncode == -9
    assert Cache("one", folder=tmp_path).get(["a", "b"]) == {"a": b"1"}


@pytest.mark.parametrize("damage", [b"no database at all" * 100, b""])
def test_a_damaged_file_is_one_sentence(tmp_path: Path, damage: bytes) -> None:
    Cache("one", folder=tmp_path).add({str(number): bytes(1000) for number in range(1000)})
    path = tmp_path / FILE_NAME
    content = path.read_bytes()
    path.write_bytes(damage or content[: len(content) // 2])
    with pytest.raises(RelvecError, match=r"The cache .*cache\.sqlite is damaged .*; remove the file"):
        Cache("one", folder=tmp_path).get(map(str, range(1000)))


def test_whatever_bytes_change_no_value_is_wrong(tmp_path: Path) -> None:
    items = {f"head {number}\ttail": random.Random(number).randbytes(300) for number in range(100)}
    Cache("one", folder=tmp_path).add(items)
    content = (tmp_path / FILE_NAME).read_bytes()
    for seed in range(60):
        chance = random.Random(seed)
        start = chance.randrange(len(content))
        damaged = content[:start] + chance.randbytes(chance.choice([1, 8, 4000]))
        (tmp_path / FILE_NAME).write_bytes(damaged + content[len(damaged) :])
        with suppress(RelvecError):
            assert Cache("one", folder=tmp_path).get(items).items() <= items.items()


def test_a_cache_that_was_removed_is_made_anew_whatever_a_killed_process_left_beside_it(tmp_path: Path) -> None:
    code = (
        "import os, sqlite3, sys; from relvec.storage.cache import Cache\n"
        "Cache('one', folder=sys.argv[1]).add({'a': b'1'})\n"
        "connection = sqlite3.connect(sys.argv[1] + '/cache.sqlite')\n"
        "connection.execute('DELETE FROM entries')\n"
        "connection.commit()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=False)
    assert (tmp_path / f"{FILE_NAME}-wal").exists()
    (tmp_path / FILE_NAME).unlink()
    cache = Cache("two", folder=tmp_path)
    assert cache.get(["a"]) == {}
    cache.add({"a": b"2"})
    assert cache_info(tmp_path) == [("two", "", 1, 1)]


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    cache = Cache("one", folder=tmp_path)
    code = (
        "import resource, signal, sys; from relvec.errors import RelvecError; from relvec.storage.cache import Cache\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try:\n"
        "    Cache('one', folder=sys.argv[1]).add({'a': bytes(1_000_000)})\n"
        "except RelvecError as error:\n"
        "    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True).stdout
    assert said.startswith("Cannot use the cache")
    assert said.endswith("free space there, or set RELVEC_CACHE.\n")
    assert cache.get(["a"]) == {}
    cache.add({"a": b"1"})
    assert cache.get(["a"]) == {"a": b"1"}


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RelvecError, match=r"Cannot write .*; choose another place"):
        Cache("one", folder=tmp_path / "file")


def test_info_tells_what_the_spaces_hold_and_clearing_frees_the_disk(tmp_path: Path) -> None:
    Cache("one", about="tiny", folder=tmp_path).add({"a": bytes(100_000)})
    Cache("two", folder=tmp_path).add({"a": bytes(200_000), "b": b""})
    assert cache_info(tmp_path) == [("two", "", 2, 200_000), ("one", "tiny", 1, 100_000)]
    before = (tmp_path / FILE_NAME).stat().st_size
    clear_cache(tmp_path)
    assert cache_info(tmp_path) == []
    assert (tmp_path / FILE_NAME).stat().st_size < before - 250_000
