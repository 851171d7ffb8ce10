import gzip
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from relvec.data.rated import Part, RatedRelation, split
from relvec.data.readers import read_rated
from relvec.errors import LeftOutWarning, RelvecError

PARTS: tuple[Part, Part] = ("train", "valid")

ROWS = [
    ("capital", "places", "Paris", "France", 9.5),
    ("capital", "places", "France", "Paris", -3.0),
    ("capital", "places", "ice town", "Ice Land", 8.0),
    ("maker", "", "baker", "bread", 2.0),
    ("maker", "", "barista", "coffee", 1.0),
]
NAMES = ["relation", "category", "head", "tail", "score"]
EXPECTED = [
    RatedRelation("capital", "places", (("ice town", "Ice Land"), ("Paris", "France")), (("France", "Paris"),)),
    RatedRelation("maker", "", (("barista", "coffee"), ("baker", "bread")), ()),
]

JSONL = "\n".join(json.dumps({**dict(zip(NAMES, row, strict=True)), "relation_name": "ignored"}) for row in ROWS)
CSV = "\n".join(",".join(map(str, row)) for row in [NAMES, *ROWS])
TOML = """
category = "places"

[[relation]]
name = "capital"
definition = "X is the capital of Y"
positives = ["Paris:France", "Tokyo:Japan"]
negatives = ["France:Paris"]
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [("p.jsonl", JSONL), ("p.csv", CSV), ("p.tsv", CSV.replace(",", "\t")), ("p.csv", f"\ufeff{CSV}\n\n")],
)
def test_every_kind_of_rows_gives_the_same_relations(tmp_path: Path, name: str, text: str) -> None:
    assert read_rated(write(tmp_path / name, text), top=2) == EXPECTED
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    assert read_rated(tmp_path / f"{name}.gz", top=2) == EXPECTED


def test_frames_and_parquet_give_the_same_relations(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS, columns=["predicate", "category", "subject", "object", "score"])
    frame.to_parquet(tmp_path / "p.parquet")
    assert read_rated(frame, top=2) == read_rated(tmp_path / "p.parquet", top=2) == EXPECTED


def test_nothing_in_a_frame_is_no_category() -> None:
    frame = pd.DataFrame([("r", float("nan"), "a", "b"), ("r", None, "c", "d")], columns=NAMES[:4])
    assert read_rated(frame) == [RatedRelation("r", "", (("a", "b"), ("c", "d")), ())]
    assert read_rated(frame.assign(category=pd.NA)) == read_rated(frame)


def test_pairs_without_a_score_are_positive(tmp_path: Path) -> None:
    path = write(tmp_path / "p.tsv", "relation\thead\ttail\nr\ta\tb\nr\tc\td\n")
    assert read_rated(path) == [RatedRelation("r", "", (("a", "b"), ("c", "d")), ())]


def hub_row(relation: str, positives: list[list[str]], negatives: list[list[str]]) -> str:
    return json.dumps({"relation_type": relation, "positives": positives, "negatives": negatives, "level": "child"})


def test_groups_of_the_hub_are_taken_as_given(tmp_path: Path) -> None:
    text = hub_row("8d", [["b", "c"], ["a", "d"]], [["e", "f"]]) + "\n" + hub_row("has hub in", [["x", "y"]], [])
    assert read_rated(write(tmp_path / "train.jsonl", text)) == [
        RatedRelation("8d", "8", (("b", "c"), ("a", "d")), (("e", "f"),)),
        RatedRelation("has hub in", "", (("x", "y"),), ()),
    ]


def test_training_and_validation_file_of_the_hub_are_joined(tmp_path: Path) -> None:
    write(tmp_path / "data/train.jsonl", hub_row("8d", [["a", "b"]], [["e", "f"], ["c", "d"]]))
    write(tmp_path / "data/valid.jsonl", hub_row("8d", [["c", "d"]], [["g", "h"]]))
    write(tmp_path / "README.md", "nothing")
    held_out = ("c", "d"), ("g", "h")
    joined = RatedRelation("8d", "8", (("c", "d"), ("a", "b")), (("g", "h"), ("e", "f")), held_out=held_out)
    assert read_rated(tmp_path) == [joined]


def pairs(*heads: str) -> list[list[str]]:
    return [[head, "t"] for head in heads]


def test_all_parts_of_a_relation_are_kept_but_the_test_part(tmp_path: Path) -> None:
    write(tmp_path / "train-0.jsonl", hub_row("8d", pairs("a"), pairs("n")))
    write(tmp_path / "train-1.jsonl", hub_row("8d", pairs("b"), pairs("o")))
    write(tmp_path / "test.jsonl", hub_row("8d", pairs("c"), pairs("p")))
    write(tmp_path / "valid.jsonl", hub_row("8d", pairs("v"), pairs("w")))
    (relation,) = read_rated(tmp_path)
    assert [head for head, _ in relation.positives] == ["v", "a", "b"]  # held out come first
    assert [head for head, _ in relation.negatives] == ["w", "n", "o"]


@pytest.mark.parametrize("name", ["dev.jsonl", "8d_validation.jsonl", "val.jsonl", "valid.jsonl"])
def test_the_name_of_a_file_tells_what_is_held_out(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, hub_row("8d", pairs("v"), []))
    write(tmp_path / "train.jsonl", hub_row("8d", pairs("a", "b"), []))
    assert [head for head, _ in read_rated(tmp_path)[0].positives] == ["v", "a", "b"]


@pytest.mark.parametrize("known", [5, 12])
def test_all_pairs_of_a_validation_file_are_held_out(tmp_path: Path, known: int) -> None:
    trained, held_out = [f"t{n}" for n in range(known)], ["v0", "v1", "v2"]
    folders = tmp_path / "groups", tmp_path / "rows"
    for name, heads in (("train", trained), ("valid", held_out)):
        write(folders[0] / f"{name}.jsonl", hub_row("8d", pairs(*heads), []))
        write(folders[1] / f"{name}.csv", "relation,head,tail\n" + "\n".join(f"8d,{head},t" for head in heads))
    for folder in folders:
        relations = read_rated(folder)
        parts = [[head for head, _ in split(relations, part)[0].positives] for part in ("train", "valid")]
        assert parts == [trained, held_out]
    alone = read_rated(folders[1] / "valid.csv")
    assert [head for head, _ in split(alone, "train")[0].positives] == ["v1", "v2"]


def test_validation_pairs_take_the_place_of_no_training_pair(tmp_path: Path) -> None:
    """All good pairs are rated 1 and all bad ones 0, as people do."""
    for part, good, bad in (("train", 20, 12), ("valid", 11, 5)):
        rows = [*(f"r,{part[0]}{n},x,1" for n in range(good)), *(f"r,{part[0]}{n},y,0" for n in range(bad))]
        write(tmp_path / f"{part}.csv", "relation,head,tail,score\n" + "\n".join(rows))
    (train,), (valid,) = (split(read_rated(tmp_path), part) for part in PARTS)
    assert (len(train.positives), len(train.negatives)) == (10, 10)
    assert {head[0] for head, _ in (*train.positives, *train.negatives)} == {"t"}
    assert valid.positives == tuple((f"v{n}", "x") for n in range(11))
    assert valid.negatives == tuple((f"v{n}", "y") for n in range(5))
    (train,), (valid,) = (split(read_rated(tmp_path, threshold=0.5), part) for part in PARTS)
    assert [len(pairs) for pairs in (train.positives, train.negatives, valid.positives, valid.negatives)] == [
        20,
        12,
        11,
        5,
    ]


def test_validation_pairs_are_judged_by_the_scores_of_the_training_pairs(tmp_path: Path) -> None:
    header = "relation,head,tail,score\n"
    write(tmp_path / "train.csv", header + "\n".join(f"r,t{score},x,{score}" for score in range(30)))
    write(tmp_path / "valid.csv", header + "\n".join(f"r,v{score},x,{score}" for score in (2, 10, 20, 35)))
    (train,), (valid,) = (split(read_rated(tmp_path, top=10, bottom=5), part) for part in PARTS)
    assert [head for head, _ in train.positives] == [f"t{score}" for score in range(20, 30)]
    assert [head for head, _ in train.negatives] == [f"t{score}" for score in range(5)]
    assert [head for head, _ in valid.positives] == ["v20", "v35"]
    assert [head for head, _ in valid.negatives] == ["v2"]


def test_a_pair_rated_in_both_parts_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "train.csv", "relation,head,tail\nr,a,b\nr,c,d\nr,e,f\n")
    write(tmp_path / "valid.csv", "relation,head,tail\nr,c,d\n")
    with pytest.raises(RelvecError, match=r"valid\.csv, line 2: c:d is rated twice in relation 'r'"):
        read_rated(tmp_path)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_relation_of_the_validation_file_alone_is_not_trained_on(tmp_path: Path, kind: str) -> None:
    def content(relations: str, head: str) -> str:
        if kind == "jsonl":
            return "\n".join(hub_row(relation, pairs(head, f"{head}2"), []) for relation in relations)
        rows = (f"{relation},{word},t\n" for relation in relations for word in (head, f"{head}2"))
        return "relation,head,tail\n" + "".join(rows)

    write(tmp_path / f"train.{kind}", content("a", "t"))
    valid = write(tmp_path / f"valid.{kind}", content("abc", "v"))
    with pytest.warns(LeftOutWarning, match=r"relations without training pairs \(2, such as 'b'\)"):
        (relation,) = read_rated(tmp_path)
    assert relation.name == "a"
    assert relation.held_out == (("v", "t"), ("v2", "t"))
    alone = read_rated(valid)  # where there is nothing else, these pairs are what the user wants
    assert [each.name for each in alone] == ["a", "b", "c"]
    assert not any(each.held_out for each in alone)


def test_a_folder_without_files_of_one_kind_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "notes.txt", "none")
    with pytest.raises(RelvecError, match="holds no rated pairs"):
        read_rated(tmp_path)
    write(tmp_path / "a.csv", "relation,head,tail\nr,a,b\n")
    write(tmp_path / "b.jsonl", hub_row("8d", pairs("a"), []))
    with pytest.raises(RelvecError, match=r"holds \.csv and \.jsonl; keep files of one kind"):
        read_rated(tmp_path)


@pytest.mark.parametrize("part", PARTS)
def test_the_lines_of_a_file_that_is_given_alone_are_joined(tmp_path: Path, part: Part) -> None:
    path = write(tmp_path / f"{part}.jsonl", "\n".join(hub_row("8d", pairs(head), []) for head in "abc"))
    assert read_rated(path) == [RatedRelation("8d", "8", (("a", "t"), ("b", "t"), ("c", "t")), ())]


def test_a_test_file_is_read_where_it_is_all_there_is(tmp_path: Path) -> None:
    path = write(tmp_path / "test.jsonl", hub_row("8d", pairs("a"), []))
    assert read_rated(path) == read_rated(tmp_path) == [RatedRelation("8d", "8", (("a", "t"),), ())]


def test_parts_without_a_telling_name_are_joined(tmp_path: Path) -> None:
    whole = RatedRelation("8d", "8", (("a", "t"), ("b", "t"), ("c", "t")), (("n", "t"),))
    rows = [hub_row("8d", pairs("a"), pairs("b", "n")), hub_row("8d", pairs("b"), []), hub_row("8d", pairs("c"), [])]
    assert read_rated(write(tmp_path / "mine.jsonl", "\n".join(rows))) == [whole]
    for name, row in zip(["asia", "europe", "mars"], rows, strict=True):
        write(tmp_path / "folder" / f"{name}.jsonl", row)
    assert read_rated(tmp_path / "folder") == [whole]


def test_toml_is_read_from_a_file_and_from_a_folder(tmp_path: Path) -> None:
    file = write(tmp_path / "places.toml", TOML)
    pairs = ("Paris", "France"), ("Tokyo", "Japan")
    capital = RatedRelation("capital", "places", pairs, (("France", "Paris"),), "X is the capital of Y")
    capital = replace(capital, sentence="X is the capital of Y")  # by itself, the definition
    assert read_rated(file) == [capital]
    write(tmp_path / "zoo.toml", TOML)
    assert read_rated(tmp_path) == [capital, capital]


def test_a_relation_may_be_symmetric_and_held_out_as_a_whole(tmp_path: Path) -> None:
    (relation,) = read_rated(write(tmp_path / "r.toml", f"{TOML}symmetric = true\nheld_out = true\n"))
    assert (relation.is_symmetric, relation.is_for_testing, relation.held_out) == (True, True, ())


def test_semeval_is_read_as_distributed(tmp_path: Path) -> None:
    root = tmp_path / "SemEval-2012-Platinum-Ratings"
    scaled = root / "Phase2AnswersScaled"
    write(scaled / "Phase2Answers-10a.txt", '# made of answers\n50.0 "sign:stop"\n-2.5 "stop:sign"\n 4 "siren:fire"\n')
    write(scaled / "Phase2Answers-1b.txt", '50.0 "ornament:brooch"\n48.0 "weapon:knife"\n')
    write(root / "Phase2Answers" / "Phase2Answers-1b.txt", "raw answers\n")
    expected = [
        RatedRelation("1b", "1", (("weapon", "knife"), ("ornament", "brooch")), ()),
        RatedRelation("10a", "10", (("siren", "fire"), ("sign", "stop")), (("stop", "sign"),)),
    ]
    assert read_rated(root, top=2) == expected
    assert read_rated(scaled, top=2) == expected
    assert read_rated(scaled / "Phase2Answers-1b.txt") == expected[:1]


HEADER = b"relation,category,head,tail,score\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.csv", HEADER + b"r,,a,b,1\nr,,c,d,high\n", "line 3: the score 'high' is not a number"),
        ("p.csv", HEADER + b"r,,a,b,\n", "line 2: the score '' is not a number"),
        ("p.csv", HEADER + b"r,,a,b,nan\n", "line 2: the score 'nan' is not a number"),
        ("p.csv", HEADER + b"r,,a, ,1\n", "line 2: a word of the pair is empty; give both words"),
        ("p.csv", HEADER + b" ,,a,b,1\n", "line 2: no relation; name the columns"),
        ("p.csv", HEADER + b"r,a,b,1\n", "line 2: 4 columns where 5 are expected"),
        ("p.csv", b"head,tail\na,b\n", "line 2: no relation; name the columns relation, head and tail"),
        ("p.csv", b"relation,tail\na,b\n", "line 1: no relation; name the columns relation, head and tail"),
        ("p.csv", HEADER + b"r,,caf\xe9,drink,1\n", "line 2: not UTF-8 text; save the file as UTF-8"),
        ("p.csv", HEADER, "holds no rated pair"),
        (
            "p.jsonl",
            b'{"relation": "r", "head": "a", "tail": "b", "score": null}',
            "line 1: the score None is not a number",
        ),
        ("p.jsonl", b'\n["a", "b"]', "line 2: no relation"),
        ("p.jsonl", b'{"relation": ', "line 1: not JSON"),
        ("p.jsonl", b'{"relation": "r", "head": "a", "tail": 3}', "line 1: 3 is not a word"),
        ("p.jsonl", b'{"positives": []}', "line 1: no relation_type"),
        (
            "p.jsonl",
            b'{"relation_type": "r", "positives": "a:b"}',
            "line 1: no list 'positives'; write pairs",
        ),
        ("p.jsonl", b'{"relation_type": "r", "positives": [["a"]]}', "line 1: expected a pair of words"),
        ("p.toml", b"category = \n", "at line 1"),
        ("p.toml", b"[[relation]]\npositives = []\n", "relation 1 has no name"),
        ("p.toml", b'[[relation]]\nname = "r"\npositives = ["a"]\n', "relation 'r': 'a' has no colon; write head:tail"),
        ("Phase2Answers-1a.txt", b'50.0 "a:b"\nfifty\n', 'line 2: not of the form 50.0 "head:tail"'),
        ("Phase2Answers-1a.txt", b'much "a:b"\n', "line 1: the score 'much' is not a number"),
        ("p.xlsx", b"PK\xff", "line 1: not UTF-8 text"),
    ],
)
def test_bad_data_is_named_with_file_place_and_fix(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(RelvecError) as error:
        read_rated(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_frame_names_the_row() -> None:
    with pytest.raises(RelvecError, match="Row 2: the score 'x' is not a number"):
        read_rated(pd.DataFrame([("r", "", "a", "b", 1), ("r", "", "c", "d", "x")], columns=NAMES))
    with pytest.raises(RelvecError, match="The table holds no rated pair"):
        read_rated(pd.DataFrame([], columns=NAMES))
