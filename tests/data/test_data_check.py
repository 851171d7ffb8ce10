"""Overlap with the benchmarks, the other problems, and the command that prints them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from relvec.cli.data import app
from relvec.data.overlap import audit, benchmark_pairs
from relvec.data.rated import Problem, RatedRelation
from relvec.data.sources import SOURCES
from relvec.errors import RelvecError

CAPITALS = RatedRelation(
    "capital", "places", (("Paris", "France"), ("Rome", "Italy"), ("Madrid", "Spain")), (("Japan", "Tokyo"),)
)


@pytest.fixture
def benchmarks(tmp_path: Path) -> Path:
    question = {"stem": ["tokyo", "japan"], "choice": [["france", "paris"], ["cup", "tea"]], "answer": 0, "prefix": ""}
    row = {"head": "paris", "tail": "france", "relation": "capital"}
    for path, content in {
        "analogy/sat/valid.jsonl": question,
        "lexrel/bless/test.jsonl": row,
        "lexrel/bless/train.jsonl": {"head": "rome", "tail": "italy", "relation": "capital"},
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(json.dumps(content))
    return tmp_path


def test_benchmark_pairs_are_those_of_the_validation_and_test_parts(benchmarks: Path) -> None:
    assert benchmark_pairs(benchmarks) == {
        ("japan", "tokyo"): {"analogy/sat"},
        ("cup", "tea"): {"analogy/sat"},
        ("france", "paris"): {"analogy/sat", "lexrel/bless"},
    }


def test_a_folder_without_benchmarks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match="no benchmark below"):
        benchmark_pairs(tmp_path)


def test_a_broken_benchmark_is_named(benchmarks: Path) -> None:
    (benchmarks / "lexrel/bless/test.jsonl").write_text('{"head": "a"}')
    with pytest.raises(RelvecError, match=r"test\.jsonl, line 1: no head and tail among head"):
        benchmark_pairs(benchmarks)


def test_audit_lists_every_problem() -> None:
    bad = RatedRelation("bad", "", (("a", "b"),), (("a", "b"), ("c", "d"), ("c", "d")))
    assert audit([CAPITALS, bad, bad])[:4] == [
        Problem("bad", "", "is the name of 2 relations"),
        Problem("bad", "c:d", "is twice negative"),
        Problem("bad", "a:b", "is both positive and negative"),
        Problem("bad", "", "has 1 positives, 3 are needed (1 held out)"),
    ]


def test_data_list_shows_every_name_of_the_registry() -> None:
    rows = json.loads(CliRunner().invoke(app, ["list", "--json"]).stdout)
    assert [row["name"] for row in rows] == list(SOURCES)
    assert rows[0]["relations"] >= 250
    shown = CliRunner().invoke(app, ["list"]).stdout
    assert all(name in shown for name in SOURCES)


def test_data_check_counts_a_sound_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RELVEC_DATA", raising=False)
    (tmp_path / "mine.csv").write_text("relation,category,head,tail\nr,c,a,b\nr,c,c,d\nr,c,e,f\n")
    result = CliRunner().invoke(app, ["check", str(tmp_path / "mine.csv")])
    assert result.exit_code == 0
    assert "relations\t1\ncategories\t1\npositives\t3\nnegatives\t0\ndistinct pairs\t3\nproblems\t0" in result.stdout
    assert "Not compared with the benchmarks" in result.stderr
    monkeypatch.setenv("RELVEC_DATA", str(tmp_path))  # a folder without benchmarks
    assert "Not compared with the benchmarks" in CliRunner().invoke(app, ["check", str(tmp_path / "mine.csv")]).stderr


def test_data_check_cuts_at_a_threshold_and_finds_what_training_would_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RELVEC_DATA", raising=False)
    (tmp_path / "mine.csv").write_text("relation,head,tail,score\nr,a,b,1\nr,c,d,1\nr,e,f,0\n")
    command = ["check", str(tmp_path / "mine.csv"), "--json"]
    assert json.loads(CliRunner().invoke(app, command).stdout)["positives"] == 3
    found = json.loads(CliRunner().invoke(app, [*command, "--threshold", "0.5"]).stdout)
    assert (found["positives"], found["negatives"]) == (2, 1)
    assert [problem["problem"] for problem in found["problems"]] == ["has 2 positives, 3 are needed (1 held out)"]


def test_data_check_prints_the_overlap_and_fails(benchmarks: Path) -> None:
    (benchmarks / "mine.csv").write_text("relation,head,tail\nr,Paris,France\nr,c,d\nr,e,f\n")
    result = CliRunner().invoke(app, ["check", str(benchmarks / "mine.csv"), "--data-dir", str(benchmarks)])
    assert "r\tParis:France\tin analogy/sat, lexrel/bless" in result.stdout
    assert (result.exit_code, "has 1 problems" in result.stderr) == (1, True)


def test_data_check_speaks_json(benchmarks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RELVEC_DATA", raising=False)
    (benchmarks / "mine.csv").write_text("relation,head,tail\nr,Paris,France\nr,cups,teas\nr,e,f\n")
    command = ["check", str(benchmarks / "mine.csv"), "--json"]
    alone = CliRunner().invoke(app, command)
    found = json.loads(alone.stdout)
    assert (found["distinct_pairs"], found["problems"], found["in_a_benchmark_in_other_forms"]) == (3, [], [])
    result = CliRunner().invoke(app, [*command, "--data-dir", str(benchmarks)])
    assert json.loads(result.stdout)["in_a_benchmark_in_other_forms"] == ["cups:teas"]
    (problem,) = json.loads(result.stdout)["problems"]
    assert (problem["relation"], problem["pair"], result.exit_code) == ("r", "Paris:France", 1)
