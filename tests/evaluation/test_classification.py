import json
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score
from sklearn.neural_network import MLPClassifier

from relvec import RelBERT
from relvec.data.benchmarks.classification import LabelledPairs, Part
from relvec.errors import RelvecError
from relvec.evaluation import mlp_grid
from relvec.evaluation.classification import (
    ClassificationTask,
    evaluate_classification,
    f1_scores,
    pair_features,
    usable_parts,
)
from relvec.evaluation.mlp_grid import GRID
from relvec.evaluation.systems import vector_system
from relvec.evaluation.task import Outcome
from relvec.model.cached_vectors import ModelVectors
from relvec.pairs import Pair
from relvec.similarity import Vectors
from relvec.storage.cache import cache_info, clear_cache

DIM = 6
RELATIONS = ("antonym", "hypernym", "synonym")


class PlantedVectors:
    """The first letters of a pair decide its vector, up to a little noise; words with a z are unknown."""

    name = "planted"

    def __init__(self, has_direction: bool = True, noise: float = 0.1) -> None:
        self.has_direction = has_direction
        self.asked: list[list[Pair]] = []
        self._noise = noise

    @property
    def fingerprint(self) -> str:
        return f"planted {self._noise}"

    def vectors(self, pairs: Sequence[Pair]) -> tuple[Vectors, NDArray[np.bool_]]:
        self.asked.append(list(pairs))
        rows = np.zeros((len(pairs), DIM), dtype=np.float32)
        known = np.array(["z" not in head + tail for head, tail in pairs], dtype=bool)
        for row, (head, tail) in enumerate(pairs):
            if known[row]:
                rows[row, RELATIONS.index(_relation(head, tail))] = 3.0
                noise = np.random.default_rng([ord(letter) for letter in head + tail])
                rows[row] += noise.normal(0, self._noise, DIM)
        return rows, known


def _relation(head: str, tail: str) -> str:
    letter = min(head[0], tail[0])
    return next(relation for relation in RELATIONS if relation[0] == letter)


def labelled(part: str, count: int) -> LabelledPairs:
    """Pairs of each relation, told by the first letter of both words."""
    pairs = [(f"{relation[0]}{part}{n}", f"{relation[0]}{n}") for n in range(count) for relation in RELATIONS]
    return LabelledPairs(tuple(pairs), tuple(_relation(*pair) for pair in pairs))


def turned_over(part: LabelledPairs) -> LabelledPairs:
    """The same pairs with labels that are all wrong."""
    wrong = {label: RELATIONS[place - 1] for place, label in enumerate(RELATIONS)}
    return LabelledPairs(part.pairs, tuple(wrong[label] for label in part.labels))


def make_parts() -> dict[Part, LabelledPairs]:
    return {"train": labelled("train", 30), "valid": labelled("valid", 5), "test": labelled("test", 10)}


@pytest.fixture
def parts() -> dict[Part, LabelledPairs]:
    return make_parts()


@pytest.fixture(scope="module")
def result() -> Outcome:
    """Of separable pairs; a warning of scikit-learn's would be an error here."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return evaluate_classification(PlantedVectors(), make_parts(), jobs=1)


def test_separable_pairs_are_all_right(result: Outcome) -> None:
    assert result.metrics["micro_f1"] == result.metrics["macro_f1"] == 100
    assert result.metrics["interval"] == [100, 100]
    assert result.metrics["pairs"] == {"train": 90, "valid": 15, "test": 30}
    assert result.metrics["out_of_vocabulary"] == {"train": 0, "valid": 0, "test": 0}
    assert {name: scores["pairs"] for name, scores in result.metrics["by_class"].items()} == dict.fromkeys(
        RELATIONS, 10
    )
    first = {"head": "atest0", "tail": "a0", "relation": "antonym", "predicted": "antonym"}
    assert result.predictions[0] == first
    assert len(result.predictions) == 30
    json.dumps(result.metrics)


def test_the_grid_is_that_of_the_paper(result: Outcome) -> None:
    points = [(point["learning_rate"], point["hidden_size"]) for point in result.metrics["grid"]]
    assert points == [(rate, size) for rate in (1e-3, 1e-4, 1e-5) for size in (100, 150, 200)]


def test_the_configuration_is_chosen_on_the_validation_part_alone(
    parts: dict[Part, LabelledPairs], monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[Any] = []
    original = mlp_grid._fit
    monkeypatch.setattr(mlp_grid, "_fit", lambda *given: (fitted.append(original(*given)), fitted[-1])[1])  # type: ignore[func-returns-value]
    parts["test"] = turned_over(parts["test"])  # the worse a classifier has learnt, the better it does here
    metrics = evaluate_classification(PlantedVectors(), parts, jobs=1).metrics
    scores = [point["valid_micro_f1"] for point in metrics["grid"]]
    assert metrics["configuration"] == metrics["grid"][scores.index(max(scores))]
    truth = parts["test"].labels
    on_test = [f1_score(truth, result["predicted"], average="micro") for _, result in fitted]
    assert metrics["micro_f1"] == 0
    assert max(on_test) > 0.2


def test_of_equal_configurations_the_first_is_chosen(result: Outcome) -> None:
    grid = result.metrics["grid"]
    assert grid[0]["valid_micro_f1"] == grid[1]["valid_micro_f1"] == 100
    assert result.metrics["configuration"] == grid[0]


def test_without_a_validation_part_the_defaults_are_fitted_once(parts: dict[Part, LabelledPairs]) -> None:
    del parts["valid"]
    metrics = evaluate_classification(PlantedVectors(), parts, jobs=1).metrics
    (only,) = metrics["grid"]
    assert metrics["configuration"] == only
    assert (only["learning_rate"], only["hidden_size"], only["valid_micro_f1"]) == (0.001, 100, None)
    assert metrics["pairs"] == {"train": 90, "test": 30}
    plain = MLPClassifier(random_state=0)
    assert (plain.learning_rate_init, plain.hidden_layer_sizes, plain.solver) == (0.001, (100,), "adam")


def test_without_the_grid_the_defaults_are_fitted_once_and_the_record_says_so(
    parts: dict[Part, LabelledPairs], result: Outcome
) -> None:
    found = evaluate_classification(PlantedVectors(), parts, grid=False, jobs=1)
    assert found.metrics["grid"] == result.metrics["grid"][:1]
    system = vector_system(PlantedVectors(), {})
    assert ClassificationTask(grid=False).settings(system, parts)["perceptron"] == "defaults"
    assert "perceptron" not in ClassificationTask().settings(system, parts)


def test_predictions_are_those_of_plain_scikit_learn(parts: dict[Part, LabelledPairs]) -> None:
    del parts["valid"]
    noisy = PlantedVectors(noise=3.0)
    result = evaluate_classification(noisy, parts, seed=4)
    train, test = (pair_features(noisy, parts[part].pairs)[0] for part in ("train", "test"))
    plain = MLPClassifier(random_state=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain.fit(train, parts["train"].labels)
    assert [row["predicted"] for row in result.predictions] == plain.predict(test).tolist()
    assert result.metrics["configuration"]["converged"] == (plain.n_iter_ < 200)
    assert result.metrics["configuration"]["iterations"] == plain.n_iter_


def test_running_out_of_iterations_is_told_without_a_warning(result: Outcome) -> None:
    converged = [point["converged"] for point in result.metrics["grid"]]
    assert converged[-3:] == [False] * 3  # so small a rate takes more than 200 epochs


def test_jobs_do_not_change_the_result(parts: dict[Part, LabelledPairs]) -> None:
    noisy = PlantedVectors(noise=2.0)
    parts["train"] = labelled("train", 8)
    assert evaluate_classification(noisy, parts, jobs=1) == evaluate_classification(noisy, parts, jobs=2)


def test_the_same_seed_gives_the_same_result_and_another_another(parts: dict[Part, LabelledPairs]) -> None:
    del parts["valid"]

    def run(seed: int) -> Outcome:
        return evaluate_classification(PlantedVectors(noise=3.0), parts, seed=seed, jobs=1)

    assert run(1) == run(1)
    assert run(1).predictions != run(2).predictions


def test_a_killed_grid_goes_on_without_fitting_finished_points_again(
    parts: dict[Part, LabelledPairs], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts["train"] = labelled("train", 8)
    whole = evaluate_classification(PlantedVectors(noise=2.0), parts, jobs=1)
    clear_cache()
    original = mlp_grid._fit
    fitted: list[Any] = []

    def fit(point: Any, data: Any, seed: int) -> Any:
        if len(fitted) == 4:
            raise KeyboardInterrupt
        fitted.append(point)
        return original(point, data, seed)

    monkeypatch.setattr(mlp_grid, "_fit", fit)
    with pytest.raises(KeyboardInterrupt):
        evaluate_classification(PlantedVectors(noise=2.0), parts, jobs=1)
    assert sum(space.entries for space in cache_info()) == 4
    before, fitted[:] = set(fitted), []
    monkeypatch.setattr(mlp_grid, "_fit", lambda *given: (fitted.append(given[0]), original(*given))[1])  # type: ignore[func-returns-value]
    resumed = evaluate_classification(PlantedVectors(noise=2.0), parts, jobs=1)
    assert before.isdisjoint(fitted)
    assert before | set(fitted) == set(GRID)
    assert resumed == whole


def test_results_of_other_vectors_data_or_seeds_are_not_mixed_in(parts: dict[Part, LabelledPairs]) -> None:
    def count(vectors: PlantedVectors, **options: Any) -> int:
        evaluate_classification(vectors, parts, jobs=1, **options)
        return sum(space.entries for space in cache_info())

    del parts["valid"]
    assert count(PlantedVectors()) == 1
    assert count(PlantedVectors()) == 1
    assert count(PlantedVectors(noise=0.2)) == 2
    assert count(PlantedVectors(has_direction=False)) == 3
    assert count(PlantedVectors(), seed=1) == 4
    assert count(PlantedVectors(), exclude_labels=["synonym"]) == 5


def test_a_fit_that_is_interrupted_is_no_result(
    parts: dict[Part, LabelledPairs], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(MLPClassifier, "_backprop", interrupted)  # scikit-learn makes a warning of it
    with pytest.raises(KeyboardInterrupt):
        evaluate_classification(PlantedVectors(), parts, jobs=1)
    assert cache_info() == []


def test_both_directions_are_seen_only_where_vectors_have_one() -> None:
    pairs = [("a1", "h2"), ("s1", "s2")]
    backward = [("h2", "a1"), ("s2", "s1")]
    one, _ = pair_features(PlantedVectors(has_direction=False), pairs)
    two, _ = pair_features(PlantedVectors(has_direction=True), pairs)
    turned, _ = pair_features(PlantedVectors(has_direction=False), backward)
    assert one.shape == (2, DIM)
    np.testing.assert_array_equal(two, np.hstack([one, turned]))
    assert two.dtype == np.float32


def test_unknown_pairs_are_zero_and_counted(parts: dict[Part, LabelledPairs]) -> None:
    features, known = pair_features(PlantedVectors(), [("a1", "z"), ("a1", "a2")])
    assert known.tolist() == [False, True]
    assert not features[0].any()
    test = LabelledPairs(
        (*parts["test"].pairs, ("a", "zoo"), ("zoo", "a")), (*parts["test"].labels, "antonym", "antonym")
    )
    metrics = evaluate_classification(PlantedVectors(), {"train": parts["train"], "test": test}).metrics
    assert metrics["out_of_vocabulary"] == {"train": 0, "test": 2}


def test_a_model_is_classified_by_both_of_its_directions(tiny: RelBERT, tmp_path: Path) -> None:
    features, _ = pair_features(ModelVectors(tiny, tmp_path), [("Paris", "France")])
    expected = tiny.encode([("Paris", "France"), ("France", "Paris")]).ravel()
    np.testing.assert_allclose(features[0], expected, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_scores_equal_those_of_scikit_learn(seed: int) -> None:
    random = np.random.default_rng(seed)
    truth = random.choice(["a", "b", "c", "d"], 60, p=[0.6, 0.2, 0.2, 0.0]).tolist()
    predicted = random.choice(["a", "b", "d"], 60).tolist()
    scores = f1_scores(truth, predicted)
    assert scores["macro_f1"] == pytest.approx(100 * f1_score(truth, predicted, average="macro"))
    assert scores["micro_f1"] == pytest.approx(100 * f1_score(truth, predicted, average="micro"))
    by_class = 100 * f1_score(truth, predicted, average=None)
    assert [each["f1"] for each in scores["by_class"].values()] == pytest.approx(list(by_class))
    assert sum(each["pairs"] for each in scores["by_class"].values()) == 60
    low, high = scores["interval"]
    assert low < scores["micro_f1"] < high


def test_excluded_labels_are_gone_from_every_part(parts: dict[Part, LabelledPairs]) -> None:
    left = usable_parts(parts, ["synonym"])
    assert {part: len(labelled.pairs) for part, labelled in left.items()} == {"train": 60, "valid": 10, "test": 20}
    assert all(set(labelled.labels) == {"antonym", "hypernym"} for labelled in left.values())
    del parts["valid"]
    metrics = evaluate_classification(PlantedVectors(), parts, exclude_labels=["synonym"]).metrics
    assert list(metrics["by_class"]) == ["antonym", "hypernym"]
    assert metrics["pairs"] == {"train": 60, "test": 20}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["synonym", "antonym"], "All training pairs have the same label; give pairs of at least two"),
        (RELATIONS, "There is no pair in the train part; give some"),
    ],
)
def test_what_leaves_nothing_to_learn_is_named(
    parts: dict[Part, LabelledPairs], labels: list[str], message: str
) -> None:
    with pytest.raises(RelvecError, match=message):
        usable_parts(parts, labels)


def test_processes_that_share_the_grid_do_not_load_torch() -> None:
    code = "import sys, relvec.evaluation.mlp_grid; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("package", ["sklearn", "joblib"])
def test_a_missing_package_is_named_before_anything_is_encoded(
    parts: dict[Part, LabelledPairs], monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    vectors = PlantedVectors()
    with pytest.raises(RelvecError, match=r"pip install 'relvec\["):
        evaluate_classification(vectors, parts)
    assert not vectors.asked
