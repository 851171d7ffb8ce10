"""The models that a server was started with, each with its queue and, where there is one, its index."""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from relvec.errors import RelvecError, did_you_mean
from relvec.index import PairIndex
from relvec.model.relation_model import RelBERT
from relvec.naming import Catalogue
from relvec.pairs import Pair
from relvec.serve.batching import Batcher, Batching
from relvec.serve.errors import RefusedError
from relvec.serve.metrics import Metrics
from relvec.similarity import cosine

CANARY: Pair = ("barista", "coffee")
CANARY_SECONDS = 10.0
"""For how long an encoded canary counts."""


class Served:
    """A model behind its queue."""

    def __init__(
        self,
        model: RelBERT,
        index: PairIndex | None,
        metrics: Metrics,
        batching: Batching,
        *,
        timeout_seconds: float,
    ) -> None:
        self.name = model.name
        self.index = index
        self.catalogue = model.existing_catalogue
        if self.catalogue is not None:
            model.catalogue = self.catalogue
        self.batcher = Batcher(model, metrics, batching)
        self.model = self.batcher.shared_model()
        self._canary = self.batcher.encode([CANARY], timeout_seconds, is_canary=True)
        self._canary_time = time.monotonic()
        if index is not None:
            index.check_model(self.model)

    def check_canary(self, timeout_seconds: float = 5.0) -> float:
        """Encode a pair of our own, if none was lately, and give the seconds since; refuse if its vector is wrong."""
        if time.monotonic() - self._canary_time > CANARY_SECONDS:
            try:
                found = self.batcher.encode([CANARY], timeout_seconds, is_canary=True)
            except Exception as error:
                raise RefusedError(503, f"{self.name} does not encode; restart the server.", retry_after=5) from error
            if not np.all(cosine(found, self._canary) > 0.999):
                raise RefusedError(503, f"{self.name} encodes wrongly; restart the server.", retry_after=5)
            self._canary_time = time.monotonic()
        return time.monotonic() - self._canary_time

    def needed_index(self) -> PairIndex:
        if self.index is None:
            remedy = "start the server with an --index that it made, or ask another model of /models"
            raise RefusedError(422, f"{self.name} has no index here; {remedy}.", field="model")
        return self.index

    def needed_catalogue(self) -> Catalogue:
        if self.catalogue is None:
            remedy = f"run `relvec explain --model {self.name} cup:tea` once and start the server again"
            raise RefusedError(422, f"{self.name} has no names of relations yet; {remedy}.", field="model")
        return self.catalogue


class Models:
    """All models of a server by name; the first is the default."""

    def __init__(self, served: Sequence[Served]) -> None:
        self.by_name = {each.name: each for each in served}
        if len(self.by_name) < len(served):
            raise RelvecError("Two of the models have the same name; give each model once.")
        self.default = served[0]

    def get(self, name: str | None) -> Served:
        """A client's name is only looked up among those given at start; it reaches no file."""
        if name is None:
            return self.default
        if name not in self.by_name:
            advice = did_you_mean(name, self.by_name, otherwise=f"choose one of {', '.join(self.by_name)}")
            raise RefusedError(422, f"There is no model {name!r} here; {advice}.", field="model")
        return self.by_name[name]

    def close(self) -> None:
        for served in self.by_name.values():
            served.batcher.close()


def matched_indexes(models: Sequence[RelBERT], folders: Sequence[str | Path]) -> list[PairIndex | None]:
    """For each model the given index that it made, else the bundled one if it made that, else none."""
    own = [PairIndex.load(folder) for folder in folders]
    bundled = PairIndex.load()
    found = [next((index for index in [*own, bundled] if _fits(index, model)), None) for model in models]
    for index, folder in zip(own, folders, strict=True):
        if any(index is each for each in found):
            continue
        for model, other in zip(models, found, strict=True):
            if _fits(index, model):
                first = next(folder for each, folder in zip(own, folders, strict=True) if each is other)
                raise RelvecError(f"{model.name} has two indexes, {first} and {folder}; give one of them.")
        names = ", ".join(model.name for model in models)
        raise RelvecError(f"The index {folder} was made by {index.made_by.model}, not by {names}; add --model.")
    return found


def _fits(index: PairIndex, model: RelBERT) -> bool:
    try:
        index.check_model(model)
    except RelvecError:
        return False
    return True
