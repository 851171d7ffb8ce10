"""Whose vectors are these? A model is known by the vectors that it gives to a few pairs.

A checksum of the weights would tell too much: an adapter that another processor merges into its base gives weights that
differ in their last bits, so that an index would be refused by the very model that made it. It would also take longer.
"""

import base64
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from relvec.errors import RelvecError
from relvec.model.relation_model import RelBERT
from relvec.similarity import Vectors, cosine

PROBES = [("Paris", "France"), ("barista", "coffee"), ("hot", "cold"), ("wheel", "car")]
ALIKE = 0.9999  # another prompt, pooling, seed or step of training is further off; arithmetic is not


@dataclass(frozen=True)
class Origin:
    """The model that made the vectors of an index: its name, the checksum of its weights, its vectors of `PROBES`.

    >>> from relvec import RelBERT
    >>> origin = Origin.of(RelBERT.from_pretrained(tiny_model))
    >>> origin.check(RelBERT.from_pretrained(tiny_model))
    >>> origin.check(RelBERT.from_pretrained(tiny_model, pooling="mask"))
    Traceback (most recent call last):
    relvec.errors.RelvecError: The index was made with another model (tiny-roberta) than this ...
    """

    model: str
    fingerprint: str
    probes: str = field(repr=False)  # float16 in base64: meta.json is text

    @classmethod
    def of(cls, model: RelBERT) -> Self:
        vectors = model.encode(PROBES, normalize=True, truncate=True).astype("<f2")
        return cls(model.name, model.fingerprint, base64.b64encode(vectors.tobytes()).decode("ascii"))

    @property
    def vectors(self) -> Vectors:
        """The unit vectors of `PROBES` by that model."""
        numbers = np.frombuffer(base64.b64decode(self.probes, validate=True), dtype="<f2")
        return numbers.astype(np.float32).reshape(len(PROBES), -1)

    def check(self, model: RelBERT) -> None:
        """Refuse a model whose vectors are others."""
        known = self.vectors
        alike = 0.0
        if known.shape[1] == model.dim:
            alike = float(np.diag(cosine(model.encode(PROBES, truncate=True), known)).min())
        if not alike >= ALIKE:  # nan is not alike
            raise RelvecError(
                f"The index was made with another model ({self.model}) than this {model.name} (cosine {alike:.4f} on "
                "the same pairs); use that model, with its own prompt and pooling, or build an index with this one."
            )
