"""The project's own questions: the file is what the generator makes, and every question keeps its promises."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relvec.data.benchmarks.analogy import ANALOGY_DATASETS, Part, load_questions
from relvec.data.rated import RatedRelation
from relvec.data.sources import load

PARTS: tuple[Part, Part] = ("valid", "test")


@pytest.fixture(scope="module")
def maker() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2] / "tools")
        yield importlib.import_module("make_questions")


@pytest.fixture(scope="module")
def bundled() -> dict[str, RatedRelation]:
    return {relation.name: relation for relation in load("bundled")}


@pytest.mark.parametrize("part", PARTS)
def test_the_file_is_what_the_generator_makes(part: Part, bundled: dict[str, RatedRelation], maker: Any) -> None:
    questions = load_questions("bundled", part)
    assert questions == maker.make_questions(list(bundled.values()), part)
    assert len(questions) == ANALOGY_DATASETS["bundled"].counts[part]


def test_there_are_2000_questions_on_all_relations_kept_for_testing(bundled: dict[str, RatedRelation]) -> None:
    valid, test = (load_questions("bundled", part) for part in PARTS)
    assert len(valid) + len(test) >= 2000
    kinds = [{question.kind for question in questions} for questions in (valid, test)]
    assert not kinds[0] & kinds[1]
    assert kinds[0] | kinds[1] == {name for name, relation in bundled.items() if relation.is_for_testing}


@pytest.mark.parametrize("part", PARTS)
def test_each_wrong_choice_is_of_its_type_and_wrong(part: Part, bundled: dict[str, RatedRelation], maker: Any) -> None:
    for question in load_questions("bundled", part):
        relation = bundled[question.kind]
        known = set(relation.positives)
        heads, tails = ({pair[side] for pair in known} for side in (0, 1))
        assert question.stem in known
        assert len(set(question.choices)) == len(question.choices) >= 4
        assert question.types.count("right") == 1
        assert question.types[question.answer] == "right"
        for (head, tail), kind in zip(question.choices, question.types, strict=True):
            assert not {head, tail} & set(question.stem)
            if kind == "right":
                assert (head, tail) in known
                continue
            assert (head, tail) not in known
            assert not (relation.is_symmetric and (tail, head) in known)
            assert kind in maker.TYPES
            if kind == "scrambled":
                assert head in heads
                assert tail in tails
            if kind == "same-side":
                assert {head, tail} <= heads or {head, tail} <= tails
            if kind == "reversed":
                assert (tail, head) in known
        if relation.category in maker.ALIKE_WITHIN:
            assert "sibling" not in question.types
