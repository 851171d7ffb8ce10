"""The expected accuracy of guessing."""

from collections.abc import Sequence

from relvec.baselines.baseline import FACTS, Baseline, Context, always, choice_scores
from relvec.data.benchmarks.analogy import Question
from relvec.evaluation.systems import Scores, System


class Chance:
    """Knows nothing: every score is nan, and the out-of-vocabulary policy `chance` credits 1 / (number of choices).

    >>> Chance().scores([Question(("a", "b"), (("c", "d"), ("e", "f")), answer=0)])
    [array([nan, nan])]
    """

    name = "Random"
    fingerprint = "chance"

    def scores(self, questions: Sequence[Question]) -> list[Scores]:
        return [choice_scores(question, None) for question in questions]


def _build(settings: object, context: Context) -> System:
    solver = Chance()
    return System(context.name or solver.name, always(solver), facts=FACTS, out_of_vocabulary="chance")


BASELINE = Baseline("random", "a random choice, by its expected accuracy", _build)
