import json
from pathlib import Path
from typing import Any

import pytest

from relvec import RelvecError
from relvec.data.benchmarks.mapping import load_problems, read_problems

SOLAR = {"source": ["sun", "planet", "gravity"], "target": ["nucleus", "electron", "charge"], "id": "a1"}


def write(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def test_the_right_order_cannot_be_seen(tmp_path: Path) -> None:
    turned = {"source": SOLAR["source"][::-1], "target": SOLAR["target"][::-1]}
    first, second = read_problems(write(tmp_path / "problems.jsonl", SOLAR, turned))
    assert first.target == second.target
    for problem, row in ((first, SOLAR), (second, turned)):
        assert [problem.target[place] for place in problem.answer] == row["target"]
    many = [{"source": ["a", "b", "c"], "target": [f"{n}d", f"{n}e", f"{n}f"]} for n in range(60)]
    first_places = [problem.answer[0] for problem in read_problems(write(tmp_path / "many.jsonl", *many))]
    assert all(10 < first_places.count(place) < 30 for place in range(3))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"source": ["a", "b"], "target": ["c"]}, "target: c; give at least 2 terms"),
        ({"source": ["a", "b"], "target": ["c", "d", "e"]}, "2 source terms and 3 target terms"),
        ({"source": ["a", "a"], "target": ["c", "d"]}, "source: a, a; give at least 2 terms, each once"),
        ({"source": ["a", " "], "target": ["c", "d"]}, "source: a word of the pair is empty"),
        ({"source": ["a", 1], "target": ["c", "d"]}, "source: 1 is not a word"),
        ({"source": ["a", "b"]}, "no list 'target'; write"),
        (["a", "b"], "no list 'source'; write"),
        ("{", "not JSON"),
    ],
)
def test_a_bad_problem_is_named_by_file_and_line(tmp_path: Path, row: Any, message: str) -> None:
    path = write(tmp_path / "problems.jsonl", SOLAR, row)
    with pytest.raises(RelvecError) as error:
        read_problems(path)
    assert str(error.value).startswith(f"{path}, line 2: ")
    assert message in str(error.value)


def test_a_file_without_problems_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match="holds no problem"):
        read_problems(write(tmp_path / "empty.jsonl"))


def test_problems_are_found_by_name_below_the_data_folder(tmp_path: Path) -> None:
    write(tmp_path / "mapping/relation_mapping.jsonl", SOLAR, {**SOLAR, "id": "m1"}, {**SOLAR, "type": "own"})
    write(tmp_path / "mapping/scan.jsonl", {**SOLAR, "type": "creative"})
    assert [problem.kind for problem in load_problems(data_dir=tmp_path)] == ["science", "metaphor", "own"]
    assert [problem.kind for problem in load_problems("scan", tmp_path)] == ["creative"]
    assert load_problems(str(tmp_path / "mapping/scan.jsonl")) == load_problems("scan", tmp_path)
    with pytest.raises(RelvecError, match="no mapping benchmark scam; did you mean 'scan'"):
        load_problems("scam", tmp_path)
    with pytest.raises(RelvecError, match="known are relation_mapping, or give a file or a folder"):
        load_problems("nothing like it", tmp_path)


def test_the_missing_default_says_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match=r"relbert/relation_mapping .* mapping/relation_mapping\.jsonl"):
        load_problems(data_dir=tmp_path)
