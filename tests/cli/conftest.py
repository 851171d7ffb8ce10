"""Running the command inside the test process."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from relvec.cli.app import main


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RELVEC_DATA", raising=False)


@dataclass
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def relvec(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run `relvec` with some arguments; give its exit code and what it printed."""

    def run(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["relvec", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return Outcome(int(stop.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def refused(relvec: Callable[..., Outcome]) -> Callable[..., str]:
    """Run `relvec` with what cannot be done; give the one line that it says, with exit code 2."""

    def run(*arguments: str | Path) -> str:
        result = relvec(*arguments)
        assert (result.code, result.out, len(result.err.strip().splitlines())) == (2, "", 1), result
        return result.err

    return run
