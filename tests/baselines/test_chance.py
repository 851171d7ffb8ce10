import pytest

from relvec.baselines.chance import Chance
from relvec.data.benchmarks.analogy import Question
from relvec.evaluation.analogy import metrics, predict


def test_the_accuracy_is_the_mean_of_one_over_the_choices() -> None:
    questions = [Question(("a", "b"), (("c", "d"),) * choices, answer=0) for choices in (2, 4, 5)]
    found = metrics("mine", predict(questions, Chance().scores(questions), "chance"))
    assert found["accuracy"] == pytest.approx(100 * (1 / 2 + 1 / 4 + 1 / 5) / 3)
    assert found["out_of_vocabulary"] == 3
