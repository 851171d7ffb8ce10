"""The OpenAI-compatible client against a small server on the loopback."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relvec import RelvecError
from relvec.baselines.endpoint import Chat, Completions, Endpoint, connect
from relvec.baselines.few_shot import FewShot
from relvec.data.benchmarks.analogy import Question

KEY = "sk-very-secret"
QUESTION = Question(("lull", "trust"), (("balk", "fortitude"), ("cajole", "compliance")), 1)
Answer = tuple[int, Any]
Reply = Callable[[str, dict[str, Any]], Answer]


class Server(ThreadingHTTPServer):
    """Answers by a function of path and body, and remembers what came."""

    daemon_threads = True

    def __init__(self, reply: Reply) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply = reply
        self.seen: list[tuple[str, dict[str, Any], str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1/"


class Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = 5

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.removeprefix("/v1/")
        self.server.seen.append((path, body, self.headers["Authorization"]))
        status, answer = self.server.reply(path, body)
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        if status in (302, 307):
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Type", "application/json")
        self.send_header("Retry-After-Ms", "1")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Reply], Server]]:
    """Ask for a server with a behaviour; it stops with the test."""
    for name in ("RELVEC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    # Requests to this machine must not go through a proxy, even if the environment names one.
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    servers: list[Server] = []

    def start(reply: Reply) -> Server:
        server = Server(reply)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def echo(path: str, body: dict[str, Any]) -> Answer:
    """A server with likelihoods: a word is a token, `cajole` is likely, the rest costs a nat."""
    if path != "completions":
        return 404, {"error": "no such path"}
    assert body["echo"]
    words = body["prompt"].split()
    listed = [None, *(-0.1 if word == "cajole" else -1.0 for word in words[1:]), -7.0]
    return 200, {"choices": [{"logprobs": {"token_logprobs": listed}}], "usage": {"prompt_tokens": len(words)}}


def chat(answer: str) -> Reply:
    def reply(path: str, body: dict[str, Any]) -> Answer:
        if path != "chat/completions":
            return 404, {"error": "no such path"}
        return 200, {"choices": [{"message": {"content": answer}}]}

    return reply


def endpoint(server: Server, folder: Path, **options: Any) -> Endpoint:
    return Endpoint(server.url, "tiny", cache_folder=folder, timeout_seconds=5, **options)


def test_likelihoods_are_those_of_the_prompt_and_not_of_the_written_token(
    serve: Callable[[Reply], Server], tmp_path: Path
) -> None:
    found = Completions(endpoint(serve(echo), tmp_path)).likelihoods(["a b c d", "e cajole"])
    assert [one.tokens for one in found] == [3, 1]
    assert [one.log_probability for one in found] == pytest.approx([-3.0, -0.1])


def test_without_a_count_of_tokens_the_last_one_is_the_written_one(
    serve: Callable[[Reply], Server], tmp_path: Path
) -> None:
    def reply(path: str, body: dict[str, Any]) -> Answer:
        status, answer = echo(path, body)
        return status, {"choices": answer["choices"]}

    (found,) = Completions(endpoint(serve(reply), tmp_path)).likelihoods(["a b c d"])
    assert found == pytest.approx((-3.0, 3))


def test_a_server_with_likelihoods_answers_few_shot_questions(serve: Callable[[Reply], Server], tmp_path: Path) -> None:
    scorer = connect(endpoint(serve(echo), tmp_path))
    assert isinstance(scorer, Completions)
    (scores,) = FewShot(scorer).scores([QUESTION])
    assert int(np.argmax(scores)) == 1


@pytest.mark.parametrize("ignores_echo", [True, False])
def test_a_server_that_gives_no_likelihoods_is_asked_as_a_chat(
    serve: Callable[[Reply], Server], tmp_path: Path, ignores_echo: bool
) -> None:
    def reply(path: str, body: dict[str, Any]) -> Answer:
        if ignores_echo and path == "completions":
            return 200, {"choices": [{"logprobs": {"token_logprobs": [-2.0]}}], "usage": {"prompt_tokens": 9}}
        return chat("B")(path, body)

    scorer = connect(endpoint(serve(reply), tmp_path))
    assert isinstance(scorer, Chat)
    assert FewShot(scorer).scores([QUESTION])[0].tolist() == [0.0, 1.0]


def test_answers_are_kept_and_not_asked_for_again(serve: Callable[[Reply], Server], tmp_path: Path) -> None:
    server = serve(chat("B"))
    assert Chat(endpoint(server, tmp_path)).answers(["p", "q", "p"]) == ["B", "B", "B"]
    assert len(server.seen) == 2
    assert Chat(endpoint(server, tmp_path)).answers(["q", "p"]) == ["B", "B"]
    assert len(server.seen) == 2


def test_a_busy_server_is_asked_again(serve: Callable[[Reply], Server], tmp_path: Path) -> None:
    states = iter([429, 503, 500, 200])

    def reply(path: str, body: dict[str, Any]) -> Answer:
        return next(states), chat("B")(path, body)[1]

    server = serve(reply)
    assert Chat(endpoint(server, tmp_path, parallel=1)).answers(["p"]) == ["B"]
    assert len(server.seen) == 4


def test_a_server_that_stays_busy_is_given_up(serve: Callable[[Reply], Server], tmp_path: Path) -> None:
    server = serve(lambda path, body: (503, {}))
    with pytest.raises(RelvecError, match=r"gave no answer \(status 503\); see that it runs"):
        Chat(endpoint(server, tmp_path, retries=2)).answers(["p"])
    assert len(server.seen) == 3


def test_what_was_answered_before_a_failure_is_kept(serve: Callable[[Reply], Server], tmp_path: Path) -> None:
    def reply(path: str, body: dict[str, Any]) -> Answer:
        return chat("B")(path, body) if body["messages"][0]["content"] == "p" else (400, {"error": "no"})

    server = serve(reply)
    with pytest.raises(RelvecError, match="status 400"):
        Chat(endpoint(server, tmp_path, parallel=1)).answers(["p", "q"])
    before = len(server.seen)
    assert Chat(endpoint(server, tmp_path)).answers(["p"]) == ["B"]
    assert len(server.seen) == before


def test_the_key_is_sent_but_neither_kept_nor_shown(
    serve: Callable[[Reply], Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "other")
    monkeypatch.setenv("RELVEC_API_KEY", KEY)
    server = serve(lambda path, body: (400, {"error": f"bad key {KEY}?"}))
    with pytest.raises(RelvecError, match=r"status 400 \(.*bad key \*\*\*") as caught:
        Chat(endpoint(server, tmp_path)).answers(["p"])
    assert server.seen[0][2] == f"Bearer {KEY}"
    assert KEY not in str(caught.value)
    server.reply = chat("B")
    Chat(endpoint(server, tmp_path)).answers(["p"])
    assert not any(KEY.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


@pytest.mark.parametrize(
    ("status", "message"),
    [(302, "status 302"), (307, "status 307"), (401, "refused the key; set RELVEC_API_KEY")],
)
def test_a_redirect_is_not_followed_and_a_refused_key_is_named(
    serve: Callable[[Reply], Server], tmp_path: Path, status: int, message: str
) -> None:
    server = serve(lambda path, body: (status, {}))
    with pytest.raises(RelvecError, match=message):
        Chat(endpoint(server, tmp_path)).answers(["p"])
    assert len(server.seen) == 1


@pytest.mark.parametrize("content", [b"<html>", b"[]", b'{"choices": []}'])
def test_what_is_no_answer_of_the_api_is_an_error(
    serve: Callable[[Reply], Server], tmp_path: Path, content: bytes
) -> None:
    with pytest.raises(RelvecError, match="check that it speaks the OpenAI API"):
        Chat(endpoint(serve(lambda path, body: (200, content)), tmp_path)).answers(["p"])


def test_nobody_there_is_an_error(serve: Callable[[Reply], Server], tmp_path: Path) -> None:
    server = serve(echo)
    server.shutdown()
    server.server_close()
    with pytest.raises(RelvecError, match=r"gave no answer \(.*\); see that it runs"):
        Chat(endpoint(server, tmp_path, retries=0)).answers(["p"])


def test_offline_allows_this_machine_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVEC_OFFLINE", "1")
    for url in ("http://localhost:1/v1", "http://127.0.0.1:1/v1", "http://[::1]:1/v1"):
        Endpoint(url, "m", cache_folder=tmp_path)
    for url in ("https://api.example.org/v1", "http://127.0.0.1.example.org/v1", "http://10.0.0.1/v1"):
        with pytest.raises(RelvecError, match="unset RELVEC_OFFLINE"):
            Endpoint(url, "m", cache_folder=tmp_path)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://localhost/v1", "http:///v1", "http://me:pw@localhost/v1"])
def test_what_is_no_address_is_an_error(url: str, tmp_path: Path) -> None:
    with pytest.raises(RelvecError) as caught:
        Endpoint(url, "m", cache_folder=tmp_path)
    assert "pw" not in str(caught.value)
