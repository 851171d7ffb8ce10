"""Pairs a second through `relvec serve` against `encode` of the same pairs, with many clients at once.

A server is started as users start it. Clients that keep their connections ask `/embed`, each for pairs that nobody
asked for before. Before and after, the same model encodes such pairs in one call, in a process of its own while the
server idles; the ratio is that of the two rates in this run. The same load without batching (`--batching off`) is
measured beside it: a batch is then no larger than a request.

Clients and server share the cores here, and other programs may want them too. So the seconds of the processor that a
pair takes are printed as well: of the server, of the clients, and of `encode`.
"""

import argparse
import asyncio
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from encode import bundled_pairs

from relvec.pairs import Pair

OFFLINE = """
import json, sys, time
from relvec import RelBERT
model = RelBERT.from_pretrained(sys.argv[1], backend=sys.argv[2], workload="serve")
model.encode([("a", "b")] * 8)
print(model.backend, flush=True)
for line in sys.stdin:
    pairs = json.loads(line)
    started = time.perf_counter()
    model.encode(pairs)
    print(len(pairs) / (time.perf_counter() - started), flush=True)
"""


@dataclass
class Load:
    """What came of the requests of all clients."""

    statuses: dict[int, int] = field(default_factory=dict)
    failures: int = 0
    pairs: int = 0
    seconds: float = 0.0
    server_core_seconds: float = 0.0
    client_core_seconds: float = 0.0
    milliseconds: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, object]:
        cut = statistics.quantiles(self.milliseconds, n=100) if len(self.milliseconds) > 1 else [0.0] * 99
        return {
            "pairs_per_second": round(self.pairs / self.seconds, 1),
            "requests": self.statuses,
            "failed_requests": self.failures,
            "p50_milliseconds": round(cut[49]),
            "p99_milliseconds": round(cut[98]),
            "server_core_milliseconds": round(1000 * self.server_core_seconds / max(1, self.pairs), 2),
            "client_core_milliseconds": round(1000 * self.client_core_seconds / max(1, self.pairs), 2),
            "megabytes": self.megabytes,
        }


def new_pairs(seed: int) -> Iterator[Pair]:
    """Pairs of the bundled words, put together anew: each pair once, of the lengths that pairs have."""
    known = bundled_pairs(20_000)
    rng = random.Random(seed)
    heads, tails = [head for head, _ in known], [tail for _, tail in known]
    seen: set[Pair] = set()
    while True:
        pair = rng.choice(heads), rng.choice(tails)
        if pair not in seen:
            seen.add(pair)
            yield pair


@contextmanager
def server(model: str, backend: str, port: int, batch_size: int) -> Iterator[int]:
    """A server on its own, and the number of its process."""
    settings = ["-m", model, "--backend", backend, "--port", str(port), "--batch-size", str(batch_size)]
    command = [sys.executable, "-m", "relvec", "serve", *settings]
    with Path(os.devnull).open("w") as nowhere:
        process = subprocess.Popen(command, stderr=nowhere)
    try:
        asyncio.run(wait_until_ready(port))
        yield process.pid
    finally:
        process.terminate()
        process.wait()


async def wait_until_ready(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        except OSError:
            await asyncio.sleep(0.1)


async def ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, question: dict[str, Any]
) -> tuple[int, int]:
    """One request on an open connection: the status, and the seconds of Retry-After."""
    body = json.dumps(question).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
    headers = dict(line.split(": ", 1) for line in answer[1:] if line)
    await reader.readexactly(int(headers["content-length"]))
    return int(answer[0].split()[1]), int(headers.get("retry-after", 0))


async def client(port: int, pairs: Iterator[Pair], per_request: int, until: float, load: Load) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < until:
        asked = list(itertools.islice(pairs, per_request))
        started = time.perf_counter()
        try:
            status, retry_after = await ask(reader, writer, "/embed", {"pairs": asked})
        except (OSError, asyncio.IncompleteReadError):
            load.failures += 1
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            continue
        load.statuses[status] = load.statuses.get(status, 0) + 1
        if status == 200:
            load.pairs += len(asked)
            load.milliseconds.append(1000 * (time.perf_counter() - started))
        elif status == 429:
            await asyncio.sleep(retry_after)
        else:
            load.failures += 1
    writer.close()


def page_actions(pairs: Sequence[Pair]) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """What the page asks for at once when a reader does something; `pairs` are eleven that were not seen before."""
    pair, *others = pairs
    return {
        "a pair": [("/explain", {"pairs": [pair]}), ("/map", {"pair": pair}), ("/neighbours", {"pairs": [pair]})],
        "an analogy": [("/solve", {"stem": pair, "choices": others[:5]})],
        "a missing word": [("/complete", {"pair": pair, "head": others[0][0]})],
        "several pairs": [("/similarity", {"left": others[:9]})],
        "a table, names": [("/explain", {"pairs": others})],
        "a table, vectors": [("/embed", {"pairs": others})],
    }


async def measure_page(port: int, process: int, times: int) -> dict[str, Any]:
    """Milliseconds until the last answer to each action of one reader, to each request, and of the processor."""
    known, rng, taken = bundled_pairs(20_000), random.Random(4), list[dict[str, float]]()
    for _ in range(times + 1):
        actions = page_actions(rng.sample(known, 11))
        taken.append({})
        for name, questions in actions.items():
            started, cores_before = time.perf_counter(), core_seconds(process)

            async def one(path: str, question: dict[str, Any], of: str, started: float) -> None:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                status, _ = await ask(reader, writer, path, question)
                writer.close()
                assert status == 200, (path, status)
                taken[-1][f"{of}: {path}"] = taken[-1][of] = 1000 * (time.perf_counter() - started)

            await asyncio.gather(*(one(*asked, name, started) for asked in questions))
            taken[-1][f"{name}: of the processor"] = 1000 * (core_seconds(process) - cores_before)
    after_the_first = taken[1:]
    return {
        name: {
            "p50": round(statistics.median(each[name] for each in after_the_first)),
            "most": round(max(each[name] for each in after_the_first)),
        }
        for name in sorted(taken[0])
    }


def core_seconds(process: int) -> float:
    """How much of the processor a process has had, with all its threads."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def memory(process: int, every: float, until: float, load: Load) -> None:
    """What the server holds of the machine's memory, now and then; also on stderr, since a run may be long."""
    started = time.perf_counter()
    while time.perf_counter() < until:
        text = Path(f"/proc/{process}/status").read_text()
        load.megabytes.append(round(int(text.split("VmRSS:")[1].split()[0]) / 1024))
        passed = time.perf_counter() - started
        print(f"{passed:.0f} s: {load.megabytes[-1]:,} MB, {load.pairs:,} pairs", file=sys.stderr, flush=True)
        await asyncio.sleep(every)


async def run_load(port: int, process: int, clients: int, per_request: int, seconds: float, seed: int) -> Load:
    load, pairs = Load(), new_pairs(seed)
    started, server_before, client_before = time.perf_counter(), core_seconds(process), time.process_time()
    until = started + seconds
    asking = [client(port, pairs, per_request, until, load) for _ in range(clients)]
    await asyncio.gather(*asking, memory(process, min(30.0, max(1.0, seconds / 12)), until, load))
    load.seconds = time.perf_counter() - started
    load.server_core_seconds = core_seconds(process) - server_before
    load.client_core_seconds = time.process_time() - client_before
    return load


@contextmanager
def offline(model: str, backend: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that encodes, and the backend that it took, which is the server's."""
    command = [sys.executable, "-c", OFFLINE, model, backend]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def offline_rate(process: subprocess.Popen[str], pairs: list[Pair]) -> tuple[float, float]:
    """Pairs a second, and seconds of the processor."""
    before = core_seconds(process.pid)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(pairs) + "\n")
    process.stdin.flush()
    rate = float(process.stdout.readline())
    return rate, core_seconds(process.pid) - before


def measure(options: argparse.Namespace, *, batching: bool, seconds: float) -> dict[str, object]:
    """The load, in parts, with offline encoding before, between and after: a busy machine is busy for both."""
    loads, rates = [], []
    with (
        offline(options.model, options.backend) as (process, backend),
        server(options.model, options.backend, options.port, 64 if batching else options.pairs) as server_process,
    ):
        fresh = new_pairs(seed=1)
        rates.append(offline_rate(process, list(itertools.islice(fresh, options.offline_pairs))))
        for part in range(options.parts):
            loads.append(
                asyncio.run(
                    run_load(
                        options.port,
                        server_process,
                        options.clients,
                        options.pairs,
                        seconds / options.parts,
                        seed=2 + part,
                    )
                )
            )
            rates.append(offline_rate(process, list(itertools.islice(fresh, options.offline_pairs))))
    whole = Load()
    for load in loads:
        whole.pairs += load.pairs
        whole.seconds += load.seconds
        whole.server_core_seconds += load.server_core_seconds
        whole.client_core_seconds += load.client_core_seconds
        whole.failures += load.failures
        whole.milliseconds += load.milliseconds
        whole.megabytes += load.megabytes
        for status, count in load.statuses.items():
            whole.statuses[status] = whole.statuses.get(status, 0) + count
    rate = statistics.mean(rate for rate, _ in rates)
    core_milliseconds = 1000 * statistics.mean(seconds for _, seconds in rates) / options.offline_pairs
    return {
        "backend": backend,
        "batching": batching,
        **whole.summary(),
        "offline_pairs_per_second": round(rate, 1),
        "offline_core_milliseconds": round(core_milliseconds, 2),
        "ratio": round(whole.pairs / whole.seconds / rate, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="relvec-mpnet")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--clients", type=int, default=200, help="that ask at once")
    parser.add_argument("--pairs", type=int, default=1, help="of a request")
    parser.add_argument("--seconds", type=float, default=60.0, help="of load")
    parser.add_argument("--parts", type=int, default=3, help="of the load, with offline encoding in between")
    parser.add_argument("--offline-pairs", type=int, default=1000, help="encoded offline each time")
    parser.add_argument("--batching", choices=["on", "off", "both"], default="both")
    parser.add_argument("--page", type=int, metavar="TIMES", help="measure what a reader of the page waits for instead")
    parser.add_argument("--port", type=int, default=8765)
    options = parser.parse_args()
    if options.page:
        with server(options.model, options.backend, options.port, 64) as process:
            found = asyncio.run(measure_page(options.port, process, options.page))
        print(json.dumps({"model": options.model, "milliseconds": found}))
        return
    modes = {"on": [True], "off": [False], "both": [True, False]}[options.batching]
    for batching in modes:
        seconds = options.seconds if batching else min(options.seconds, 60.0)
        found = measure(options, batching=batching, seconds=seconds)
        print(
            json.dumps({"model": options.model, "clients": options.clients, "pairs": options.pairs, **found}),
            flush=True,
        )


if __name__ == "__main__":
    main()
