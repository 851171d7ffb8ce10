import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from relvec.errors import RelvecError
from relvec.pairs import Prototype, as_pairs, as_relations, read_pairs, read_related_pairs

EXPECTED = [("Paris", "France"), ("ice cream", "summer")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pairs.txt", "Paris:France\n\nice cream:summer\n"),
        ("pairs.csv", "Paris,France\nice cream,summer\n"),
        ("pairs.csv", '"Paris",France\r\n"ice cream",summer\r\n'),
        ("pairs.csv", "relation,head,tail\n1,Paris,France\n2,ice cream,summer\n"),
        ("pairs.tsv", "Paris\tFrance\nice cream\tsummer"),
        ("pairs.tsv", "subj\tobj\nParis\tFrance\nice cream\tsummer"),
        ("pairs.jsonl", '{"head": "Paris", "tail": "France", "score": 1}\n["ice cream", "summer"]\n'),
        ("pairs", "Paris\tFrance\nice cream\tsummer\n"),
        ("pairs", "Paris,France\nice cream,summer\n"),
        ("pairs", '["Paris", "France"]\n["ice  cream ", "summer"]\n'),
        ("pairs.csv", "from,to\nParis,France\nice cream,summer\n"),
        ("pairs.tsv", '"Paris"\tFrance\n"ice cream"\tsummer'),
        ("bom.csv", "\ufeffParis,France\nice cream,summer\n"),
    ],
)
def test_every_format_gives_the_same_pairs(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode())
    assert read_pairs(path) == EXPECTED


def test_pairs_come_from_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b"Paris:France\nice cream:summer\n")

    monkeypatch.setattr("sys.stdin", Stdin)
    assert read_pairs("-") == EXPECTED


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("pairs.txt", b"Paris:France\nTokyo\n", "line 2: 'Tokyo' has no colon; write head:tail"),
        ("pairs.txt", b"a:b:c\n", "line 1: 'a:b:c' has more than one colon; write head:tail, and words with a colon"),
        ("pairs.txt", b"Paris:\n", "line 1: in 'Paris:' a word of the pair is empty"),
        ("pairs.csv", b"a,b\nc,d,e\n", "line 2: 3 columns where 2 are expected; separate two words by one comma"),
        ("pairs.tsv", b"a\tb\nc\n", "line 2: 1 columns where 2 are expected; separate two words by one tab"),
        ("pairs.tsv", b"a\tb\n\t \nc\t \n", "line 3: a word of the pair is empty"),
        ("pairs.csv", b"caf\xe9,drink\n", "line 1: not UTF-8 text; save the file as UTF-8"),
        ("pairs.csv", b'cup,tea\nquote,"\nParis,France\nTokyo,Japan\n', "line 2: a quote is not closed"),
        ("pairs.csv", b'cup,tea\n"p"q,r\n', "line 2: a quote is not closed"),
        ("pairs.jsonl", b'["a", "b"]\n{"head": 1}\n', 'line 2: no "head" and "tail"'),
        ("pairs.jsonl", b'["a", "b"]\n["a"]\n', "line 2: expected a pair of words"),
        ("pairs.jsonl", b'["a", 1]\n', "line 1: 1 is not a word"),
        ("pairs.jsonl", b'["a",\n', "line 1: not JSON"),
        ("pairs.jsonl", b'["a", "b"]\n[' + b"9" * 5000 + b"]\n", "line 2: a number too long or brackets too deep"),
        ("pairs.jsonl", b'["a", "b"]\n' + b"[" * 100_000 + b"\n", "line 2: a number too long or brackets too deep"),
        ("pairs.jsonl", b'{"head": "a", "tail": "b", "relation": "\\ud800"}', "line 1: '\\ud800' is not UTF-8 text"),
        ("pairs.txt", b"\n\n", "holds no pair"),
    ],
)
def test_a_bad_line_is_named_with_file_line_and_fix(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(RelvecError) as error:
        read_pairs(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match="No such file"):
        read_pairs(tmp_path / "nowhere.tsv")


@pytest.mark.parametrize(
    "collection",
    [
        [["Paris", "France"], ("ice cream", "summer")],
        (pair for pair in EXPECTED),
        np.array(EXPECTED),
        pd.DataFrame(EXPECTED, columns=["head", "tail"]),
        pd.DataFrame(EXPECTED),
        pd.DataFrame([(1, "summer", "ice cream"), (2, "France", "Paris")][::-1], columns=["n", "tail", "head"]),
        pa.table({"subject": ["Paris", "ice cream"], "predicate": ["", ""], "object": ["France", "summer"]}),
    ],
    ids=["list", "generator", "array", "frame", "frame-of-two-columns", "frame-with-more-columns", "arrow"],
)
def test_any_collection_of_pairs_is_accepted(collection: Any) -> None:
    assert as_relations(collection) == EXPECTED


def test_a_prototype_is_no_pair() -> None:
    with pytest.raises(RelvecError, match="Pair 2: expected a pair of words"):
        as_pairs([("a", "b"), Prototype([("c", "d")])])


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_a_relation_may_be_a_number(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"pairs{ending}"
    frame = pd.DataFrame({"head": ["Paris"], "tail": ["France"], "relation": [7]})
    write = {".csv": lambda: frame.to_csv(path, index=False), ".parquet": lambda: frame.to_parquet(path)}
    write.get(ending, lambda: frame.to_json(path, orient="records", lines=True))()
    assert read_related_pairs(path) == [(("Paris", "France"), "7")]


@pytest.mark.parametrize("column", ["relation", "predicate", "Relation"])
@pytest.mark.parametrize("ending", [".tsv", ".csv", ".jsonl", ".parquet"])
def test_relations_are_read_with_the_pairs(tmp_path: Path, ending: str, column: str) -> None:
    path = tmp_path / f"pairs{ending}"
    frame = pd.DataFrame({"head": ["Paris", '6" nail'], "tail": ["France", "steel"], column: ["capital", None]})
    if ending == ".parquet":
        frame.to_parquet(path)
    elif ending == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, sep="\t" if ending == ".tsv" else ",", index=False)
    assert read_related_pairs(path) == [(("Paris", "France"), "capital"), (('6" nail', "steel"), "")]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"head": ["Paris", None], "tail": ["France", "Italy"]}, "pairs.parquet, row 2: None is not a word"),
        ({"head": [], "tail": []}, "holds no pair"),
        ({"a": ["x"], "b": ["y"], "c": ["z"]}, "name the two word columns head and tail"),
        (None, "is no whole parquet file"),
    ],
)
def test_a_bad_parquet_file_is_refused(tmp_path: Path, columns: dict[str, list[str]] | None, message: str) -> None:
    path = tmp_path / "pairs.parquet"
    if columns is None:
        path.write_text("Paris:France")
    else:
        pd.DataFrame(columns).to_parquet(path)
    with pytest.raises(RelvecError, match=message):
        read_pairs(path)


@pytest.mark.parametrize(
    "collection",
    [
        "Paris:France",
        ["Paris:France"],
        [("a", "b"), ("a", "b", "c")],
        [("a", "b"), ("a", " ")],
        [("a", "b"), ("a", None)],
        [("a", "b"), 7],
        pd.DataFrame([("a", "b", "c")], columns=["x", "y", "z"]),
        pd.DataFrame([("a", float("nan"))]),
        pd.DataFrame([("a", "b", "c")], columns=["head", "tail", "head"]),
    ],
)
def test_what_is_no_pair_is_refused(collection: Any) -> None:
    with pytest.raises(RelvecError):
        as_relations(collection)


def test_an_empty_prototype_is_refused() -> None:
    with pytest.raises(RelvecError, match="at least one"):
        Prototype([])
