"""`relvec report` as users run it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner, Result

from relvec.cli.report import report

Save = Callable[..., None]


def run(*arguments: str | Path) -> Result:
    app = typer.Typer()
    app.command()(report)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_main_tables_are_printed_and_files_are_told_on_stderr(
    runs: Path, save_analogy: Save, save_classification: Save, tmp_path: Path
) -> None:
    save_analogy("a", "google", 0.5)
    save_classification("a", "root09", 0.9)
    result = run("--runs", runs, "--output", tmp_path / "out", "--no-figures")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "a\t-\t-\t-\t-\t50.0\t-\t-\tmeasured" in lines
    assert any(line.startswith("RelBERT, manual prompt\t69.5") and line.endswith("published") for line in lines)
    assert "System\tBLESS\tCogALexV\tEVALution\tK&H+N\tROOT09\tmean\tsource" in lines
    assert result.stderr.strip() == f"5 tables -> {tmp_path / 'out' / 'results.md'}"
    assert list((tmp_path / "out/results").glob("*.svg")) == []


def test_json_holds_every_table(runs: Path, save_analogy: Save, tmp_path: Path) -> None:
    save_analogy("a", "sat", 0.5, size=20)
    result = run("--runs", runs, "-o", tmp_path / "out", "--no-figures", "--json")
    tables: dict[str, Any] = {table["name"]: table["rows"] for table in json.loads(result.stdout)}
    assert list(tables) == ["analogy"]
    assert tables["analogy"][0]["system"] == "a"
    assert tables["analogy"][0]["u2"] is None
    assert tables["analogy"][0]["sat_mark"] == "!"
    assert "relvec: warning: SAT was measured with 20 questions" in result.stderr
    assert tables["analogy"][-1]["origin"].startswith("published")
