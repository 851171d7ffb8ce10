import csv
import gzip
import io
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from relvec.errors import RelvecError
from relvec.io.tables import TABLES, read_pairs, read_pairs_and_columns, read_related_pairs, read_rows, tsv_cell

EXPECTED = [("Paris", "France"), ("ice cream", "summer")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pairs.txt", "Paris:France\n\nice cream:summer\n"),
        ("pairs.csv", "Paris,France\nice cream,summer\n"),
        ("pairs.csv", 'Paris, "France"\nice cream, summer\n'),
        ("pairs.csv", '"Paris",France\r\n"ice cream",summer\r\n'),
        ("pairs.csv", "relation,head,tail\n1,Paris,France\n2,ice cream,summer\n"),
        ("pairs.csv", "from,to\nParis,France\nice cream,summer\n"),
        ("pairs.tsv", "Paris\tFrance\nice cream\tsummer"),
        ("pairs.tsv", "Subj\tObj\nParis\tFrance\nice cream\tsummer"),
        ("pairs.tsv", '"Paris"\tFrance\n"ice cream"\tsummer'),
        ("pairs.jsonl", '{"head": "Paris", "tail": "France", "score": 1}\n["ice cream", "summer"]\n'),
        ("pairs", "Paris\tFrance\nice cream\tsummer\n"),
        ("pairs", "Paris,France\nice cream,summer\n"),
        ("pairs", '["Paris", "France"]\n["ice  cream ", "summer"]\n'),
        ("bom.csv", "\ufeffParis,France\nice cream,summer\n"),
    ],
)
def test_every_format_gives_the_same_pairs(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode())
    assert read_pairs(path) == EXPECTED
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert read_pairs(packed) == EXPECTED


def test_pairs_come_from_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b"Paris:France\nice cream:summer\n")

    monkeypatch.setattr("sys.stdin", Stdin)
    assert read_pairs("-") == EXPECTED


CELL = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8)
NAMES = st.lists(st.sampled_from(["score", "category", "note"]), unique=True).map(
    lambda more: ["head", "tail", "relation", *more]
)


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, str]]:
    names = draw(st.permutations(draw(NAMES)))
    return draw(st.lists(st.fixed_dictionaries(dict.fromkeys(names, CELL)), min_size=1, max_size=5))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    if path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".tsv":
        cells = ["\t".join(rows[0]), *("\t".join(tsv_cell(row[name]) for name in rows[0]) for row in rows)]
        path.write_text("\n".join(cells), encoding="utf-8")
    else:
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


@given(rows=tables())
def test_a_table_reads_back_equal_from_every_format(
    rows: list[dict[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    for ending in TABLES:
        write(folder / f"table{ending}", rows)
        assert [row.values for row in read_rows(folder / f"table{ending}")] == rows
    frame = pd.DataFrame(rows)
    for table in (frame, pa.Table.from_pandas(frame)):
        assert [row.values for row in read_rows(table)] == rows


@pytest.fixture(params=[".tsv", ".csv", ".jsonl", ".parquet"])
def labelled(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """As pandas writes it, with a quote in a cell, a missing label and a numeric one."""
    frame = pd.DataFrame(
        {"Word1": ["Paris", '6" nail', "a"], "word2": ["France", "steel", "b"], "Predicate": ["capital", None, 7]}
    )
    path = tmp_path / f"pairs{request.param}"
    if path.suffix == ".parquet":
        frame.astype({"Predicate": "string"}).to_parquet(path)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, sep="\t" if path.suffix == ".tsv" else ",", index=False)
    return path


def test_relations_are_read_by_any_column_name(labelled: Path) -> None:
    assert read_related_pairs(labelled) == [
        (("Paris", "France"), "capital"),
        (('6" nail', "steel"), ""),
        (("a", "b"), "7"),
    ]


@pytest.mark.parametrize("words", [("head", "tail"), ("subject", "object")])
@pytest.mark.parametrize("other", ["head", "tail", "vector", "vectors"])
def test_no_further_column_stands_for_words_or_vectors(words: tuple[str, str], other: str) -> None:
    columns = {other: ["x"], words[0]: ["cup"], words[1]: ["tea"], "id": ["7"]}
    assert read_pairs_and_columns(pd.DataFrame(columns)) == ([("cup", "tea")], {"id": ["7"]})


def test_missing_values_of_a_frame_are_no_label() -> None:
    for missing in (float("nan"), None, pd.NA):
        assert read_related_pairs(pd.DataFrame({"head": ["a"], "tail": ["b"], "relation": [missing]})) == [
            (("a", "b"), "")
        ]


def test_vectors_in_a_parquet_file_do_not_hinder_reading_its_pairs(tmp_path: Path) -> None:
    table = pa.table({"head": ["a"], "tail": ["b"], "vector": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))})
    parquet.write_table(table, tmp_path / "vectors.parquet")
    assert [row.values for row in read_rows(tmp_path / "vectors.parquet")] == [{"head": "a", "tail": "b"}]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("pairs.txt", b"Paris:France\nTokyo\n", "line 2: 'Tokyo' has no colon; write head:tail"),
        ("pairs.txt", b"a:b:c\n", "line 1: 'a:b:c' has more than one colon; write head:tail, and words with a colon"),
        ("pairs.txt", b"Paris:\n", "line 1: in 'Paris:' a word of the pair is empty"),
        ("pairs.csv", b"a,b\nc,d,e\n", "line 2: 3 columns where 2 are expected; separate two words by one comma"),
        (
            "pairs.csv",
            b"relation,word_a,word_b\nin,a,b\n",
            "line 1: no head and tail among relation, word_a, word_b; name the two word columns head and tail",
        ),
        ("pairs.csv", b"a\n", "line 1: 1 column where 2 are expected; separate two words by one comma"),
        ("pairs.tsv", b"a\tb\nc\n", "line 2: 1 column where 2 are expected; separate two words by one tab"),
        ("pairs.csv", b"head,tail,score\na,b\n", "line 2: 2 columns where 3 are expected"),
        ("pairs.csv", b"head,tail,Head\na,b,c\n", "line 1: there are several columns head; keep one"),
        ("pairs.tsv", b"a\tb\n\t \nc\t \n", "line 3: a word of the pair is empty"),
        ("pairs.csv", b"caf\xe9,drink\n", "line 1: not UTF-8 text; save the file as UTF-8"),
        ("pairs.csv", b'cup,tea\nquote,"\nParis,France\nTokyo,Japan\n', "line 2: a quote is not closed"),
        ("pairs.csv", b'cup,tea\n"p"q,r\n', "line 2: a quote is not closed"),
        ("pairs.csv", b"head,tail\n" + b"a" * 20_000 + b",b\n", "line 2: a word has 20,000 characters"),
        ("pairs.csv", b'cup,"tea\n' + b"a,b\n" * 50_000, "line 1: a quote is not closed"),
        ("pairs.jsonl", b'["a", "b"]\n{"head": "a", "n": 1}\n', "line 2: no head and tail among head, n"),
        ("pairs.jsonl", b'["a", "b"]\n["a"]\n', "line 2: expected a pair of words"),
        ("pairs.jsonl", b'["a", 1]\n', "line 1: 1 is not a word"),
        ("pairs.jsonl", b'["a",\n', "line 1: not JSON"),
        ("pairs.csv.gz", b"\x1f\x8bhalf", "is not a complete gzip file"),
        ("pairs.parquet", b"Paris:France", "is not a complete parquet file"),
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


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"head": ["Paris", None], "tail": ["France", "Italy"]}, "pairs.parquet, row 2: None is not a word"),
        ({"head": [], "tail": []}, "holds no pair"),
        ({"a": ["x"], "b": ["y"], "c": ["z"]}, "row 1: no head and tail among a, b, c; name the two word columns"),
    ],
)
def test_a_bad_row_of_a_parquet_file_is_named(tmp_path: Path, columns: dict[str, list[str]], message: str) -> None:
    pd.DataFrame(columns).to_parquet(tmp_path / "pairs.parquet")
    with pytest.raises(RelvecError, match=message):
        read_pairs(tmp_path / "pairs.parquet")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match="No such file"):
        read_pairs(tmp_path / "nowhere.tsv")
