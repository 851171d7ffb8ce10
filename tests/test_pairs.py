from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from relvec.errors import RelvecError
from relvec.pairs import Prototype, as_pair, as_pairs, as_relations, plain_values

EXPECTED = [("Paris", "France"), ("ice cream", "summer")]


@pytest.mark.parametrize(
    "collection",
    [
        [["Paris", "France"], ("ice cream", "summer")],
        (pair for pair in EXPECTED),
        np.array(EXPECTED),
        pd.DataFrame(EXPECTED, columns=["head", "tail"]),
        pd.DataFrame(EXPECTED),
        pd.DataFrame([(1, "summer", "ice cream"), (2, "France", "Paris")][::-1], columns=["n", "tail", "head"]),
        pa.table({"Subject": ["Paris", "ice cream"], "predicate": ["", ""], "Object": ["France", "summer"]}),
    ],
    ids=["list", "generator", "array", "frame", "frame-of-two-columns", "frame-with-more-columns", "arrow"],
)
def test_any_collection_of_pairs_is_accepted(collection: Any) -> None:
    assert as_relations(collection) == EXPECTED


def test_a_prototype_is_no_pair() -> None:
    with pytest.raises(RelvecError, match="Pair 2: expected a pair of words"):
        as_pairs([("a", "b"), Prototype([("c", "d")])])


@pytest.mark.parametrize(
    ("collection", "message"),
    [
        ("Paris:France", "is not a pair"),
        (["Paris:France"], "Pair 1: expected a pair of words"),
        ([("a", "b"), ("a", "b", "c")], "Pair 2: expected a pair of words"),
        ([("a", "b"), {"a", "b"}], "Pair 2: expected a pair of words"),
        ([("a", "b"), ("a", " ")], "Pair 2: a word of the pair is empty"),
        ([("a", "b"), ("a", None)], "Pair 2: None is not a word"),
        ([("a", "b"), ("a", "caf\udce9")], "Pair 2: .* is not UTF-8 text"),
        ([("a", "b"), ("a", "b" * 10_001)], "Pair 2: a word has 10,001 characters; give at most 10,000"),
        ([("a", "b"), 7], "Pair 2: expected a pair of words"),
        (pd.DataFrame([("a", "b", "c")], columns=["x", "y", "z"]), "has columns x, y, z; name the two word columns"),
        (pd.DataFrame([("a", float("nan"))]), "Pair 1: nan is not a word"),
        (pd.DataFrame([("a", "b", "c")], columns=["head", "tail", "head"]), "several columns head; keep one"),
    ],
)
def test_what_is_no_pair_is_refused(collection: Any, message: str) -> None:
    with pytest.raises(RelvecError, match=message):
        as_relations(collection)


def test_an_empty_prototype_is_refused() -> None:
    with pytest.raises(RelvecError, match="at least one"):
        Prototype([])


def test_a_table_is_no_single_pair() -> None:
    table = pd.DataFrame({"head": ["Paris", "Rome"], "tail": ["France", "Italy"]})
    with pytest.raises(RelvecError, match=r"a table of pairs stands where one pair is expected; .*RelBERT\.prototype"):
        as_pair(table)


def test_missing_values_of_any_column_are_empty() -> None:
    for column in (
        ["a", None],
        pd.Series(["a", pd.NA]),
        pa.chunked_array([["a", None]]),
        np.array(["a", np.nan], object),
    ):
        assert plain_values(column) == ["a", ""]
