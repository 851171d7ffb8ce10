"""The command as it is run: options by environment, signals, a kill under load."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def running(folder: Path, port: int, *options: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "relvec", "serve", "-m", str(folder), "--backend", "numpy", *options]
    settings = {**os.environ, "RELVEC_PORT": str(port), **environment}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=settings)
    try:
        wait_for_port(port, process)
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def wait_for_port(port: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    pytest.fail("the server did not begin to listen")


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def folder(tiny_folders: Callable[[str], Path]) -> Path:
    return tiny_folders("mpnet")


def embed(port: int, word: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        body = json.dumps({"pairs": [f"cup:{word}"]})
        connection.request("POST", "/embed", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status


class Load:
    """Clients that ask until they are stopped, and what came of it."""

    def __init__(self, port: int, clients: int = 4) -> None:
        self.port, self.statuses, self.refused, self.broken = port, [], 0, 0
        self.is_over = False
        self.threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(clients)]
        for thread in self.threads:
            thread.start()

    statuses: list[int]

    def _ask(self, number: int) -> None:
        count = 0
        while not self.is_over:
            count += 1
            try:
                self.statuses.append(embed(self.port, f"{number} {count}"))
            except ConnectionRefusedError:  # nobody listens: the request was never taken
                self.refused += 1
                time.sleep(0.01)
            except (OSError, http.client.HTTPException):
                self.broken += 1

    def stop(self) -> None:
        self.is_over = True
        for thread in self.threads:
            thread.join()


def test_sigterm_answers_what_was_taken_and_ends_well(folder: Path, port: int) -> None:
    with running(folder, port) as server:
        load = Load(port)
        while len(load.statuses) < 50:
            time.sleep(0.01)
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0
        load.stop()
        assert set(load.statuses) == {200}
        assert load.refused > 0


def test_a_killed_server_starts_again_at_once_under_load(folder: Path, port: int) -> None:
    with running(folder, port) as first:
        load = Load(port)
        while len(load.statuses) < 50:
            time.sleep(0.01)
        first.kill()
        first.wait()
        answered = len(load.statuses)
        with running(folder, port):
            while len(load.statuses) < answered + 50:
                time.sleep(0.01)
            load.stop()
    assert set(load.statuses) == {200}
    assert load.broken <= 2 * len(load.threads)  # under way when it was killed, or knocking just then


def test_every_option_may_come_from_the_environment(folder: Path, port: int, tmp_path: Path) -> None:
    environment = {"RELVEC_MAX_PAIRS": "7", "RELVEC_API_KEY": "sesame", "RELVEC_HOST": "0.0.0.0"}
    with running(folder, port, **environment) as server:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/models", headers={"authorization": "Bearer sesame"})
        assert json.loads(connection.getresponse().read())["max_pairs"] == 7
        connection.close()
        server.send_signal(signal.SIGTERM)
        server.wait(30)
        assert server.stderr is not None
        assert "without a key" not in server.stderr.read()


def test_options_and_variables_go_together() -> None:
    import typer.main

    from relvec.cli.app import make_app

    options = typer.main.get_command(make_app(["serve"])).commands["serve"].params  # type: ignore[attr-defined]
    named = {option.name: option.envvar for option in options if option.name != "help"}
    assert named == {name: f"RELVEC_{name.upper()}" for name in named}
    assert next(option.default for option in options if option.name == "host") == "127.0.0.1"


def test_listening_to_all_without_a_key_is_warned_of(folder: Path, port: int) -> None:
    with running(folder, port, "--host", "0.0.0.0") as server:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
        assert server.stderr is not None
        lines = [json.loads(line) for line in server.stderr]
    warning = next(line["event"] for line in lines if line["level"] == "warning")
    assert warning.startswith("listening beyond this machine")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--port", "{taken}"], "cannot be used; choose another by --port"),
        (["-m", "{folder}"], "Two of the models have the same name"),
        (["--index", "{folder}"], "is not an index folder"),
        (["--timeout", "0"], "Invalid value for '--timeout'"),
    ],
)
def test_a_bad_start_is_one_line(folder: Path, options: list[str], said: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        given = [option.format(taken=taken.getsockname()[1], folder=folder) for option in options]
        command = [sys.executable, "-m", "relvec", "serve", "-m", str(folder), "--backend", "numpy", *given]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    last = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(last) == 1
    assert said in last[0]
