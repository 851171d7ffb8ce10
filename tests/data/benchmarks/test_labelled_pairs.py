import json
from pathlib import Path

import pandas as pd
import pytest

from relvec.data.benchmarks.classification import (
    CLASSIFICATION_DATASETS,
    LabelledPairs,
    load_labelled,
    read_labelled,
)
from relvec.errors import RelvecError

ROWS = [("oak", "tree", "HYPER"), ("oak", "pine", "COORD"), ("oak", "ice  cream", "RANDOM")]


def write(path: Path, rows: list[tuple[str, str, str]] | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(rows, str):
        rows = "".join(json.dumps(dict(zip(("head", "tail", "relation"), row, strict=True))) + "\n" for row in rows)
    path.write_text(rows, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _no_data_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RELVEC_DATA", raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))


def test_a_file_keeps_its_order_labels_and_repeats(tmp_path: Path) -> None:
    path = write(tmp_path / "train.jsonl", [*ROWS, ROWS[0]])
    pairs = (("oak", "tree"), ("oak", "pine"), ("oak", "ice cream"), ("oak", "tree"))
    assert read_labelled(path) == LabelledPairs(pairs, ("HYPER", "COORD", "RANDOM", "HYPER"))


def test_a_named_dataset_has_the_classes_of_the_paper(tmp_path: Path) -> None:
    for part in ("train", "valid", "test"):
        write(tmp_path / f"lexrel/root09/{part}.jsonl", ROWS)
    parts = load_labelled("root09", tmp_path)
    assert list(parts) == ["train", "valid", "test"]
    assert all(part.labels == ("hypernym", "co-hyponym", "random") for part in parts.values())


def test_the_data_folder_may_be_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("train", "valid", "test"):
        write(tmp_path / f"lexrel/root09/{part}.jsonl", ROWS)
    monkeypatch.setenv("RELVEC_DATA", str(tmp_path))
    assert load_labelled("root09") == load_labelled("root09", tmp_path)


def test_cogalexv_has_no_validation_part(tmp_path: Path) -> None:
    for part in ("train", "test"):
        write(tmp_path / f"lexrel/cogalexv/{part}.jsonl", [("hot", "cold", "ANT")])
    assert list(load_labelled("cogalexv", tmp_path)) == ["train", "test"]


def test_two_classes_of_a_dataset_never_become_one() -> None:
    for dataset in CLASSIFICATION_DATASETS.values():
        assert len(set(dataset.classes.values())) == len(dataset.classes), dataset.name


def test_a_folder_of_the_user_keeps_its_labels(tmp_path: Path) -> None:
    write(tmp_path / "mine/train.jsonl", ROWS)
    write(tmp_path / "mine/test.jsonl", ROWS[:1])
    parts = load_labelled(str(tmp_path / "mine"))
    assert list(parts) == ["train", "test"]
    assert parts["train"].labels == ("HYPER", "COORD", "RANDOM")


def test_blanks_around_a_label_make_no_class_of_its_own(tmp_path: Path) -> None:
    path = write(tmp_path / "train.jsonl", [("oak", "tree", "HYPER"), ("pine", "tree", "HYPER "), ("a", "b", " HYPER")])
    assert set(read_labelled(path).labels) == {"HYPER"}
    assert read_labelled(path, {"HYPER": "hypernym"}).labels == ("hypernym",) * 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"head": "a", "tail": "b", "relation": "hyper"}\n',
            "line 1: Unknown label 'hyper'; choose one of RANDOM, HYPER",
        ),
        ('\n{"head": "a", "tail": "b", "relation": "COORDS"}', "line 2: Unknown label 'COORDS'; did you mean 'COORD'"),
        ('{"head": "a", "tail": " ", "relation": "HYPER"}', "line 1: a word of the pair is empty; give both words"),
        ('{"head": "a", "tail": 3, "relation": "HYPER"}', "line 1: 3 is not a word"),
        ('{"head": "a", "tail": "b", "relation": " "}', "line 1: no relation; write head, tail and relation"),
        ('{"head": "a", "tail": "b", "relation": null}', "line 1: no relation; write head, tail and relation"),
        ('{"head": "a", "tail": "b", "relation": {}}', "line 1: relation: {} is not a name; write a string"),
        ('{"head": "a", "relation": "HYPER"}', "line 1: no head and tail among head, relation"),
        ('["a", "b", "HYPER"]', "line 1: expected a pair of words"),
        ("a\tb\tHYPER\n", "line 1: not JSON"),
        ("\n", "holds no pair; write one a line"),
    ],
)
@pytest.mark.parametrize("broken", ["train", "test"])
def test_bad_rows_are_named_with_file_line_and_fix(tmp_path: Path, broken: str, text: str, message: str) -> None:
    for part in ("train", "valid", "test"):
        write(tmp_path / f"lexrel/root09/{part}.jsonl", ROWS)
    path = write(tmp_path / f"lexrel/root09/{broken}.jsonl", text)
    with pytest.raises(RelvecError) as error:
        load_labelled("root09", tmp_path)
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_here_says_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match=r"put the file at lexrel/bless/train\.jsonl below your data folder"):
        load_labelled("bless", tmp_path)


def test_a_folder_without_a_test_part_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "mine/train.jsonl", ROWS)
    with pytest.raises(RelvecError, match=r"mine holds no test file; have one such as test\.jsonl"):
        load_labelled(str(tmp_path / "mine"))
    with pytest.raises(RelvecError, match=r"train\.jsonl is a file; give a folder with a train and a test file"):
        load_labelled(str(tmp_path / "mine/train.jsonl"))
    write(tmp_path / "mine/test.jsonl", ROWS)
    write(tmp_path / "mine/test.csv", "head,tail,relation\noak,tree,HYPER\n")
    with pytest.raises(RelvecError, match=r"mine holds test\.csv and test\.jsonl; have one"):
        load_labelled(str(tmp_path / "mine"))


def test_the_parts_of_a_folder_may_be_any_tables(tmp_path: Path) -> None:
    write(tmp_path / "train.csv", "relation,head,tail\nHYPER,oak,tree\n")
    write(tmp_path / "dev.tsv", "subject\tpredicate\tobject\noak\tHYPER\ttree\n")
    pd.DataFrame([("oak", "tree", "HYPER")], columns=["head", "tail", "relation"]).to_parquet(tmp_path / "test.parquet")
    parts = load_labelled(str(tmp_path))
    assert list(parts) == ["train", "valid", "test"]
    assert set(parts.values()) == {LabelledPairs((("oak", "tree"),), ("HYPER",))}


@pytest.mark.parametrize("dataset", ["mine", "lexrel/root09"])
def test_a_label_that_nothing_teaches_is_refused_by_file_and_line(tmp_path: Path, dataset: str) -> None:
    write(tmp_path / f"{dataset}/train.jsonl", ROWS[:2])
    write(tmp_path / f"{dataset}/valid.jsonl", ROWS[:2])
    write(tmp_path / f"{dataset}/test.jsonl", ROWS)
    name = str(tmp_path / dataset) if dataset == "mine" else "root09"
    with pytest.raises(RelvecError, match=r"test\.jsonl, line 3: Unknown label 'RANDOM'; choose one of HYPER, COORD"):
        load_labelled(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "advice"),
    [("blees", "did you mean 'bless'"), ("nothing like it", "or give a folder with a train")],
)
def test_an_unknown_dataset_is_refused(name: str, advice: str) -> None:
    with pytest.raises(RelvecError, match=f"There is no classification benchmark {name}; .*{advice}"):
        load_labelled(name)
