"""Who encodes the parts: processes of this machine, or actors of a Ray cluster. A new runner is one entry."""

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from typing import Any

from relvec.bulk.manifest import Shard
from relvec.bulk.parts import Part
from relvec.bulk.shards import Done, ReportRows, Task, encode_part
from relvec.errors import RelvecError, errors_as, needed_for
from relvec.model.relation_model import RelBERT

LOST = 3
"""The job stops when this many process pools in a row were killed before they finished a shard."""

SECONDS_TO_ANSWER = 10
SECONDS_TO_TELL = 0.5

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


def encode_locally(task: Task, model: RelBERT, parts: Sequence[Part], report_rows: ReportRows) -> Iterator[Done]:
    """Encode parts in processes with a model and a thread each; one worker is this process with all its threads."""
    workers = min(task.workers or os.cpu_count() or 1, len(parts))
    if workers <= 1:
        yield from (encode_part(task, model, part, report_rows) for part in parts)
        return
    from concurrent.futures.process import BrokenProcessPool

    waiting = {part.number: part for part in parts}
    lost = 0
    while waiting:
        try:
            for done in _in_processes(task, list(waiting.values()), workers, report_rows):
                del waiting[done.shard.part]
                lost = 0
                yield done
        except BrokenProcessPool as error:  # a worker was killed: the parts that are left get new ones
            lost += 1
            if lost == LOST:
                fix = "use fewer --workers if memory is short, and start again"
                raise RelvecError(f"Worker processes were killed {LOST} times in a row; {fix}.") from error


def _in_processes(task: Task, parts: Sequence[Part], workers: int, report_rows: ReportRows) -> Iterator[Done]:
    import multiprocessing
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")
    encoded = context.Value("q", 0)  # rows, by all workers
    reported = finished = 0
    with _one_thread_each():
        pool = ProcessPoolExecutor(workers, context, _start_worker, (task, encoded))
        try:
            waiting = {pool.submit(_encode, part) for part in parts}
            while waiting:
                ready, waiting = wait(waiting, SECONDS_TO_TELL, FIRST_COMPLETED)
                now = encoded.get_obj().value  # without its lock, which a worker that was killed may hold
                report_rows(now - reported)
                reported = now
                for each in ready:
                    done = each.result()
                    finished += done.shard.stop - done.shard.start
                    yield done
        except BrokenProcessPool:
            report_rows(finished - reported)
            # A worker that started while the pool ended the others is left alive: the pool would wait for it for ever.
            for worker in list(pool._processes.values()):
                worker.kill()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that start in this block compute with one thread."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


_of_worker: list[tuple[Task, RelBERT, Any]] = []
"""What a worker process has opened; empty in every other process."""


def _start_worker(task: Task, encoded: Any) -> None:
    import threading

    threading.Thread(target=_end_with_parent, daemon=True).start()
    _of_worker.append((task, task.load(), encoded))


def _end_with_parent() -> None:
    """A driver that is killed cannot end its workers."""
    import multiprocessing
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _encode(part: Part) -> Done:
    task, model, encoded = _of_worker[0]

    def report_rows(rows: int) -> None:
        with encoded.get_lock():
            encoded.value += rows

    return encode_part(task, model, part, report_rows)


def encode_on_ray(task: Task, model: RelBERT, parts: Sequence[Part], report_rows: ReportRows) -> Iterator[Done]:
    """Encode parts by Ray Data: a pool of actors with a model each, on CPUs or, for `cuda`, on GPUs.

    Parts and shards travel through storage that every node reaches; only their names travel through Ray.
    """
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # else each actor comes with a warning on stderr
    with needed_for("The Ray runner"):
        import ray
        import ray.data
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # the progress bar says what there is to say
    on_gpu = (task.device or "").startswith("cuda")
    with redirect_stdout(sys.stderr), _connected(ray, task):  # Ray tells on stdout what it has lost
        there = int(ray.cluster_resources().get("GPU" if on_gpu else "CPU", 0))
        if not there:
            what = "GPU; use --device cpu" if on_gpu else "CPU; add nodes"
            raise RelvecError(f"The Ray cluster has no {what}.")
        workers = min(task.workers or there, there, len(parts))
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        needs: dict[str, Any] = {"num_gpus": 1} if on_gpu else {"num_cpus": 1}
        rows = [{"part": json.dumps(asdict(part))} for part in parts]
        dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            RayWorker,
            fn_constructor_args=(task,),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=workers),
            **needs,
        )
        for row in dataset.iter_rows():
            message = json.loads(row["done"])
            if "problem" in message:
                raise RelvecError(message["problem"])
            done = Done(Shard(**message["shard"]), message["problems"])
            report_rows(done.shard.stop - done.shard.start)
            yield done


class RayWorker:
    """An actor: it loads the model once and encodes one part after the other."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._model = task.load()

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        return {"done": [self._encode_part(Part(**json.loads(part))) for part in batch["part"]]}

    def _encode_part(self, part: Part) -> str:
        try:
            done = encode_part(self._task, self._model, part, lambda rows: None)
            return json.dumps({"shard": done.shard.as_dict(), "problems": done.problems})
        except RelvecError as error:  # as a value: Ray would wrap an exception in a traceback
            return json.dumps({"problem": str(error)})


@contextmanager
def _connected(ray: Any, task: Task) -> Iterator[None]:
    """A cluster at an address, else one of this machine's cores for the time of the job."""
    if ray.is_initialized():
        yield
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if task.ray_address is None:
        options |= {"num_cpus": task.workers, "include_dashboard": False}
    where = f"at {task.ray_address}" if task.ray_address else "on this machine"
    fix = "start it with `ray start --head`, or check the address"
    with errors_as(f"No Ray cluster answers {where}", fix, Exception):
        _check_answers(task.ray_address or "auto")
        ray.init(task.ray_address or "local", **options)  # without an address Ray would take any cluster it finds
    try:
        yield
    finally:
        ray.shutdown()


def _check_answers(address: str) -> None:
    """Ray itself would ask an address that does not answer for minutes."""
    import socket

    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=SECONDS_TO_ANSWER).close()


RUNNERS: dict[str, Callable[[Task, RelBERT, Sequence[Part], ReportRows], Iterator[Done]]] = {
    "local": encode_locally,
    "ray": encode_on_ray,
}
