"""The loss of a model on held-out rated pairs, to choose prompts and recipes by (section 4.1 of the paper)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from relvec.data.overlap import load_for_training
from relvec.data.rated import BOTTOM, TOP, RatedRelation, check_relations, split
from relvec.errors import RelvecError
from relvec.evaluation.records import Record
from relvec.evaluation.systems import System
from relvec.evaluation.task import Outcome, Task, vectors_of
from relvec.model.cached_vectors import ModelVectors
from relvec.model.relation_model import RelBERT
from relvec.similarity import Vectors, normalized
from relvec.training.batch import Batch
from relvec.training.losses import LOSSES, make_loss
from relvec.training.samplers import validation_batch


def validation_loss(
    model: RelBERT,
    relations: Sequence[RatedRelation],
    loss: str = "triplet",
) -> dict[str, Any]:
    """The loss on the validation part of `relations`, as in training, and the counts behind it.

    `in_order` is the share (%) of the held-out triples whose anchor is closer to the positive than to the negative, by
    cosine: unlike a loss, it can be compared between recipes.

    >>> from relvec.data.sources import load
    >>> found = validation_loss(RelBERT.from_pretrained(tiny_model), load("bundled")[:10])
    >>> sorted(found)
    ['in_order', 'loss', 'pairs', 'relations', 'triples']
    """
    check_relations(relations)
    computed = make_loss(loss, model.dim)
    if list(computed.parameters()):
        plain = [name for name in LOSSES if not list(make_loss(name, model.dim).parameters())]
        problem = f"The loss {loss} has weights of its own, which no model keeps"
        raise RelvecError(f"{problem}; choose one of {', '.join(plain)}.")
    batch = validation_batch(split(relations, "train"), split(relations, "valid"))
    vectors = model.encode(batch.pairs, show_progress=None)
    with torch.no_grad():
        value = float(computed(torch.from_numpy(vectors)[batch.row], batch))
    return {
        "loss": value,
        "in_order": _in_order(vectors, batch),
        "relations": len(relations),
        "pairs": len(batch.pairs),
        "triples": len(batch.triples),
    }


def _in_order(vectors: Vectors, batch: Batch) -> float | None:
    """None if the relations have no triples, for lack of negatives."""
    if not len(batch.triples):
        return None
    rows = normalized(vectors)
    anchor, positive, negative = batch.row[batch.triples].numpy().T
    cosines = rows @ rows.T
    return 100 * float(np.mean(cosines[anchor, positive] > cosines[anchor, negative]))


_SELECTION: Mapping[str, Any] = {
    "top": TOP,
    "bottom": BOTTOM,
    "threshold": None,
    "exclude_benchmark_pairs": False,
    "train_on_held_out": False,
}
"""The settings of a recipe that decide which pairs are held out, and their defaults."""


@dataclass(frozen=True)
class LossTask(Task[Sequence[RatedRelation]]):
    """The loss on the held-out pairs of training data.

    Which pairs are held out depends on how they are selected, so a model must be scored as it was trained.
    """

    name = "loss"
    part = "valid"
    columns: ClassVar[dict[str, Callable[[Record], str]]] = {
        "data": lambda record: record.dataset,
        "loss": lambda record: f"{record.metrics['loss']:.4f}",
        "in order (%)": lambda record: "-" if (share := record.metrics["in_order"]) is None else f"{share:.1f}",
        "relations": lambda record: str(record.metrics["relations"]),
        "triples": lambda record: str(record.metrics["triples"]),
    }

    loss: str = "triplet"
    top: int = TOP
    bottom: int = BOTTOM
    threshold: float | None = None
    exclude_benchmark_pairs: bool = False
    train_on_held_out: bool = False

    def load(self, datasets: Sequence[str], data_dir: str | Path | None = None) -> dict[str, Sequence[RatedRelation]]:
        return {name: load_for_training(name, data_dir, **self._selection) for name in datasets or ["semeval2012"]}

    def check(self, system: System, data: Mapping[str, Sequence[RatedRelation]]) -> None:
        vectors = vectors_of(system)
        if not isinstance(vectors, ModelVectors):
            raise RelvecError(f"{system.name} is not a model and has no loss; choose a model.")
        recipe = vectors.model.training_record.get("recipe", {})
        trained = {name: recipe.get(name, default) for name, default in _SELECTION.items()}
        both = [name for name in data if name in recipe.get("data", ())]
        if both and trained != self._selection:
            made = ", ".join(f"{name}={value}" for name, value in trained.items() if value != _SELECTION[name])
            problem = f"{system.name} was trained on {both[0]} with {made or 'the default selection'}"
            raise RelvecError(f"{problem}, so other pairs were held out; select the pairs in the same way.")

    @property
    def _selection(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _SELECTION}

    def settings(self, system: System, data: object) -> dict[str, Any]:
        return {"loss": self.loss} | {
            name: value for name, value in self._selection.items() if value != _SELECTION[name]
        }

    def run(self, system: System, dataset: str, data: Sequence[RatedRelation], work: Path) -> Outcome:
        vectors = vectors_of(system)
        assert isinstance(vectors, ModelVectors)
        return Outcome(validation_loss(vectors.model, data, self.loss), vectors.fingerprint)
