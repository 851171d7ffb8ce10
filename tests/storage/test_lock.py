import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest

from relvec import RelvecError
from relvec.io.files import atomic_folder, atomic_write
from relvec.storage.lock import output_lock

HOLDING = """
import sys, time
from relvec.storage.lock import output_lock
with output_lock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def held_by_another_process(output: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen([sys.executable, "-c", HOLDING, output], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_writer_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    output = tmp_path / "vectors.npz"
    with held_by_another_process(output) as process:
        with (
            pytest.raises(RelvecError, match=r"Another run is writing .*vectors\.npz; wait for it"),
            output_lock(output),
        ):
            pass
        with output_lock(tmp_path / "other.npz"):
            pass
        process.kill()
    with output_lock(output):
        pass
    assert list(tmp_path.iterdir()) == []


def test_who_waits_comes_after_the_first(tmp_path: Path) -> None:
    order: list[int] = []

    def write(number: int) -> None:
        with output_lock(tmp_path / "index", wait=True):
            order.append(number)
            time.sleep(0.02)
            order.append(number)

    threads = [Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert order[::2] == order[1::2]
    assert sorted(order[::2]) == list(range(6))


KILLED = """
import os, sys
from relvec.io.files import atomic_folder, atomic_write
with atomic_write(sys.argv[1]), atomic_folder(sys.argv[2]):
    os.kill(os.getpid(), 9)
"""


def test_the_next_writer_removes_what_a_killed_one_left_and_nothing_else(tmp_path: Path) -> None:
    file, folder = tmp_path / "v.npz", tmp_path / "model"
    subprocess.run([sys.executable, "-c", KILLED, file, folder], check=False)
    mine = [tmp_path / ".v.npz.backup", tmp_path / "v.npz.partial"]
    for path in mine:
        path.write_text("mine")
    assert len(list(tmp_path.iterdir())) == 4
    with output_lock(file):
        assert len(list(tmp_path.glob(".v.npz.relvec_*"))) == 0
        with atomic_write(file) as partial:
            partial.write_text("whole")
    with output_lock(folder), atomic_folder(folder) as partial:
        (partial / "config.json").write_text("{}")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".v.npz.backup", "model", "v.npz", "v.npz.partial"]
