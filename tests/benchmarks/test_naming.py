import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def naming(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    return importlib.import_module("naming")


def test_the_calibration_error_is_how_far_what_was_said_is_from_what_was_true(naming: Any) -> None:
    said, is_true = np.array([0.72, 0.78, 0.1]), np.array([True, False, False])
    assert naming.reliability(said, is_true) == [(0.1, 0.0, 1), (0.75, 0.5, 2)]
    assert naming.calibration_error(said, is_true) == pytest.approx((0.1 + 2 * 0.25) / 3)
