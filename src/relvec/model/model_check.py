"""Is this the same model? A model is known by the vectors that it gives to a few pairs.

A checksum of the weights would not do: an adapter merged on another processor gives weights with other last bits.
"""

import base64
from collections.abc import Sequence
from typing import Annotated, Self

import numpy as np
from pydantic import AfterValidator, Field

from relvec.errors import RelvecError, errors_as
from relvec.model.relation_model import RelBERT
from relvec.pairs import Pair
from relvec.settings import Settings
from relvec.similarity import Vectors, cosine

PROBE_PAIRS = [("Paris", "France"), ("barista", "coffee"), ("hot", "cold"), ("wheel", "car")]
SAME_MODEL_COSINE = 0.9999  # another prompt, pooling, seed or step of training is further off; arithmetic is not


def median_cosine(model: RelBERT, pairs: Sequence[Pair], vectors: Vectors) -> float:
    """The median cosine of the vectors of pairs and of those that the model makes; a single odd pair is allowed."""
    if vectors.shape[1] != model.dim:
        return 0.0
    return float(np.median(np.diag(cosine(model.encode(pairs, truncate=True), vectors))))


def check_same_model(
    model: RelBERT,
    pairs: Sequence[Pair],
    vectors: Vectors,
    what: str,
    *,
    least: float = SAME_MODEL_COSINE,
    made_by: "ModelCheck | None" = None,
) -> None:
    """Refuse a model that gives the pairs other vectors; `what` holds the known ones."""
    alike = median_cosine(model, pairs, vectors)
    if not alike >= least:  # nan is not alike
        seen = f"cosine {alike:.4f} on {len(pairs)} pairs"
        if vectors.shape[1] != model.dim:
            seen = f"{vectors.shape[1]} dimensions where it makes {model.dim}"
        elif made_by and made_by.model == model.name:
            problem = f"{what} holds vectors that {model.name} made with another precision, prompt or weights ({seen})"
            fix = f"try --dtype {made_by.made_as}" if made_by.made_as else "load it as it was then"
            raise RelvecError(f"{problem}; {fix}, or encode the pairs again with the model as it is now.")
        raise RelvecError(
            f"{what} holds vectors made by a model other than {model.name} ({seen}); "
            "use the model that made them, with its own prompt and pooling, or encode the pairs again with this one."
        )


class ModelCheck(Settings):
    """The model behind stored vectors: its name, the checksum of its weights, its vectors of `PROBE_PAIRS`.

    >>> from relvec import RelBERT
    >>> made_by = ModelCheck.of(RelBERT.from_pretrained(tiny_model))
    >>> made_by.check(RelBERT.from_pretrained(tiny_model))
    >>> made_by.check(RelBERT.from_pretrained(tiny_model, pooling="mask"))
    Traceback (most recent call last):
    relvec.errors.RelvecError: The index of tiny-roberta holds vectors that tiny-roberta made with another ...
    """

    model: str
    fingerprint: str
    # float16 in base64: meta.json is text
    probes: Annotated[str, AfterValidator(lambda probes: _decoded(probes) is not None and probes), Field(repr=False)]

    @classmethod
    def of(cls, model: RelBERT) -> Self:
        vectors = model.encode(PROBE_PAIRS, normalize=True, truncate=True).astype("<f2")
        probes = base64.b64encode(vectors.tobytes()).decode("ascii")
        return cls(model=model.name, fingerprint=model.fingerprint, probes=probes)

    @property
    def plain(self) -> "ModelCheck":
        """The check alone, without what a subclass stores beside it."""
        return ModelCheck(model=self.model, fingerprint=self.fingerprint, probes=self.probes)

    @property
    def vectors(self) -> Vectors:
        """The unit vectors of `PROBE_PAIRS` by that model."""
        return _decoded(self.probes)

    @property
    def made_as(self) -> str:
        """The dtype of the model that made the vectors, where it is known; a fingerprint tells int8 alone."""
        return "int8" if self.fingerprint.endswith("-int8") else ""

    def check(self, model: RelBERT, what: str = "") -> None:
        """Refuse a model whose vectors are others; `what` holds the vectors, by default an index."""
        holder = what or f"The index of {self.model}"
        check_same_model(model, PROBE_PAIRS, self.vectors, holder, made_by=self)


def _decoded(probes: str) -> Vectors:
    with errors_as("the vectors of the probes are damaged", "make them again", ValueError):
        numbers = np.frombuffer(base64.b64decode(probes, validate=True), dtype="<f2")
        return numbers.astype(np.float32).reshape(len(PROBE_PAIRS), -1)
