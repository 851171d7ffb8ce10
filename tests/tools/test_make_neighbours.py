"""The page of neighbours is made by a command, here with a tiny model and index."""

import importlib
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from relvec import RelBERT
from relvec.index.pair_index import PairIndex
from relvec.pairs import parse_pair

ROOT = Path(__file__).parents[2]
PAPER = tomllib.loads((ROOT / "experiments" / "paper_neighbours.toml").read_text(encoding="utf-8"))["target"]


@pytest.fixture
def make_neighbours(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("make_neighbours")


@pytest.fixture
def index(tiny: RelBERT) -> PairIndex:
    """The targets, the first two neighbours of each, upper case in some, and a pair that the paper does not have."""
    pairs = [parse_pair(text) for row in PAPER for text in (row["pair"], *row["neighbours"][:2])]
    return PairIndex.of(tiny, [("Baker", "bread"), *(pair for pair in pairs if pair[0] != "baker"), ("cup", "tea")])


def test_the_papers_table_is_whole() -> None:
    assert len(PAPER) == len({row["pair"] for row in PAPER}) == 22
    assert [len(row["neighbours"]) for row in PAPER].count(6) == 21
    assert PAPER[0]["neighbours"][0] == "baker:bread"


def test_only_neighbours_that_can_be_found_are_counted(make_neighbours: Any, tiny: RelBERT, index: PairIndex) -> None:
    rows = {row.pair: row for row in make_neighbours.targets(tiny, index)}
    assert rows["barista", "coffee"].known == {("baker", "bread"), ("brewer", "beer")}
    assert rows["cooked", "raw"].known == {("regulated", "unregulated")}  # raw:cooked is the target turned round
    for row in rows.values():
        assert len(row.ours) == 20
        assert row.found == set(row.ours) & row.known
    *categories, total, in_section = make_neighbours.agreement(list(rows.values()))[1:]
    assert in_section[:3] == ["those of section 6.3", "7", "42"]
    assert total[:4] == ["all", "22", "131", str(sum(len(row.known) for row in rows.values()))]
    for column in (1, 2, 3, 4):
        assert sum(int(row[column]) for row in categories) == int(total[column])


def test_what_both_have_is_bold_and_what_is_missing_italic(make_neighbours: Any) -> None:
    pairs = [parse_pair(text) for text in ("a:b", "c:d", "e:f", "g:h")]
    row = make_neighbours.Target("x", pairs[3], tuple(pairs[:3]), frozenset(pairs[:2]), (pairs[0], ("i", "j")))
    assert make_neighbours.neighbours([row])[1] == ["g:h", "**a:b**, c:d, *e:f*", "**a:b**, i:j"]


@pytest.fixture
def made_page(
    make_neighbours: Any, tiny_folder: Path, index: PairIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """What the command makes of a page that has tables with some rows, by their names."""

    def made(tables: Sequence[str], *options: str) -> str:
        index.save(tmp_path / "my.index")
        page = tmp_path / "page.md"
        page.write_text("".join(f"<!-- table: {table} -->\nold {table}\n<!-- end -->\n" for table in tables))
        arguments = ["--model", str(tiny_folder), "--index", str(tmp_path / "my.index"), "--page", str(page)]
        monkeypatch.setattr(sys, "argv", ["make_neighbours.py", *arguments, *options])
        make_neighbours.main()
        return page.read_text()

    return made


def test_the_command_fills_the_page(made_page: Callable[..., str]) -> None:
    text = made_page(["neighbours", "agreement"])
    assert text.startswith("<!-- table: neighbours -->\n| target | the paper |")
    assert "old" not in text
    assert text.count("\n| ") == 2 + 22 + 2 + 8


def test_with_a_reranker_only_its_own_table_is_filled(made_page: Callable[..., str], tiny_folder: Path) -> None:
    text = made_page(["agreement", "reranked"], "--reranker", str(tiny_folder))
    assert "old agreement" in text
    assert "old reranked" not in text
    assert text.count("\n| ") == 2 + 8


def test_the_page_has_all_tables() -> None:
    text = (ROOT / "experiments" / "neighbours.md").read_text(encoding="utf-8")
    for table in ("neighbours", "agreement", "reranked"):
        assert f"<!-- table: {table} -->" in text
