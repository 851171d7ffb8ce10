from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from relvec import RelBERT, RelvecError
from relvec.model.model_check import PROBE_PAIRS, ModelCheck, check_same_model
from relvec.similarity import Vectors

PAIRS = [("Paris", "France"), ("ice cream", "cone"), ("cup", "tea"), ("cats", "dogs"), ("wine", "bread")]


def test_half_precision_of_the_probes_is_enough(tiny: RelBERT) -> None:
    made_by = ModelCheck.of(tiny)
    assert made_by.vectors.shape == (len(PROBE_PAIRS), tiny.dim)
    made_by.check(tiny)


@pytest.mark.parametrize(
    "change", [lambda vectors: -vectors, lambda vectors: vectors * np.nan, lambda vectors: vectors[:, :8]]
)
def test_vectors_of_another_model_are_refused(tiny: RelBERT, change: Callable[[Vectors], Vectors]) -> None:
    vectors = tiny.encode(PAIRS)
    check_same_model(tiny, PAIRS, vectors, "v.npz")
    with pytest.raises(RelvecError, match=r"^v\.npz holds vectors made by a model other than tiny-roberta \("):
        check_same_model(tiny, PAIRS, change(vectors), "v.npz")


def test_a_pair_that_was_spelled_otherwise_does_not_make_another_model(tiny: RelBERT) -> None:
    vectors = tiny.encode([*PAIRS[:4], ("WINE", "BREAD")])
    check_same_model(tiny, PAIRS, vectors, "v.npz")


@pytest.mark.parametrize(("suffix", "fix"), [("-onnx-2-int8", "try --dtype int8"), ("", "load it as it was then")])
def test_other_vectors_of_the_same_name_are_told_as_another_precision(
    tiny: RelBERT, tiny_folder: Path, suffix: str, fix: str
) -> None:
    made_by = ModelCheck.of(tiny)
    made_by = ModelCheck(**{**made_by.as_dict(), "fingerprint": made_by.fingerprint + suffix})
    with pytest.raises(RelvecError, match=rf"made with another precision, prompt or weights \(cosine .*\); {fix}"):
        made_by.check(RelBERT.from_pretrained(tiny_folder, pooling="mask"))
