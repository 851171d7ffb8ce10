import json
from dataclasses import replace
from pathlib import Path

import pytest

from relvec.data.overlap import audit, benchmark_pairs, inflected, near_pairs, without_benchmarks, without_testing
from relvec.data.rated import RatedRelation
from relvec.data.sources import load
from relvec.errors import LeftOutWarning


@pytest.fixture
def benchmarks(tmp_path: Path) -> Path:
    question = {"stem": ["Paris", "France"], "choice": [["cup", "tea"], ["Tokyo", "Japan"]], "answer": 1}
    for path, row in (
        ("analogy/mine/test.jsonl", question),
        ("lexrel/mine/valid.jsonl", {"head": "oak", "tail": "tree", "relation": "hyper"}),
        ("lexrel/mine/train.jsonl", {"head": "rose", "tail": "flower", "relation": "hyper"}),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(json.dumps(row))
    return tmp_path


def relation(name: str, *texts: str) -> RatedRelation:
    positives = tuple((head, tail) for head, tail in (text.split(":") for text in texts))
    return RatedRelation(name, "", positives, (("tea", "cup"), ("cup", "milk")))


def test_pairs_of_validation_and_test_parts_are_found_in_either_order_and_case(benchmarks: Path) -> None:
    found = audit([relation("r", "france:paris", "Tree:Oak", "rose:flower", "a:b")], benchmark_pairs(benchmarks))
    assert [(problem.pair, problem.problem) for problem in found] == [
        ("france:paris", "in analogy/mine"),
        ("Tree:Oak", "in lexrel/mine"),
        ("tea:cup", "in analogy/mine"),
    ]


@pytest.mark.parametrize("word", ["light bulb", "Light-Bulbs", "lightbulbs"])
def test_spaces_hyphens_case_and_endings_make_no_other_pair(word: str) -> None:
    assert inflected((word, "shines")) == inflected(("shining", "lightbulb"))


def test_benchmark_pairs_and_relations_they_leave_too_small_are_dropped(benchmarks: Path) -> None:
    kept = relation("kept", "Paris:France", "a:b", "c:d", "e:f")
    small = relation("small", "Paris:France", "Tokyo:Japan", "c:d", "e:f")
    (fair,) = without_benchmarks([kept, small], benchmarks)
    assert fair.positives == (("a", "b"), ("c", "d"), ("e", "f"))
    assert fair.negatives == (("cup", "milk"),)


def test_relations_left_without_negatives_can_be_dropped(benchmarks: Path) -> None:
    bare = RatedRelation("bare", "", (("a", "b"), ("c", "d"), ("e", "f")), (("tea", "cup"),))
    assert without_benchmarks([bare], benchmarks)[0].negatives == ()
    assert without_benchmarks([bare], benchmarks, needs_negatives=True) == []
    negatives = ("tea", "cup"), ("g", "h"), ("i", "j")
    held_out = replace(bare, negatives=negatives, held_out=negatives[1:])
    assert without_benchmarks([held_out], benchmarks, needs_negatives=True) == []
    (left,) = without_benchmarks([replace(held_out, held_out=negatives[2:])], benchmarks, needs_negatives=True)
    assert left.negatives == negatives[1:]


def test_other_forms_of_a_benchmarks_words_are_dropped_too(benchmarks: Path) -> None:
    near = relation("near", "cups:teas", "oaks:trees", "a:b", "c:d", "e:f")
    assert near_pairs([near], benchmark_pairs(benchmarks)) == {("cups", "teas"), ("oaks", "trees")}
    (fair,) = without_benchmarks([near], benchmarks)
    assert fair.positives == (("a", "b"), ("c", "d"), ("e", "f"))


def test_pairs_of_bundled_relations_for_testing_are_left_out_of_other_data() -> None:
    tested = next(relation for relation in load("bundled") if relation.is_for_testing)
    mine = RatedRelation("mine", "", (*tested.positives[:2], ("a", "b"), ("c", "d"), ("e", "f")), ())
    (left,) = without_testing([mine])
    assert left.positives == (("a", "b"), ("c", "d"), ("e", "f"))


def test_a_benchmark_that_is_not_there_is_named(benchmarks: Path) -> None:
    with pytest.warns(LeftOutWarning, match=r"lacks .*analogy/u2.*lexrel/khn.* so nothing is compared with these"):
        benchmark_pairs(benchmarks)
