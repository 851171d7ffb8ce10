"""Prototypes learn what a teacher says, and forget neither relations nor calibration."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.naming.test_catalogue import KNOWN, RELATIONS, encode

from relvec.naming import Catalogue
from relvec.naming.building import build_catalogue, held_out
from relvec.pairs import Pair


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return build_catalogue(RELATIONS, encode)


@pytest.fixture
def teaching(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "tools")
    return importlib.import_module("teaching")


def of_both(pairs: Sequence[Pair]) -> NDArray[np.float32]:
    """A teacher to whom pairs of relations 4 and 5 are both, and who knows all others."""
    rows = np.zeros((len(pairs), 11), dtype=np.float32)
    for row, pair in zip(rows, pairs, strict=True):
        number = KNOWN.get(pair, KNOWN.get(pair[::-1], 0))
        turned = 0 if pair in KNOWN or not number else 5
        row[[4 + turned, 5 + turned] if number in {4, 5} else [number + turned]] = 1
    return rows / rows.sum(axis=1, keepdims=True)


def test_a_catalogue_learns_which_relations_its_teacher_takes_for_alike(teaching: Any, catalogue: Catalogue) -> None:
    asked = held_out(RELATIONS, 1)
    learned = teaching.with_learned_prototypes(catalogue, RELATIONS, encode, of_both)
    assert learned.names(encode(asked.related)).argmax(axis=1).tolist() == asked.labels.tolist()
    margins = [margin(each, asked.related[4], 4, 5) for each in (catalogue, learned)]
    assert margins[1] < margins[0]


def margin(catalogue: Catalogue, pair: Pair, row: int, other: int) -> float:
    points = catalogue.space(encode([pair]))
    likelihoods = catalogue.prototypes.log_likelihoods(points, catalogue.space.between)[0]
    return float(likelihoods[row] - likelihoods[other])


def test_learning_is_a_function_of_the_seed(teaching: Any, catalogue: Catalogue) -> None:
    one, two, three = (
        teaching.with_learned_prototypes(catalogue, RELATIONS, encode, of_both, seed=seed) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one.prototypes.means, two.prototypes.means)
    assert not np.array_equal(one.prototypes.means, three.prototypes.means)
