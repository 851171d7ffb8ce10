"""Lexical relation classification with frozen vectors (sections 4.2 and 5.2 of the paper), and its scores."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from relvec.data.benchmarks.classification import CLASSIFICATION_DATASETS, LabelledPairs, Part, load_labelled
from relvec.data.benchmarks.registry import benchmark_name
from relvec.errors import RelvecError, one_of
from relvec.evaluation.mlp_grid import DEFAULT_POINT, GRID, GridData, check_scikit_learn, fit_grid
from relvec.evaluation.records import Record
from relvec.evaluation.systems import System
from relvec.evaluation.task import Outcome, Task, percent_interval, vectors_of
from relvec.model.cached_vectors import Known, ModelVectors, PairVectors
from relvec.pairs import Pair
from relvec.similarity import Vectors

if TYPE_CHECKING:
    from relvec.evaluation.fine_tuning import FineTuning

Parts = Mapping[Part, LabelledPairs]


def evaluate_classification(
    vectors: PairVectors,
    parts: Parts,
    *,
    exclude_labels: Collection[str] = (),
    grid: bool = True,
    seed: int = 0,
    jobs: int | None = None,
) -> Outcome:
    """Train a perceptron on the training part, choose its settings on the validation part, and test it.

    Without the `grid` its settings are scikit-learn's own. Features are neither scaled nor centred, as in the paper. A
    run that was killed resumes with the settings that are not fitted yet. `jobs` is how many are fitted at once (all
    cores by default).

    >>> from relvec import RelBERT
    >>> from relvec.model.cached_vectors import ModelVectors
    >>> vectors = ModelVectors(RelBERT.from_pretrained(tiny_model), "cache")
    >>> train = LabelledPairs((("cat", "animal"), ("hot", "cold")), ("hypernym", "antonym"))
    >>> result = evaluate_classification(vectors, {"train": train, "test": train}, jobs=1)
    >>> result.metrics["micro_f1"], result.predictions[0]["predicted"]
    (100.0, 'hypernym')
    """
    check_scikit_learn()
    parts = usable_parts(parts, exclude_labels)
    features, known = pair_features(vectors, [pair for part in parts.values() for pair in part.pairs])
    ends = np.cumsum([len(part.pairs) for part in parts.values()])[:-1]
    rows = dict(zip(parts, np.split(features, ends), strict=True))
    data = GridData(
        train=rows["train"],
        train_labels=np.array(parts["train"].labels),
        valid=rows.get("valid", features[:0]),
        valid_labels=np.array(parts["valid"].labels if "valid" in parts else ()),
        test=rows["test"],
    )
    decisive = (vectors.fingerprint, vectors.has_direction, dict(parts), seed, version("scikit-learn"))
    key = hashlib.sha256(repr(decisive).encode()).hexdigest()
    fitted = fit_grid(data, seed, jobs, key, GRID if grid else (DEFAULT_POINT,))
    # By micro F1: the rarest class of a validation part has a dozen pairs, on which macro F1 would mostly rest.
    best = max(fitted, key=lambda result: result.valid_micro_f1 or 0.0)
    unknown = {part: int(np.sum(~found)) for part, found in zip(parts, np.split(known, ends), strict=True)}
    listed = [{name: value for name, value in asdict(point).items() if name != "predicted"} for point in fitted]
    chosen = listed[fitted.index(best)]
    return classification_outcome(
        parts, best.predicted, vectors.fingerprint, out_of_vocabulary=unknown, configuration=chosen, grid=listed
    )


def pair_features(vectors: PairVectors, pairs: Sequence[Pair]) -> tuple[Vectors, Known]:
    """The features of each pair, and whether they are known.

    Features are r(h, t), or [r(h, t); r(t, h)] if the vectors have a direction. Unknown pairs have zeros.

    >>> from relvec import RelBERT
    >>> from relvec.model.cached_vectors import ModelVectors
    >>> features, known = pair_features(ModelVectors(RelBERT.from_pretrained(tiny_model), "cache"), [("a", "b")])
    >>> features.shape, known.tolist()
    ((1, 32), [True])
    """
    ways = [list(pairs), [(tail, head) for head, tail in pairs]] if vectors.has_direction else [list(pairs)]
    found, known = vectors.vectors([pair for way in ways for pair in way])
    features = np.hstack(np.split(found, len(ways)))
    return features.astype(np.float32, copy=False), np.all(np.split(known, len(ways)), axis=0)


def usable_parts(parts: Parts, exclude_labels: Collection[str] = (), where: str = "") -> dict[Part, LabelledPairs]:
    """The parts without the pairs of some labels. There must be pairs to test and two labels to learn.

    `where` starts the message if there are not: the name of the dataset.

    >>> pairs = LabelledPairs((("a", "b"), ("c", "d"), ("e", "f")), ("synonym", "part of", "antonym"))
    >>> usable_parts({"train": pairs, "test": pairs}, exclude_labels=["part of"])["test"].labels
    ('synonym', 'antonym')
    """
    left = {}
    for part, labelled in parts.items():
        rows = [row for row in zip(labelled.pairs, labelled.labels, strict=True) if row[1] not in exclude_labels]
        left[part] = LabelledPairs(tuple(pair for pair, _ in rows), tuple(label for _, label in rows))
    for needed in ("train", "test"):
        if needed not in left or not left[needed].pairs:
            raise RelvecError(f"{where}There is no pair in the {needed} part; give some.")
    if len(set(left["train"].labels)) < 2:
        raise RelvecError(f"{where}All training pairs have the same label; give pairs of at least two relations.")
    return {part: labelled for part, labelled in left.items() if labelled.pairs}


def labels_of(parts: Parts) -> set[str]:
    """The labels that occur in any part."""
    return {label for part in parts.values() for label in part.labels}


def classification_outcome(parts: Parts, predicted: Sequence[str], fingerprint: str, **more: Any) -> Outcome:
    """The predictions for the test part and their scores, with the sizes of the parts and other metrics."""
    test = parts["test"]
    predictions = [
        {"head": head, "tail": tail, "relation": relation, "predicted": guess}
        for (head, tail), relation, guess in zip(test.pairs, test.labels, predicted, strict=True)
    ]
    sizes = {part: len(labelled.pairs) for part, labelled in parts.items()}
    return Outcome({**f1_scores(test.labels, predicted), "pairs": sizes, **more}, fingerprint, predictions)


def f1_scores(relations: Sequence[str], predicted: Sequence[str]) -> dict[str, Any]:
    """Macro and micro F1 in per cent, the 95 % interval of the latter, and the scores of each class.

    With one label a pair, micro F1 is the share of pairs that are right. Macro F1 is the mean over the classes that
    occur among the relations or the predictions.

    >>> scores = f1_scores(["synonym", "synonym", "antonym", "antonym"], ["synonym", "synonym", "antonym", "synonym"])
    >>> round(scores["macro_f1"], 1), scores["micro_f1"], scores["by_class"]["antonym"]["recall"]
    (73.3, 75.0, 50.0)
    """
    check_scikit_learn()
    from sklearn.metrics import precision_recall_fscore_support

    right = np.array(relations) == np.array(predicted)
    classes = sorted({*relations, *predicted})
    scores = precision_recall_fscore_support(relations, predicted, labels=classes, zero_division=0)
    return {
        "macro_f1": 100 * float(np.mean(scores[2])),
        "micro_f1": 100 * float(right.mean()),
        "interval": percent_interval(right.astype(np.float64)),
        "by_class": {
            label: {
                "f1": 100 * float(f1),
                "precision": 100 * float(exact),
                "recall": 100 * float(found),
                "pairs": int(n),
            }
            for label, exact, found, f1, n in zip(classes, *scores, strict=True)
        },
    }


@dataclass(frozen=True)
class ClassificationTask(Task[Parts]):
    """Relation classification on frozen vectors or, with `fine_tuning`, with the encoder trained on the dataset."""

    name = "classification"
    columns: ClassVar[dict[str, Callable[[Record], str]]] = {
        "dataset": lambda record: record.dataset,
        "macro F1": lambda record: f"{record.metrics['macro_f1']:.1f}",
        "micro F1": lambda record: f"{record.metrics['micro_f1']:.1f}",
        "95 % of micro": lambda record: "{:.1f}-{:.1f}".format(*record.metrics["interval"]),
        "test pairs": lambda record: str(record.metrics["pairs"]["test"]),
    }

    exclude_labels: Sequence[str] = ()
    grid: bool = True
    seed: int = 0
    jobs: int | None = None
    fine_tuning: "FineTuning | None" = None

    def load(self, datasets: Sequence[str], data_dir: str | Path | None = None) -> dict[str, Parts]:
        chosen = [benchmark_name("classification", dataset) for dataset in datasets] or CLASSIFICATION_DATASETS
        return {dataset: load_labelled(dataset, data_dir) for dataset in chosen}

    def pairs(self, data: Parts) -> Iterable[Pair]:
        return (pair for part in data.values() for pair in part.pairs)

    def check(self, system: System, data: Mapping[str, Parts]) -> None:
        if self.fine_tuning and not isinstance(vectors_of(system), ModelVectors):
            raise RelvecError(f"{system.name} has no encoder to fine-tune; choose a model.")
        known = {label for parts in data.values() for label in labels_of(parts)}
        for label in self.exclude_labels:
            one_of("label", label, sorted(known))
        for dataset, parts in data.items():
            usable_parts(parts, self.exclude_labels, where=f"{dataset}: ")

    def settings(self, system: System, data: Parts) -> dict[str, Any]:
        chosen = self.fine_tuning.settings if self.fine_tuning else {"classifier": "mlp", "seed": self.seed}
        if not self.grid:
            chosen["perceptron"] = "defaults"
        excluded = sorted(labels_of(data).intersection(self.exclude_labels))
        return {**chosen, **({"without": "+".join(excluded)} if excluded else {})}

    def identity(self, system: System, data: Parts) -> tuple[str, str]:
        return vectors_of(system).fingerprint, hashlib.sha256(repr(dict(data)).encode()).hexdigest()

    def run(self, system: System, dataset: str, data: Parts, work: Path) -> Outcome:
        vectors = vectors_of(system)
        if not self.fine_tuning:
            return evaluate_classification(
                vectors, data, exclude_labels=self.exclude_labels, grid=self.grid, seed=self.seed, jobs=self.jobs
            )
        from relvec.evaluation.fine_tuning import evaluate_fine_tuned

        assert isinstance(vectors, ModelVectors)
        return evaluate_fine_tuned(
            vectors.model, data, self.fine_tuning, exclude_labels=self.exclude_labels, work_folder=work
        )
