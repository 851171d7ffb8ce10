from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from relvec import RelBERT, RelvecError
from relvec.data.benchmarks.analogy import Question
from relvec.evaluation.analogy import AnalogyTask, Prediction, by_distractor, metrics, predict
from relvec.evaluation.systems import CosineSolver
from relvec.model.cached_vectors import ModelVectors
from relvec.pairs import Pair
from relvec.similarity import Scoring, Vectors

QUESTIONS = [
    Question(("Paris", "France"), (("cup", "tea"), ("Tokyo", "Japan"), ("Japan", "Tokyo")), 1),
    Question(("cup", "tea"), (("Paris", "France"), ("baker", "bread")), 1),
]


class HashedVectors:
    """A vector for each pair, of no meaning; words with a z are unknown. What was asked for is kept."""

    name = "hashed"
    has_direction = True
    fingerprint = "hashed"

    def __init__(self) -> None:
        self.asked: list[list[Pair]] = []

    def vectors(self, pairs: Sequence[Pair]) -> tuple[Vectors, NDArray[np.bool_]]:
        self.asked.append(list(pairs))
        seeds = [[ord(letter) for letter in f"{head}:{tail}"] for head, tail in pairs]
        known = np.array(["z" not in head + tail for head, tail in pairs])
        rows = np.array([np.random.default_rng(seed).normal(size=6) for seed in seeds])
        return (rows * known[:, None]).astype(np.float32), known


def plain_cosine(vectors: HashedVectors, left: Pair, right: Pair) -> float:
    a, b = vectors.vectors([left, right])[0].astype(float)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def turned(pair: Pair) -> Pair:
    return pair[1], pair[0]


@pytest.mark.parametrize("scoring", ["forward", "reverse", "bidirectional"])
def test_scores_are_those_of_a_plain_loop(scoring: Scoring) -> None:
    vectors = HashedVectors()
    for question, scores in zip(QUESTIONS, CosineSolver(vectors, scoring).scores(QUESTIONS), strict=True):
        forward = [plain_cosine(vectors, question.stem, choice) for choice in question.choices]
        reverse = [plain_cosine(vectors, turned(question.stem), turned(choice)) for choice in question.choices]
        expected = {"forward": forward, "reverse": reverse, "bidirectional": np.add(forward, reverse) / 2}[scoring]
        np.testing.assert_allclose(scores, expected, atol=1e-6)


@pytest.mark.parametrize("scoring", ["forward", "reverse", "bidirectional"])
def test_the_model_itself_gives_the_same_answer(tiny: RelBERT, tmp_path: Path, scoring: Scoring) -> None:
    solver = CosineSolver(ModelVectors(tiny, tmp_path), scoring)
    for prediction, question in zip(predict(QUESTIONS, solver.scores(QUESTIONS)), QUESTIONS, strict=True):
        solution = tiny.solve(question.stem, question.choices, scoring=scoring)
        assert prediction.predicted == solution.answer
        assert prediction.scores == pytest.approx(solution.scores, abs=1e-5)


def test_what_has_no_vector_has_no_score() -> None:
    unknown_choice = Question(("a", "b"), (("zebra", "c"), ("d", "e")), 0)
    unknown_stem = Question(("zebra", "b"), (("c", "d"), ("e", "f")), 0)
    choice, stem = CosineSolver(HashedVectors()).scores([unknown_choice, unknown_stem])
    assert np.isnan(choice).tolist() == [True, False]
    assert np.isnan(stem).all()


NAN = float("nan")
ASKED = [
    Question(("a", "b"), (("c", "d"), ("e", "f")), 0, "known and right"),
    Question(("a", "b"), (("c", "d"), ("e", "f")), 0, "partly known and wrong"),
    Question(("a", "b"), (("c", "d"), ("e", "f"), ("g", "h"), ("i", "j")), 2, "unknown"),
]
SCORES = [np.array([0.9, 0.1]), np.array([NAN, 0.1]), np.full(4, NAN)]


def test_an_unknown_question_counts_by_the_policy() -> None:
    credits_of = [
        [p.credit for p in predict(ASKED, SCORES, "wrong")],
        [p.credit for p in predict(ASKED, SCORES, "chance")],
        [p.credit for p in predict(ASKED, SCORES, "fallback", [1, 1, 2])],
        [p.credit for p in predict(ASKED, SCORES, "fallback", [None, None, None])],
    ]
    assert credits_of == [[1, 0, 0], [1, 0, 0.25], [1, 0, 1], [1, 0, 0]]
    assert [p.predicted for p in predict(ASKED, SCORES, "fallback", [1, 1, 2])] == [0, 1, None]


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(RelvecError, match="Unknown policy 'skip'; choose one of wrong, chance, fallback"):
        AnalogyTask(out_of_vocabulary="skip")  # type: ignore[arg-type]


def test_ties_go_to_the_first_choice_and_are_counted() -> None:
    predictions = predict(ASKED[:2], [np.array([0.5, 0.5]), np.array([NAN, 0.5])])
    assert [(p.predicted, p.is_tied) for p in predictions] == [(0, True), (1, False)]
    assert metrics("mine", predictions)["ties"] == 1


def test_equal_choices_tie_whatever_their_place() -> None:
    class Wide(HashedVectors):
        def vectors(self, pairs: Sequence[Pair]) -> tuple[Vectors, NDArray[np.bool_]]:
            rows = [np.random.default_rng(list("".join(pair).encode())).normal(size=768) for pair in pairs]
            return np.array(rows, dtype=np.float32), np.ones(len(pairs), dtype=bool)

    choices = [(f"c{number}", "d") for number in range(4)]
    questions = [Question((f"a{number}", "b"), (*choices, choices[number % 4]), 4) for number in range(40)]
    scores = CosineSolver(Wide()).scores(questions)
    assert all(found[4] == found[number % 4] for number, found in enumerate(scores))


def test_metrics_break_down_by_category_and_relation() -> None:
    def answered(kind: str, credit: float, predicted: int | None = 0) -> Prediction:
        return Prediction(0, kind, 0, predicted, [0.5, None], False, credit)

    predictions = [
        answered("I01 [noun - plural_reg]", 1.0),
        answered("I02 [noun - plural_irreg]", 0.0),
        answered("L09 [antonyms - gradable]", 0.0, predicted=None),
    ]
    found = metrics("bats", predictions)
    assert found["accuracy"] == pytest.approx(100 / 3)
    assert found["interval"][0] <= found["accuracy"] <= found["interval"][1]
    assert (found["questions"], found["out_of_vocabulary"]) == (3, 1)
    assert found["by_category"]["Morphological"] == {"accuracy": 50.0, "questions": 2}
    assert found["by_relation"]["noun:plural"] == {"accuracy": 50.0, "questions": 2}
    assert metrics("mine", [answered("", 1.0)])["by_relation"] == {}


def test_types_are_counted_over_the_questions_that_have_them() -> None:
    choices = (("a", "b"), ("c", "d"), ("e", "f"))
    questions = [
        Question(("x", "y"), choices, 0, "", ("right", "scrambled", "other")),
        Question(("x", "y"), choices, 1, "", ("scrambled", "right", "other")),
        Question(("x", "y"), choices[:2], 0, "", ("right", "scrambled")),
    ]
    scores = [np.array([0.5, 0.9, 0.1]), np.array([0.3, 0.9, np.nan]), np.array([0.2, 0.2])]
    found = by_distractor(questions, predict(questions, scores))
    assert found.keys() == {"scrambled", "other"}
    assert found["scrambled"]["questions"] == 3
    assert found["scrambled"]["accuracy"] == pytest.approx(100 / 3)  # a tie is no win
    assert found["scrambled"]["picked"] == pytest.approx(100 / 3)
    assert (found["other"]["questions"], found["other"]["accuracy"], found["other"]["picked"]) == (2, 100, 0)
