"""The analogical proportion score on language models whose likelihoods the test writes itself."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations
from zlib import crc32

import numpy as np
import pytest

from relvec.baselines.baseline import Likelihood
from relvec.baselines.proportion import (
    NEGATIVE_ORDERS,
    ORDERS,
    POSITIVE_ORDERS,
    TEMPLATES,
    MarginalPerplexity,
    MutualInformation,
    Perplexity,
    PerplexityTable,
    ProportionScore,
    ProportionSettings,
    Score,
    aggregate,
    in_template,
    log_perplexity_tables,
)
from relvec.baselines.proportion_tuning import Grid, right_answers, tune
from relvec.data.benchmarks.analogy import Question
from relvec.evaluation.analogy import predict
from relvec.evaluation.systems import Scores

QUESTIONS = [
    Question(("word", "language"), (("paint", "portrait"), ("poetry", "rhythm"), ("note", "music")), 2),
    Question(("Paris", "France"), (("cup", "tea"), ("Tokyo", "Japan")), 1),
    Question(("baker", "bread"), (("winemaker", "wine"), ("dog", "bone"), ("ice", "cold"), ("cat", "mouse")), 0),
]


class Written:
    """A language model that the test writes: the log-perplexity of a text by a function of it."""

    name = "written"
    fingerprint = "0" * 64

    def __init__(self, log_perplexity: Callable[[str], float]) -> None:
        self.asked: list[str] = []
        self._log_perplexity = log_perplexity

    def likelihoods(self, texts: Sequence[str]) -> list[Likelihood]:
        self.asked += texts
        return [Likelihood(-4 * self._log_perplexity(text), 4) for text in texts]


def noise(text: str) -> float:
    """A fixed number from 1 to 3 for each text."""
    return 1 + 2 * crc32(text.encode()) / 2**32


def likes(*wanted: str) -> Callable[[str], float]:
    return lambda text: 0.5 if text in wanted else noise(text)


def right_texts(template: str, order: Sequence[int] = (0, 1, 2, 3)) -> list[str]:
    return [in_template(template, (*q.stem, *q.choices[q.answer]), order) for q in QUESTIONS]


def answers(scores: Sequence[Scores]) -> list[int | None]:
    return [prediction.predicted for prediction in predict(QUESTIONS, scores)]


RIGHT: list[int | None] = [question.answer for question in QUESTIONS]


def test_positive_orders_are_exactly_those_that_keep_the_analogy() -> None:
    def neighbours(order: tuple[int, ...]) -> set[tuple[int, ...]]:
        a, b, c, d = order
        return {(c, d, a, b), (a, c, b, d)}  # symmetry of `as`, exchange of the means

    kept: set[tuple[int, ...]] = {(0, 1, 2, 3)}
    while grown := {other for order in kept for other in neighbours(order)} - kept:
        kept |= grown
    assert set(POSITIVE_ORDERS) == kept
    assert len(POSITIVE_ORDERS) == 8


def test_orders_are_all_24_and_distinct() -> None:
    assert len(NEGATIVE_ORDERS) == 16
    assert sorted(ORDERS) == sorted(permutations(range(4)))


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_holds_the_four_words_in_order(template: str) -> None:
    text = in_template(template, ("Aa", "Bb", "Cc", "{d}"))
    assert sorted(text.index(word) for word in ("Aa", "Bb", "Cc", "{d}")) == [
        text.index(word) for word in ("Aa", "Bb", "Cc", "{d}")
    ]


def test_untuned_setting_takes_the_choice_of_least_perplexity_and_asks_for_nothing_else() -> None:
    model = Written(likes(*right_texts("to-as")))
    solver = ProportionScore(model)
    assert answers(solver.scores(QUESTIONS)) == RIGHT
    assert model.asked == [in_template("to-as", (*q.stem, *choice)) for q in QUESTIONS for choice in q.choices]


def test_each_distinct_text_is_asked_once() -> None:
    model = Written(noise)
    settings = ProportionSettings("rel-same", MarginalPerplexity(0.2, 0.4), "mean", "max", 0.6)
    ProportionScore(model, settings).scores([*QUESTIONS, *QUESTIONS])
    combinations = sum(len(question.choices) ** 2 for question in QUESTIONS)
    assert len(model.asked) == len(set(model.asked)) == 24 * combinations


def test_a_single_order_and_a_single_negative_one_are_all_that_is_asked_for() -> None:
    model = Written(noise)
    ProportionScore(model, ProportionSettings("to-as", Perplexity(), "index-3", "index-15", 0.2)).scores(QUESTIONS[:1])
    words = [(*QUESTIONS[0].stem, *choice) for choice in QUESTIONS[0].choices]
    assert set(model.asked) == {in_template("to-as", w, order) for w in words for order in (ORDERS[3], ORDERS[23])}


@pytest.mark.parametrize("order", range(8))
def test_the_answer_planted_in_one_order_is_found_by_it(order: int) -> None:
    model = Written(likes(*right_texts("to-what", POSITIVE_ORDERS[order])))
    solver = ProportionScore(model, ProportionSettings("to-what", positive=f"index-{order}"))
    assert answers(solver.scores(QUESTIONS)) == RIGHT


def test_a_choice_that_is_as_natural_in_a_wrong_order_loses_by_beta() -> None:
    wrong = [in_template("to-as", (*q.stem, *q.choices[q.answer - 1]), order) for q in QUESTIONS for order in ORDERS]
    model = Written(lambda text: 0.5 if text in wrong else 0.9 if text in right_texts("to-as") else noise(text))
    assert answers(ProportionScore(model).scores(QUESTIONS)) != RIGHT
    with_negatives = ProportionSettings(negative="max", beta=1.0)
    assert answers(ProportionScore(model, with_negatives).scores(QUESTIONS)) == RIGHT


def plain_score(name: str, f: PerplexityTable, i: int, alphas: Sequence[float], way: str) -> float:
    """The formulas of the docstrings, one number at a time."""
    whole, head, tail = f.sum(), f[i].sum(), f[:, i].sum()
    ppl = -math.log(f[i, i] / sum(f[k, k] for k in range(len(f))))
    if name == "ppl":
        return ppl
    if name == "mppl":
        return ppl + alphas[0] * math.log(head / whole) + alphas[1] * math.log(tail / whole)
    ways = np.array([-math.log(f[i, i] / side) + alphas[0] * math.log(side / whole) for side in (head, tail)])
    return float(aggregate(way, ways))


@pytest.mark.parametrize("way", ["mean", "max", "min", "index-0", "index-1"])
@pytest.mark.parametrize("alphas", [(0.0, 0.0), (0.4, -0.2), (-0.4, 0.2)])
def test_scores_equal_their_formulas(alphas: tuple[float, float], way: str) -> None:
    f = np.random.default_rng(0).uniform(1, 900, size=(24, 5, 5))
    scores: list[Score] = [Perplexity(), MutualInformation(alphas[0], way), MarginalPerplexity(*alphas)]
    for score in scores:
        expected = np.array([[plain_score(score.name, table, i, alphas, way) for i in range(5)] for table in f])
        np.testing.assert_allclose(score(np.log(f)), expected, rtol=1e-9)


def test_marginal_perplexity_without_weights_is_perplexity() -> None:
    table = np.random.default_rng(0).uniform(0, 9, size=(24, 4, 4))
    np.testing.assert_allclose(MarginalPerplexity()(table), Perplexity()(table))


def test_huge_perplexities_do_not_overflow() -> None:
    table = np.array([[2000.0, 1000.0], [1000.0, 1999.0]])
    for score in (Perplexity(), MutualInformation(0.2), MarginalPerplexity(0.2, 0.2)):
        assert np.isfinite(score(table)).all()
    assert np.argmax(Perplexity()(table)) == 1


def test_tables_hold_every_order_and_mixed_choice() -> None:
    (table,) = log_perplexity_tables(Written(noise), QUESTIONS[:1], "to-as")
    head, tail = QUESTIONS[0].choices[0][0], QUESTIONS[0].choices[2][1]
    text = in_template("to-as", (*QUESTIONS[0].stem, head, tail), ORDERS[11])
    assert table.shape == (24, 3, 3)
    assert table[11, 0, 2] == pytest.approx(noise(text))


def test_fingerprint_follows_the_settings() -> None:
    tried = [
        ProportionSettings(),
        ProportionSettings("to-what"),
        ProportionSettings(score=MarginalPerplexity(0.2)),
        ProportionSettings(beta=0.2),
    ]
    assert len({ProportionScore(Written(noise), settings).fingerprint for settings in tried}) == len(tried)


PLANTED = ProportionSettings("what-to", MarginalPerplexity(-0.4, 0.2), "index-5", "index-9", 0.6)


def planted(settings: ProportionSettings) -> Written:
    """Noise, but where the settings look, the right choice is natural in its order and odd in the wrong one."""
    positive = right_texts(settings.template, POSITIVE_ORDERS[int(settings.positive.removeprefix("index-"))])
    negative = right_texts(settings.template, NEGATIVE_ORDERS[int(settings.negative.removeprefix("index-"))])
    return Written(lambda text: 0.0 if text in positive else 9.0 if text in negative else noise(text))


def test_tuning_finds_the_planted_template_and_orders() -> None:
    grid = Grid(scores=(PLANTED.score,), betas=(0.0, 0.6), positive=("index-0", "index-5"), negative=("index-9",))
    model = Written(lambda text: 0.2 if text in right_texts("what-to", POSITIVE_ORDERS[5]) else text.count("e") + 1.0)
    found = tune(model, QUESTIONS, grid)
    assert (found.settings.template, found.settings.positive, found.accuracy) == ("what-to", "index-5", 100.0)
    assert answers(ProportionScore(model, found.settings).scores(QUESTIONS)) == RIGHT


def test_tuning_counts_what_each_setting_of_the_grid_answers() -> None:
    model = planted(PLANTED)
    grid = Grid(
        templates=("to-as", "what-to"),
        scores=(Perplexity(), MutualInformation(0.2, "min"), PLANTED.score),
        betas=(0.0, 0.6),
        positive=("index-5", "mean", "max"),
        negative=("index-9", "min"),
    )
    counted = []
    for template, score, beta, right in right_answers(model, QUESTIONS, grid):
        assert right.shape == (3, 2 if beta else 1)
        for (positive, negative), count in np.ndenumerate(right):
            settings = ProportionSettings(template, score, grid.positive[positive], grid.negative[negative], beta)
            predicted = answers(ProportionScore(model, settings).scores(QUESTIONS))
            assert count == sum(one == two for one, two in zip(predicted, RIGHT, strict=True))
            counted.append((int(count), settings))
    most = max(count for count, _ in counted)
    found = tune(model, QUESTIONS, grid)
    assert (found.accuracy, found.ties) == (100 * most / len(QUESTIONS), [count for count, _ in counted].count(most))
    assert found.settings == next(settings for count, settings in counted if count == most)


def test_ties_go_to_the_first_of_the_grid() -> None:
    found = tune(Written(lambda text: 1.0), QUESTIONS)
    grid = Grid()
    by_beta = sum(len(grid.negative) if beta else 1 for beta in grid.betas)
    assert found.settings == ProportionSettings()
    assert found.ties == len(grid.templates) * len(grid.scores) * len(grid.positive) * by_beta


def test_tuning_asks_for_each_distinct_text_once() -> None:
    model = Written(noise)
    tune(model, QUESTIONS, replace(Grid(), templates=("to-as", "as-what"), scores=(Perplexity(), MutualInformation())))
    combinations = sum(len(question.choices) ** 2 for question in QUESTIONS)
    assert len(model.asked) == len(set(model.asked)) == 2 * 24 * combinations


def test_tuning_plain_perplexity_without_negatives_asks_for_little() -> None:
    model = Written(noise)
    tune(model, QUESTIONS, Grid(templates=("to-as",), scores=(Perplexity(),), betas=(0.0,)))
    assert len(model.asked) == 8 * sum(len(question.choices) for question in QUESTIONS)
