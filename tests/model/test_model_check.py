from collections.abc import Callable

import numpy as np
import pytest

from relvec import RelBERT, RelvecError
from relvec.model.model_check import PROBES, ModelCheck, check_same_model
from relvec.similarity import Vectors

PAIRS = [("Paris", "France"), ("ice cream", "cone"), ("cup", "tea"), ("cats", "dogs"), ("wine", "bread")]


def test_half_precision_of_the_probes_is_enough(tiny: RelBERT) -> None:
    made_by = ModelCheck.of(tiny)
    assert made_by.vectors.shape == (len(PROBES), tiny.dim)
    made_by.check(tiny)


@pytest.mark.parametrize(
    "change", [lambda vectors: -vectors, lambda vectors: vectors * np.nan, lambda vectors: vectors[:, :8]]
)
def test_vectors_of_another_model_are_refused(tiny: RelBERT, change: Callable[[Vectors], Vectors]) -> None:
    vectors = tiny.encode(PAIRS)
    check_same_model(tiny, PAIRS, vectors, "v.npz")
    with pytest.raises(RelvecError, match=r"^v\.npz holds vectors of another model than tiny-roberta \("):
        check_same_model(tiny, PAIRS, change(vectors), "v.npz")


def test_a_pair_that_was_spelled_otherwise_does_not_make_another_model(tiny: RelBERT) -> None:
    vectors = tiny.encode([*PAIRS[:4], ("WINE", "BREAD")])
    check_same_model(tiny, PAIRS, vectors, "v.npz")
