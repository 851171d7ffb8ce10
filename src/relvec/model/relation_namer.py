"""RelationNamer: names for one's own relations, from a few pairs of each, or from definitions alone."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from relvec.errors import RelvecError, counted
from relvec.hub.catalogue import DEFAULT_MODEL
from relvec.model.cached_vectors import ModelVectors
from relvec.model.catalogues import encoded_texts, own_catalogue, with_texts
from relvec.model.relation_model import RelBERT
from relvec.naming.calibration import softmax
from relvec.naming.catalogue import Catalogue, Explanation, NamedRelation, Prototypes
from relvec.naming.relation_space import means_of
from relvec.naming.sentences import as_definition
from relvec.pairs import Pair, as_pairs, plain_values
from relvec.similarity import Vectors, check_top

EXAMPLES = 5
TEXT_SHARPNESS = 0.1
"""The smaller, the fewer relations of the catalogue stand for a definition."""


class RelationNamer:
    """Tells in which of your relations a pair stands; `fit`, `predict` and `predict_proba` as scikit-learn has them.

    `model` is whatever `RelBERT.from_pretrained` takes, or a loaded model. A relation has pairs, or a definition such
    as "X is a tool used by Y", or both; that of a relation without pairs stands where the bundled relations with the
    most similar definitions do. The `symmetric` relations hold in both directions. Whether a pair is related at all is
    judged as `RelBERT.relatedness` does.
    """

    def __init__(
        self,
        model: str | Path | RelBERT = DEFAULT_MODEL,
        *,
        definitions: Mapping[str, str] | None = None,
        symmetric: Collection[Any] = (),
    ) -> None:
        self.model = model
        self.definitions = definitions
        self.symmetric = symmetric

    def fit(self, X: Any = (), y: Iterable[Any] = ()) -> Self:
        """Learn the relations of pairs X from their labels y, and those that have definitions only."""
        pairs, labels = as_pairs(X), plain_values(y)
        if len(pairs) != len(labels):
            given = f"{counted(len(pairs), 'pair')} and {counted(len(labels), 'label')}"
            raise RelvecError(f"Got {given}; give each pair its label.")
        if "" in labels:
            raise RelvecError(f"Pair {labels.index('') + 1} has no label; give it one, or leave the pair out.")
        definitions = {name: as_definition(text) for name, text in (self.definitions or {}).items()}
        names = sorted({*labels, *definitions})
        if not names:
            raise RelvecError("There is no relation to learn; give pairs with labels, or definitions.")
        self._loaded = self.model if isinstance(self.model, RelBERT) else RelBERT.from_pretrained(self.model)
        self._vectors = ModelVectors(self._loaded)
        base = own_catalogue(self._loaded)
        numbers = np.array([names.index(label) for label in labels], dtype=np.int64)
        rows = []
        if pairs:
            points = base.space(self._encoded([*pairs, *(pair[::-1] for pair in pairs)]))
            symmetric = set(self.symmetric)
            has_direction = np.array([name not in symmetric for name in names])
            turned = numbers + len(names) * has_direction[numbers]
            rows.append(_prototypes(points, np.concatenate([numbers, turned]), len(names)))
        lacking = [name for name in definitions if name not in labels]
        if lacking:
            rows.append(_by_definition(base, [definitions[n] for n in lacking], [names.index(n) for n in lacking]))
        examples = {name: [pair for pair, label in zip(pairs, labels, strict=True) if label == name] for name in names}
        self.catalogue_ = replace(
            base,
            relations=tuple(_relation(name, definitions.get(name, ""), examples[name]) for name in names),
            prototypes=_joined(rows),
            texts=np.zeros((0, 0), dtype=np.float32),
        )
        self.classes_ = np.array(names, dtype=object)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest relation of each pair."""
        best = self.predict_proba(X).argmax(axis=1)  # first, or it would not be told that there is no fit yet
        return self.classes_[best]

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """The probability of each relation, in the order of `classes_`, for pairs known to stand in one of them."""
        catalogue = self._fitted()
        points = catalogue.space(self._encoded(as_pairs(X)))
        scores = catalogue.prototypes.log_likelihoods(points, catalogue.space.between)
        forward = np.flatnonzero(~catalogue.prototypes.is_reversed)
        ordered = forward[np.argsort(catalogue.prototypes.relations[forward], kind="stable")]
        return softmax(scores[:, ordered] / catalogue.temperature)

    def score(self, X: Any, y: Iterable[Any]) -> float:
        """The share of pairs whose likeliest relation is their label."""
        return float(np.mean(self.predict(X) == np.array(plain_values(y), dtype=object)))

    def explain(self, X: Any, *, top: int = 1) -> list[list[Explanation]]:
        """The best relations of each pair, also those that hold the other way round."""
        check_top(top)
        catalogue, pairs = self._fitted(), as_pairs(X)
        return list(catalogue.explain(pairs, self._encoded(pairs), top))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"model": self.model, "definitions": self.definitions, "symmetric": self.symmetric}

    def set_params(self, **parameters: Any) -> Self:
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags("classifier", TargetTags(required=False), classifier_tags=ClassifierTags())

    def _fitted(self) -> Catalogue:
        if not hasattr(self, "catalogue_"):
            raise RelvecError("This RelationNamer knows no relation yet; fit it first.")
        return self.catalogue_

    def _encoded(self, pairs: Sequence[Pair]) -> Vectors:
        return self._vectors.vectors(pairs)[0]


def _relation(label: Any, definition: str, examples: Sequence[Pair]) -> NamedRelation:
    name = str(label)
    wording = (definition or name, definition or name, name)
    return NamedRelation(name, definition, definition, examples=tuple(examples[:EXAMPLES]), wordings=(wording,))


def _prototypes(points: Vectors, rows: NDArray[np.int64], relations: int) -> Prototypes:
    """The means of rows, of which those from `relations` on are reversed."""
    known, inverse = np.unique(rows, return_inverse=True)
    counts = np.bincount(inverse).astype(np.float32)
    none = np.full(len(known), -1)
    return Prototypes(means_of(points, inverse), counts, known % relations, known >= relations, none)


def _by_definition(base: Catalogue, definitions: Sequence[str], numbers: Sequence[int]) -> Prototypes:
    """Where relations stand that are known by a definition: among those of the catalogue with similar ones."""
    similar = with_texts(base).by_wording(encoded_texts(definitions, base.text_encoder))
    weights = softmax(similar / TEXT_SHARPNESS)
    count = len(numbers)
    once, forwards, none = np.ones(count, dtype=np.float32), np.zeros(count, dtype=bool), np.full(count, -1)
    return Prototypes(weights @ base.means_of_wordings(), once, np.array(numbers), forwards, none)


def _joined(parts: Sequence[Prototypes]) -> Prototypes:
    return Prototypes(
        np.concatenate([part.means for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.relations for part in parts]),
        np.concatenate([part.is_reversed for part in parts]),
        np.concatenate([part.wordings for part in parts]),
    )
