"""A bulk job on a real Ray cluster of several nodes, which lose workers, nodes and drivers: `make cluster`."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from relvec import RelvecError
from relvec.bulk import embed_files

ray = pytest.importorskip("ray", reason="the extra ray is not installed")

ROWS = 6_000
SHARDS = 60


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So many rows that a cluster has some seconds of work."""
    path = tmp_path_factory.mktemp("input") / "pairs.csv"
    path.write_text("head,tail\n" + "".join(f"cup {at},tea {at % 700}\n" for at in range(ROWS)) + ",nothing\n")
    return path


@pytest.fixture(scope="module")
def alone(tiny_folders: Callable[[str], Path], pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What one local process makes of the pairs, with one thread as an actor has: a batch that is shared differs."""
    folder = tmp_path_factory.mktemp("alone")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OMP_NUM_THREADS", "1")
        embed_files(pairs, folder / "vectors", model=tiny_folders("mpnet"), backend="numpy", shards=SHARDS, workers=1)
    return content(folder / "vectors")


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head without a core, so that all work is done by two nodes of one core each."""
    from ray.cluster_utils import Cluster

    made: Any = Cluster()
    _added(made, num_cpus=0, include_dashboard=False)
    made.workers = [_added(made, num_cpus=1) for _ in range(2)]
    made.wait_for_nodes(timeout=300)
    yield made
    ray.shutdown()
    made.shutdown()


def _added(cluster: Any, **options: Any) -> Any:
    """A new node; Ray gives one 30 seconds to start, which may be too few on a busy machine."""
    for _ in range(5):
        try:
            return cluster.add_node(**options)
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
    raise TimeoutError("no node of Ray starts within 30 seconds here")


def content(folder: Path) -> list[Any]:
    shards = [pq.read_table(file).to_pydict() for file in sorted(folder.glob("part-*.parquet"))]
    return [*shards, (folder / "errors.jsonl").read_text()]


def command(pairs: Path, model: Path, output: Path, address: str) -> list[str]:
    options = ["--backend", "numpy", "--shards", str(SHARDS), "--runner", "ray", "--ray-address", address, "--json"]
    return [sys.executable, "-m", "relvec", "embed", str(pairs), "-o", str(output), "-m", str(model), *options]


def after_shards(folder: Path, count: int, act: Callable[[], None]) -> threading.Thread:
    """Do something once so many shards are there."""

    def watch() -> None:
        while len(list(folder.glob("part-*.parquet"))) < count:
            time.sleep(0.02)
        act()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def kill_a_worker() -> None:
    """The process of an actor that encodes."""
    for entry in Path("/proc").iterdir():
        try:
            title = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if b"ray::" in title and b"RayWorker" in title:
            os.kill(int(entry.name), signal.SIGKILL)
            return
    pytest.fail("no actor is at work")


@pytest.mark.parametrize("fault", ["nothing", "worker", "node"])
def test_the_result_is_that_of_one_process_whatever_is_killed(
    fault: str, cluster: Any, pairs: Path, alone: Any, tiny_folders: Callable[[str], Path], tmp_path: Path
) -> None:
    acts = {"nothing": lambda: None, "worker": kill_a_worker, "node": lambda: cluster.remove_node(cluster.workers[0])}
    watcher = after_shards(tmp_path / "vectors", 5, acts[fault])
    done = embed_files(
        pairs,
        tmp_path / "vectors",
        model=tiny_folders("mpnet"),
        backend="numpy",
        shards=SHARDS,
        runner="ray",
        ray_address=cluster.address,
    )
    watcher.join(timeout=1)
    assert (done.rows, done.errors) == (ROWS, 1)
    assert content(tmp_path / "vectors") == alone


def test_a_killed_driver_is_started_again_and_goes_on(
    cluster: Any, pairs: Path, alone: Any, tiny_folders: Callable[[str], Path], tmp_path: Path
) -> None:
    run = command(pairs, tiny_folders("mpnet"), tmp_path / "vectors", cluster.address)
    driver = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after_shards(tmp_path / "vectors", 5, driver.kill).join()
    driver.wait()
    done = json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
    assert 0 < done["shards_before"] < done["shards"]
    assert content(tmp_path / "vectors") == alone


def test_a_cluster_that_does_not_answer_is_one_sentence(
    pairs: Path, tiny_folders: Callable[[str], Path], tmp_path: Path
) -> None:
    with pytest.raises(RelvecError, match=r"^No Ray cluster answers at 127\.0\.0\.1:1 .*; start it with"):
        embed_files(
            pairs,
            tmp_path / "vectors",
            model=tiny_folders("mpnet"),
            backend="numpy",
            runner="ray",
            ray_address="127.0.0.1:1",
        )
