import numpy as np
import pytest

from relvec.evaluation.intervals import bootstrap_interval


def test_the_interval_covers_the_mean_and_stays_within_the_values() -> None:
    values = np.random.default_rng(0).random(200)
    low, high = bootstrap_interval(values)
    assert values.min() < low < values.mean() < high < values.max()


def test_the_interval_is_that_of_drawing_the_values_one_by_one() -> None:
    values = np.random.default_rng(1).choice([0.0, 0.25, 1.0], size=80)
    drawn = np.random.default_rng(2).choice(values, size=(20_000, 80)).mean(axis=1)
    assert bootstrap_interval(values) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.01)


def test_the_same_seed_gives_the_same_interval() -> None:
    values = np.random.default_rng(0).random(50)
    assert bootstrap_interval(values) == bootstrap_interval(values)
    assert bootstrap_interval(values) != bootstrap_interval(values, seed=1)


def test_more_questions_make_it_narrower_and_a_higher_level_wider() -> None:
    values = np.array([1.0, 0.0] * 50)
    few, many, sure = (
        bootstrap_interval(values),
        bootstrap_interval(np.tile(values, 10)),
        bootstrap_interval(values, level=0.99),
    )
    assert many[1] - many[0] < few[1] - few[0] < sure[1] - sure[0]


def test_equal_values_leave_no_doubt() -> None:
    assert bootstrap_interval(np.ones(5)) == (1.0, 1.0)
