"""Few-shot prompting with scorers whose likelihoods the test writes itself."""

from collections.abc import Sequence

import numpy as np
import pytest

from relvec import RelvecError
from relvec.baselines.baseline import Likelihood
from relvec.baselines.few_shot import FewShot, parse_letter
from relvec.data.benchmarks.analogy import Question
from relvec.evaluation.analogy import predict

POOL = [Question((f"s{k}", f"t{k}"), ((f"x{k}", f"y{k}"), (f"u{k}", f"v{k}")), k % 2) for k in range(12)]
QUESTION = Question(("lull", "trust"), (("balk", "fortitude"), ("betray", "loyalty"), ("cajole", "compliance")), 2)


class Written:
    """A causal model of the test's own: each word costs a nat, or what the test says; a word is a token."""

    name = "written"
    fingerprint = "0" * 64

    def __init__(self, costs: dict[str, float] | None = None) -> None:
        self.asked: list[str] = []
        self._costs = costs or {}

    def likelihoods(self, texts: Sequence[str]) -> list[Likelihood]:
        self.asked += texts
        return [
            Likelihood(-sum(self._costs.get(word, 1.0) for word in text.split()), len(text.split())) for text in texts
        ]


class Talking:
    """A chat model of the test's own, with one answer for everything."""

    name = "talking"
    fingerprint = "1" * 64

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.prompts: list[str] = []

    def answers(self, prompts: Sequence[str]) -> list[str]:
        self.prompts += prompts
        return [self.answer for _ in prompts]


def test_zero_shot_prompt_is_the_stem_alone() -> None:
    assert FewShot(Written()).prompt(QUESTION) == "lull is to trust as"


def test_examples_stand_solved_before_the_stem() -> None:
    prompt = FewShot(Written(), POOL[:1], shots=1).prompt(QUESTION)
    assert prompt == "s0 is to t0 as x0 is to y0\nlull is to trust as"


def test_the_likeliest_continuation_wins() -> None:
    solver = FewShot(Written({"cajole": 0.1}), POOL, shots=3)
    assert predict([QUESTION], solver.scores([QUESTION]))[0].predicted == 2


def test_each_distinct_text_is_asked_once() -> None:
    model = Written()
    FewShot(model, POOL, shots=2).scores([QUESTION, QUESTION])
    assert len(model.asked) == len(set(model.asked)) == 1 + len(QUESTION.choices)


def test_a_score_is_the_mean_over_the_tokens_of_the_choice() -> None:
    question = Question(("lull", "trust"), (("a", "b"), ("rare old", "thing big")), 0)
    scores = FewShot(Written({"rare": 5.0}), POOL, shots=1).scores([question])[0]
    np.testing.assert_allclose(scores, [-1.0, -5 / 3])


def test_the_seed_decides_the_examples() -> None:
    prompts = [FewShot(Written(), POOL, shots=4, seed=seed).prompt(QUESTION) for seed in (0, 0, 1)]
    assert prompts[0] == prompts[1] != prompts[2]
    prints = [FewShot(Written(), POOL, shots=4, seed=seed).fingerprint for seed in (0, 0, 1)]
    assert prints[0] == prints[1] != prints[2]


def test_the_question_itself_is_never_an_example() -> None:
    solver = FewShot(Written(), POOL, shots=11)
    for question in POOL:
        assert question not in solver.examples_for(question)
        assert len(solver.examples_for(question)) == 11


def test_an_example_that_is_the_question_turned_round_is_never_shown() -> None:
    right = QUESTION.choices[QUESTION.answer]
    turned = Question(right, (("x", "y"), QUESTION.stem), 1)
    shuffled = Question(QUESTION.stem, QUESTION.choices[::-1], 0)
    assert FewShot(Written(), [turned, shuffled, POOL[0]], shots=1).examples_for(QUESTION) == [POOL[0]]


def test_too_many_shots_are_an_error() -> None:
    with pytest.raises(RelvecError, match="There are 11 examples for 12 shots; ask for fewer"):
        FewShot(Written(), POOL, shots=12).scores(POOL[:1])


def test_a_chat_model_is_asked_for_a_letter() -> None:
    model = Talking("C.")
    solver = FewShot(model, POOL, shots=1, seed=1)
    (scores,) = solver.scores([QUESTION])
    assert scores.tolist() == [0.0, 0.0, 1.0]
    assert model.prompts[0].endswith(
        "lull : trust\nA. balk : fortitude\nB. betray : loyalty\nC. cajole : compliance\nAnswer:"
    )
    (example,) = solver.examples_for(QUESTION)
    assert f"Answer: {'AB'[example.answer]}\n" in model.prompts[0]


def test_an_answer_without_a_letter_leaves_the_question_open() -> None:
    scores = FewShot(Talking("I do not know.")).scores([QUESTION, QUESTION])
    assert np.isnan(scores).all()
    assert predict([QUESTION], scores[:1])[0].predicted is None


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("B", 1),
        (" c \n", 2),
        ("(B)", 1),
        ("**C. cajole : compliance**", 2),
        ("Answer: B", 1),
        ("A good question. The answer is C.", 2),
        ("the answer is b.", 1),
        ("<think>A? No, B.</think>\nC", 2),
        ("<think>It could be A", None),
        ("The correct pair is betray : loyalty.", 1),
        ("Either A or B", None),
        ("E", None),
        ("", None),
    ],
)
def test_letters_are_found_in_free_answers(answer: str, expected: int | None) -> None:
    assert parse_letter(answer, QUESTION) == expected
