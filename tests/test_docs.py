"""What the pages say must be what the code does."""

import importlib.util
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from relvec import PairIndex
from relvec.cli.app import make_app

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "experiments").glob("*.md")),
]

_spec = importlib.util.spec_from_file_location("make_tables", ROOT / "tools" / "make_tables.py")
assert _spec is not None
assert _spec.loader is not None
make_tables = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_tables)


@pytest.mark.parametrize("page", make_tables.PAGES, ids=lambda page: page.name)
def test_tables_are_those_of_the_registries(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    marked = re.findall(r"<!-- table: (\w+) -->", text)
    assert marked
    assert set(marked) <= set(make_tables.TABLES)
    assert make_tables.filled(text) == text, "run `make tables`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_on_the_pages_exist(page: Path) -> None:
    import typer.main

    group = typer.main.get_command(make_app())
    for line in re.findall(r"^\$ (relvec .*)$", page.read_text(encoding="utf-8"), re.MULTILINE):
        name, *words = shlex.split(line, comments=True)[1:]
        command = group.commands[name]  # type: ignore[attr-defined]
        if hasattr(command, "commands"):
            command = command.commands[words[0]]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)} <= known, line


def test_the_examples_print_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/examples.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(python)?\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    exec("\n".join(code for language, code in blocks if language), {})
    printed, shown = capsys.readouterr().out, "".join(text for language, text in blocks if not language)
    number = re.compile(r"\d\.\d\d")
    assert number.sub("_", printed) == number.sub("_", shown)
    measured, told = ([float(each) for each in number.findall(text)] for text in (printed, shown))
    assert measured == pytest.approx(told, abs=0.05)


def test_the_python_manual_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Except what needs a download or uploads."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    for block in blocks:
        if "from_pretrained()" not in block and "push_to_hub" not in block:
            exec(block, names)
    assert names["question"].choice == ("note", "music")
    assert names["found"][0].pair == ("vintner", "wine")
    assert len(PairIndex.load("my.index")) == 5


def test_ci_runs_the_readmes_test_command() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command = re.search(r"<!-- test -->\n```\n(.*make check)\n```", readme)
    assert command is not None
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (extraction,) = re.findall(r"^command=\$\((.*)\)$", script, re.MULTILINE)
    extracted = subprocess.run(["bash", "-c", extraction], cwd=ROOT, capture_output=True, text=True, check=True)
    assert extracted.stdout.strip() == command.group(1)
