import socket
import time

import pytest

from relvec.hub import network


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    network.hub_answers.cache_clear()
    monkeypatch.delenv("RELVEC_OFFLINE")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.mark.parametrize("variable", ["RELVEC_OFFLINE", "HF_HUB_OFFLINE"])
def test_offline_asks_nobody(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "1")
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: pytest.fail("the network was touched"))
    assert network.offline()
    assert not network.hub_answers()


def test_a_hub_that_refuses_is_noticed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{taken.getsockname()[1]}")
        assert not network.hub_answers()


def test_a_silent_hub_costs_no_more_than_the_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "HUB_PATIENCE_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        start = time.monotonic()
        assert not network.hub_answers()
        assert not network.hub_answers()  # remembered, not asked again
        assert time.monotonic() - start < 3
