"""Relation vectors inside scikit-learn: a transformer for pipelines and grid searches."""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from relvec.errors import needed_for
from relvec.hub.catalogue import DEFAULT_MODEL
from relvec.pairs import as_relations, reversed_relation
from relvec.similarity import Vectors

with needed_for("RelationEmbedder"):
    from sklearn.base import BaseEstimator, TransformerMixin

if TYPE_CHECKING:
    from relvec.model.relation_model import RelBERT


class RelationEmbedder(TransformerMixin, BaseEstimator):
    """Word pairs in, relation vectors out.

    `model` is whatever `RelBERT.from_pretrained` takes, or a loaded RelBERT. With `both_directions` the vectors
    of (h, t) and (t, h) stand side by side, as in the paper's relation classification.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> pairs = [("cat", "animal"), ("rose", "flower"), ("hot", "cold"), ("big", "small")]
    >>> classifier = make_pipeline(RelationEmbedder(tiny_model), LogisticRegression())
    >>> classifier.fit(pairs, ["isa", "isa", "opposite", "opposite"]).predict(pairs).shape
    (4,)
    """

    def __init__(
        self,
        model: "str | Path | RelBERT" = DEFAULT_MODEL,
        *,
        both_directions: bool = False,
        normalize: bool = False,
        batch_size: int = 64,
        device: str | None = None,
    ) -> None:
        self.model = model
        self.both_directions = both_directions
        self.normalize = normalize
        self.batch_size = batch_size
        self.device = device

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Load the model; there is nothing to learn."""
        self._loaded_model()
        return self

    def transform(self, X: Any) -> Vectors:
        """One row for each pair: `dim` columns, or twice as many with `both_directions`."""
        pairs = as_relations(X)
        model = self._loaded_model()
        if not self.both_directions:
            return model.encode(pairs, batch_size=self.batch_size, normalize=self.normalize)
        backward = [reversed_relation(pair) for pair in pairs]
        vectors = model.encode([*pairs, *backward], batch_size=self.batch_size, normalize=self.normalize)
        return np.hstack([vectors[: len(pairs)], vectors[len(pairs) :]])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        count = self._loaded_model().dim * (2 if self.both_directions else 1)
        return np.array([f"relation{column}" for column in range(count)], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _loaded_model(self) -> "RelBERT":
        return _loaded(self.model, self.device) if isinstance(self.model, str | Path) else self.model


@lru_cache(maxsize=2)
def _loaded(model: str | Path, device: str | None) -> "RelBERT":
    """Kept outside of the embedder: a pickle holds the model's name, not its weights, and clones share them."""
    from relvec.model.relation_model import RelBERT

    return RelBERT.from_pretrained(model, device=device)
