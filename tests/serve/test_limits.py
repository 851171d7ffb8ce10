"""What a client may not do, and what it is told."""

import http.client
import io
import json
import logging
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from relvec import PairIndex, RelBERT
from relvec.index.pair_index import RERANKED
from relvec.serve.app import Limits
from relvec.serve.limits import MOST_REQUESTS, PART_BYTES, JsonLines
from relvec.serve.models import CANARY

EMBED = {"pairs": ["cup:tea"]}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/embed", {"pairs": ["cup:tea", "cuptea"]}, "pairs.1"),
        ("/embed", {"pairs": [{"head": "cup", "tail": 3}]}, "pairs.0.tail"),
        ("/embed", {"pairs": [{"head": "cup"}]}, "pairs.0.tail"),
        ("/embed", {"pairs": [["cup", " \t"]]}, "pairs.0.tail"),
        ("/embed", {"pairs": [["cup", "\ud800"]]}, "pairs.0.tail"),
        ("/embed", {"pairs": ["cup:" + "long " * 40]}, "pairs.0"),
        ("/embed", {"pairs": []}, "pairs"),
        ("/embed", {"pairs": ["cup:tea"], "pärs": 1}, "pärs"),
        ("/embed", {"pairs": ["cup:tea"], "\ud800": 1}, "body"),
        ("/embed", {"pair": ["cup:tea"]}, "pairs"),
        ("/embed", {"pairs": ["cup:tea"], "model": "../../etc/passwd"}, "model"),
        ("/embed", "no JSON", "body"),
        ("/embed", "[" * 100_000, "body"),
        ("/embed", b"\xff\xfe", "body"),
        ("/embed", "[1]", "body"),
        ("/solve", {"stem": "cup:tea", "choices": ["a:b"], "scoring": "sideways"}, "scoring"),
        ("/neighbours", {"pairs": ["cup:tea"], "top": 0}, "top"),
        ("/complete", {"pair": "cup:tea", "head": ""}, "head"),
        ("/v1/embeddings", {"model": "tiny-mpnet", "input": "cup:tea", "dimensions": 3}, "dimensions"),
        ("/v1/embeddings", {"model": "tiny-mpnet", "input": ["cup:tea", "cup"]}, "input.1"),
    ],
    ids=lambda given: str(given)[:40],
)
def test_a_bad_field_is_named(client: Any, path: str, body: Any, field: str) -> None:
    assert client.ask(path, body).problem == (422, "invalid_field", field)


def test_a_long_word_is_not_repeated_whole(client: Any) -> None:
    refused = client.ask("/embed", {"pairs": [["cup", "long " * 1000]]})
    assert refused.problem == (422, "invalid_field", "pairs.0.tail")
    message = "pairs.0.tail is 'long long long long long long long long ...'; use 200 characters or fewer."
    assert refused.json["error"]["message"] == message


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "text/plain"])
def test_a_body_that_is_not_said_to_be_json_is_told_of_the_header(client: Any, content_type: str) -> None:
    refused = client.ask("/embed", json.dumps(EMBED), headers={"content-type": content_type})
    assert refused.problem == (422, "invalid_field", "body")
    message = "The body is not read as JSON; send the header content-type: application/json."
    assert refused.json["error"]["message"] == message


@pytest.mark.parametrize(
    ("body", "message"),
    [([1], "body is [1]; give an object."), ({"pairs": [1]}, "pairs.0 is 1; give an object.")],
)
def test_what_is_no_object_is_asked_for_as_one(client: Any, body: Any, message: str) -> None:
    assert client.ask("/embed", body).json["error"]["message"] == message


def test_a_request_of_too_many_pairs_is_refused(serving: Any, limits: Limits, model: RelBERT) -> None:
    with serving(model, limits=replace(limits, max_pairs=3)) as client:
        assert client.ask("/embed", {"pairs": ["cup:tea"] * 3}).status == 200
        assert client.ask("/embed", {"pairs": ["cup:tea"] * 4}).problem == (413, "request_too_large", "pairs")
        assert client.ask("/solve", {"stem": "a:b", "choices": ["cup:tea"] * 3}).problem[0] == 413
        assert client.ask("/similarity", {"left": ["a:b"] * 2, "right": ["c:d"] * 2}).problem[0] == 413


def test_a_request_of_too_many_bytes_is_refused_whether_it_says_so_or_not(
    serving: Any, limits: Limits, model: RelBERT
) -> None:
    with serving(model, limits=replace(limits, max_bytes=1000)) as client:
        assert client.ask("/embed", {"pairs": ["cup:tea"] * 200}).problem == (413, "request_too_large", None)
        chunks = iter([b'{"pairs": ["'] + [b"x" * 100] * 50)
        connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=20)
        connection.request("POST", "/embed", chunks, {"content-type": "application/json"}, encode_chunked=True)
        assert connection.getresponse().status == 413
        connection.close()
        assert client.ask("/embed", EMBED).status == 200


def test_a_full_server_says_when_to_come_back_and_stays_ready(
    serving: Any, limits: Limits, watched: Any, wait_until: Callable[[Callable[[], bool]], None]
) -> None:
    with serving(watched.model, limits=replace(limits, queue_pairs=4)) as client, ThreadPoolExecutor(4) as clients:
        watched.may_go_on.clear()
        asked = [clients.submit(client.ask, "/embed", {"pairs": [f"cup:{number}"]}) for number in range(4)]
        wait_until(lambda: client.metric("relvec_requests_in_flight") == 5)
        refused = client.ask("/embed", {"pairs": ["one:more"]})
        assert refused.problem == (429, "too_many_requests", None)
        assert int(refused.headers["retry-after"]) >= 1
        assert client.ask("/ready").status == 200
        watched.may_go_on.set()
        assert [future.result().status for future in asked] == [200] * 4
        assert client.ask("/embed", {"pairs": ["one:more"]}).status == 200


def test_an_empty_server_takes_a_request_that_is_larger_than_its_queue(
    serving: Any, limits: Limits, model: RelBERT
) -> None:
    with serving(model, limits=replace(limits, queue_pairs=1)) as client:
        assert client.ask("/embed", {"pairs": ["cup:tea", "a:b", "c:d"]}).status == 200


def test_so_many_requests_are_under_way_and_no_more(serving: Any, model: RelBERT) -> None:
    with serving(model) as client:
        idle = []
        for _ in range(MOST_REQUESTS):
            each = socket.create_connection(("127.0.0.1", client.port))
            each.sendall(
                b"POST /embed HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n"
            )
            idle.append(each)
        refused = [client.ask("/embed", EMBED).status for _ in range(3)]
        assert refused[-1] == 429
        assert client.ask("/health").status == 200
        for each in idle:
            each.close()
        while client.ask("/embed", EMBED).status == 429:
            time.sleep(0.01)


def test_neighbours_that_are_encoded_again_are_counted(
    serving: Any, model: RelBERT, index: PairIndex, caplog: pytest.LogCaptureFixture
) -> None:
    assert index.is_exact
    assert model.existing_catalogue
    with caplog.at_level(logging.INFO, "relvec.serve"), serving(model, index=index) as client:
        client.ask("/neighbours", {"pairs": ["cup:tea"], "top": 2})
        client.ask("/neighbours", {"pairs": ["cup:tea"], "top": 20})
    logged = [record.__dict__["fields"] for record in caplog.records if "fields" in record.__dict__]
    assert [each["pairs"] for each in logged if each["path"] == "/neighbours"] == [1 + RERANKED, 1 + 40]


def test_a_request_that_takes_too_long_is_given_up(
    serving: Any, limits: Limits, watched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # one worker, which the first request holds
    with serving(watched.model, limits=replace(limits, timeout_seconds=1.0)) as client:
        watched.may_go_on.clear()
        late = client.ask("/embed", EMBED)
        assert late.problem == (503, "unavailable", None)
        assert int(late.headers["retry-after"]) >= 1
        assert client.ask("/solve", {"stem": "a:b", "choices": ["c:d"]}).problem[0] == 503
        assert client.ask("/embed", {"pairs": ["one:more"]}).status == 503  # the thread of /solve ends meanwhile
        watched.may_go_on.set()
        assert client.ask("/embed", {"pairs": ["a:new"]}).status == 200
    assert watched.encoded == [[CANARY], [("cup", "tea")], [("a", "new")]]


def test_a_request_that_arrives_too_slowly_is_given_up(serving: Any, limits: Limits, model: RelBERT) -> None:
    with serving(model, limits=replace(limits, timeout_seconds=1.0)) as client:
        connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=20)
        connection.putrequest("POST", "/embed")
        connection.putheader("content-type", "application/json")
        connection.putheader("content-length", "100")
        connection.endheaders()
        connection.send(b"{")
        assert connection.getresponse().status == 408
        connection.close()


def test_a_client_that_does_not_read_its_answer_is_cut_off(
    serving: Any, limits: Limits, model: RelBERT, wait_until: Callable[[Callable[[], bool]], None]
) -> None:
    asked = json.dumps({"left": [f"cup:{number}" for number in range(900)]}).encode()  # an answer of many megabytes
    head = f"POST /similarity HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(asked)}"
    limits = replace(limits, max_pairs=900, timeout_seconds=3.0)
    with serving(model, limits=limits) as client, socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.settimeout(20)
        deaf.connect(("127.0.0.1", client.port))
        deaf.sendall(head.encode() + b"\r\n\r\n" + asked)
        wait_until(lambda: client.metric('relvec_request_seconds_count{path="/similarity"}') == 1)
        assert client.metric('relvec_request_seconds_sum{path="/similarity"}') >= limits.timeout_seconds
        received = b""
        while part := deaf.recv(1 << 20):
            received += part
        announced = int(received.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        assert len(received) < announced


def test_a_long_answer_arrives_whole(serving: Any, limits: Limits, model: RelBERT) -> None:
    with serving(model, limits=replace(limits, max_pairs=900)) as client:
        found = client.ask("/similarity", {"left": [f"cup:{number}" for number in range(900)]})
        assert len(found.text) == int(found.headers["content-length"]) > 10 * PART_BYTES
        assert len(found.json["similarities"]) == 900


def test_a_key_is_asked_for_where_one_is_set(serving: Any, model: RelBERT) -> None:
    with serving(model, api_key="sesame") as client:
        for given in ({}, {"authorization": "Bearer open"}, {"authorization": "sesame"}):
            refused = client.ask("/embed", EMBED, headers=given)
            assert refused.problem == (401, "wrong_key", None)
            assert refused.headers["www-authenticate"] == "Bearer"
        assert client.ask("/metrics").status == client.ask("/models").status == 401
        assert client.ask("/embed", EMBED, headers={"authorization": "Bearer sesame"}).status == 200
        assert [client.ask(path).status for path in ("/", "/health", "/ready", "/page/style.css")] == [200] * 4
        assert client.ask("/docs").status == 307  # to the page, of which it is a part


def test_pages_of_other_sites_may_ask_only_if_they_are_named(serving: Any, model: RelBERT) -> None:
    origin = {"origin": "https://my.site"}
    with serving(model) as client:
        assert "access-control-allow-origin" not in client.ask("/embed", EMBED, headers=origin).headers
        assert client.ask("/embed", json.dumps(EMBED), headers={"content-type": "text/plain"}).status == 422
    with serving(model, cors_origins=["https://my.site"]) as client:
        assert client.ask("/embed", EMBED, headers=origin).headers["access-control-allow-origin"] == "https://my.site"
        other = client.ask("/embed", EMBED, headers={"origin": "https://other.site"})
        assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize("path", ["/page/../app.py", "/page/%2e%2e/app.py", "/page//etc/passwd", "/page/..%2fapp.py"])
def test_no_file_but_those_of_the_page_is_served(client: Any, path: str) -> None:
    assert client.ask(path).problem == (404, "not_found", None)


@pytest.mark.parametrize("log_words", [False, True])
def test_the_log_is_json_and_has_a_clients_words_only_where_asked(
    serving: Any, watched: Any, log_words: bool, caplog: pytest.LogCaptureFixture
) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("relvec.serve")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with serving(watched.model, log_words=log_words) as client:
            client.ask("/embed?note=secretive", {"pairs": ["secretive:word"]})
            client.ask("/secretive")
            client.ask("/embed", {"pairs": ["secretive:poison"]})  # the model fails at it
    finally:
        logger.removeHandler(handler)
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert {"path": "/embed", "status": 200, "pairs": 1}.items() <= lines[0].items()
    assert any("traceback" in line and line["event"] == "a request failed" for line in lines)
    assert ("secretive" in written.getvalue()) == log_words


def test_a_failure_of_the_server_is_typed_too(serving: Any, watched: Any) -> None:
    with serving(watched.model) as client:
        assert client.ask("/embed", {"pairs": ["a:poison"]}).problem == (500, "server_error", None)
        assert client.ask("/embed", EMBED).status == 200


def test_a_server_that_is_told_to_stop_answers_what_it_has_taken(
    serving: Any, watched: Any, wait_until: Callable[[Callable[[], bool]], None]
) -> None:
    with ThreadPoolExecutor(3) as clients:
        with serving(watched.model) as client:
            watched.may_go_on.clear()
            asked = [clients.submit(client.ask, "/embed", {"pairs": [f"cup:{number}"]}) for number in range(3)]
            wait_until(lambda: client.metric("relvec_requests_in_flight") == 4)
            threading.Timer(0.5, watched.may_go_on.set).start()
        assert [future.result(1).status for future in asked] == [200] * 3
