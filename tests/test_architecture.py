"""Imports between the packages directly below relvec/ point one way."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

import relvec

ROOT = Path(relvec.__file__).parent
ROOTS = {"__init__", "__main__", "cli"}  # they may import everything, and nothing imports them


def part_of(module: str) -> str:
    """The package or module directly below relvec/ that a dotted name lies in."""
    return module.split(".")[1]


def imported(path: Path) -> Iterator[str]:
    """The modules of relvec that a file imports, wherever in it, types and function bodies included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("relvec."))
        elif isinstance(node, ast.ImportFrom) and node.module == "relvec":
            for name in node.names:
                if name.name != "__version__":
                    yield relvec._HOMES.get(name.name, f"relvec.{name.name}")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("relvec."):
            yield str(node.module)


def dependencies() -> dict[str, dict[str, str]]:
    """For each part, the parts that it imports, with a file that does so."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT)
        part = place.parts[0].removesuffix(".py")
        if part in ROOTS:
            continue
        of_part = found.setdefault(part, {})
        for module in imported(path):
            if part_of(module) != part:
                of_part.setdefault(part_of(module), str(place))
    return found


def test_no_two_packages_import_each_other() -> None:
    found = dependencies()
    try:
        TopologicalSorter(found).prepare()
    except CycleError as error:
        circle = error.args[1]
        steps = [f"{found[later][earlier]} imports {earlier}" for earlier, later in pairwise(circle)]
        pytest.fail(f"a cycle of imports: {'; '.join(steps)}")


def test_nothing_imports_the_command_line() -> None:
    assert [part for part, imports in dependencies().items() if "cli" in imports] == []
