"""Lexical relation classification with an encoder that is fine-tuned for it: another setting than frozen vectors.

    p(relation | h, t) = softmax(W [r(h, t); r(t, h)] + b)

r is the relation vector; W, b and the encoder behind r are trained together by cross entropy.
"""

import copy
import math
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from relvec.data.benchmarks.classification import LabelledPairs
from relvec.evaluation.classification import Parts, classification_outcome, usable_parts
from relvec.evaluation.mlp_grid import check_scikit_learn
from relvec.evaluation.task import Outcome
from relvec.model.relation_model import RelBERT
from relvec.model.torch_backend import TorchRelBERT
from relvec.pairs import Pair
from relvec.settings import Seed, Settings
from relvec.storage.job import job_of
from relvec.training.adapters import add_lora
from relvec.training.gradients import gradients_by_threads
from relvec.training.loop import Course, Loop, NamedScores

WARMUP_SHARE = 0.1
VALID_SCORE = "valid_micro_f1"


class FineTuning(Settings):
    """How encoder and linear head are trained; a `lora_rank` of 0 trains all weights.

    >>> FineTuning(lora_rank=16).learning_rate, FineTuning().learning_rate
    (0.0005, 3e-05)
    """

    epochs: Annotated[int, Field(ge=1)] = 3
    lora_rank: Annotated[int, Field(ge=0)] = 0
    learning_rate: float = Field(gt=0, default_factory=lambda known: 5e-4 if known["lora_rank"] else 3e-5)
    batch_size: Annotated[int, Field(ge=1)] = 32
    seed: Seed = 0

    @property
    def settings(self) -> dict[str, Any]:
        """What a record says of it, so that it is never taken for frozen vectors."""
        return {"classifier": "fine-tuned", **self.as_dict()}


def evaluate_fine_tuned(
    model: RelBERT,
    parts: Parts,
    recipe: FineTuning | None = None,
    *,
    exclude_labels: Collection[str] = (),
    work_folder: str | Path | None = None,
) -> Outcome:
    """Train a copy of the model on the training part and test it; the model itself stays as it is.

    The epoch with the highest micro F1 on the validation part counts, the last one where there is no such part.
    With a `work_folder` a run that was killed resumes from its last checkpoint, to the same result.

    >>> model = TorchRelBERT.from_pretrained(tiny_model)
    >>> train = LabelledPairs((("cat", "animal"), ("hot", "cold")), ("hypernym", "antonym"))
    >>> recipe = FineTuning(epochs=10, learning_rate=0.01)
    >>> evaluate_fine_tuned(model, {"train": train, "test": train}, recipe).metrics["micro_f1"]
    100.0
    """
    check_scikit_learn()  # its scores come last
    model = TorchRelBERT.of(model)
    recipe = recipe or FineTuning()
    parts = usable_parts(parts, exclude_labels)
    job = job_of(model.fingerprint, dict(parts), recipe)
    checkpoint = None if work_folder is None else Path(work_folder) / f"{job[:16]}-checkpoint.pt"
    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices):  # the caller's random numbers stay what they were
        tuner = ClassifierTuner(model, parts, recipe, job, checkpoint)
        outcome = tuner.outcome(tuner.run())
    configuration = {**recipe.as_dict(), "epoch": outcome["best_epoch"]}
    return classification_outcome(
        parts, outcome["predicted"], model.fingerprint, configuration=configuration, epochs=outcome["epochs"]
    )


class ClassifierTuner(Loop):
    """The copy of a model under training, and its head; of the best epoch its answers are kept, not its weights."""

    title, score, lower_is_better, evaluates_start = "Fine-tuning", VALID_SCORE, False, False
    checkpoint_every = 500

    def __init__(
        self,
        model: TorchRelBERT,
        parts: Parts,
        recipe: FineTuning,
        job: str = "",
        checkpoint: Path | None = None,
    ) -> None:
        self.parts, self.recipe = parts, recipe
        self.classes = sorted(set(parts["train"].labels))
        self.model = copy.copy(model)
        self.model.encoder = copy.deepcopy(model.encoder).eval()
        is_half = model.dtype == torch.bfloat16
        self._autocast = partial(torch.autocast, model.device.type, torch.bfloat16, enabled=is_half)
        torch.manual_seed(recipe.seed)
        self.head = torch.nn.Linear(2 * model.dim, len(self.classes)).to(model.device)
        add_lora(self.model.encoder, recipe.lora_rank)
        if not recipe.lora_rank:
            self.model.encoder.float()  # most steps would be lost in the rounding of half precision
        train = parts["train"]
        self._tokens = self.model.token_ids(_both_ways(train.pairs), truncate=True)
        number = {label: place for place, label in enumerate(self.classes)}
        self._targets = torch.tensor([number[label] for label in train.labels], device=model.device)
        steps_per_epoch = math.ceil(len(train.pairs) / recipe.batch_size)
        steps = recipe.epochs * steps_per_epoch
        super().__init__(
            [*self.model.encoder.named_parameters("encoder"), *self.head.named_parameters("head")],
            job,
            checkpoint,
            steps=steps,
            evaluate_every=steps_per_epoch,
            learning_rate=recipe.learning_rate,
            warmup_steps=math.ceil(WARMUP_SHARE * steps),
        )

    def gradients(self, step: int) -> float:
        """One batch, both directions of each pair. Nothing is dropped, so threads may share out the pairs."""
        rows = self.rows(step)
        tokens = [self._tokens[row] for row in [*rows, *(row + len(self._targets) for row in rows)]]

        def loss(vectors: Tensor) -> Tensor:
            logits = self.head(torch.cat(vectors.split(len(rows)), dim=1))
            return torch.nn.functional.cross_entropy(logits, self._targets[rows])

        return gradients_by_threads(self.model, tokens, loss, self._autocast)

    def rows(self, step: int) -> list[int]:
        """The training pairs of a step; each epoch goes through all of them in an order of its own."""
        epoch, place = divmod(step - 1, self.evaluate_every)
        order = np.random.default_rng((self.recipe.seed, epoch)).permutation(len(self._targets))
        rows: list[int] = order[place * self.recipe.batch_size : (place + 1) * self.recipe.batch_size].tolist()
        return rows

    def evaluate(self) -> NamedScores:
        valid = self.parts.get("valid")
        if valid is None:
            return {}
        labels = [self.classes[place] for place in self.predict(valid)]
        return {VALID_SCORE: 100 * float(np.mean(np.array(labels) == np.array(valid.labels)))}

    def snapshot(self) -> Mapping[str, Tensor]:
        return {"predicted": self.predict(self.parts["test"])}

    def predict(self, labelled: LabelledPairs) -> Tensor:
        """The number of a class for each pair."""
        there, back = np.split(self.model.encode(_both_ways(labelled.pairs), truncate=True), 2)
        with torch.inference_mode():
            logits = self.head(torch.from_numpy(np.hstack([there, back])).to(self.model.device))
        return torch.tensor(logits.argmax(dim=1).tolist())

    def outcome(self, course: Course) -> dict[str, Any]:
        """The scores of each epoch, the best epoch, and its answers."""
        losses = list(course.loss.values())
        size = self.evaluate_every
        means = [sum(losses[start : start + size]) / size for start in range(0, len(losses), size)]
        scores = [found.get(VALID_SCORE) for found in course.scores.values()]
        return {
            "epochs": [{"train_loss": loss, VALID_SCORE: score} for loss, score in zip(means, scores, strict=True)],
            "best_epoch": course.best_step // size,
            "predicted": [self.classes[place] for place in self.best["predicted"]],
        }


def _both_ways(pairs: tuple[Pair, ...]) -> list[Pair]:
    """All pairs, then all of them reversed."""
    return [*pairs, *((tail, head) for head, tail in pairs)]
