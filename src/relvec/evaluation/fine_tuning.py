"""Lexical relation classification with an encoder that is fine-tuned for it: another setting than frozen vectors.

    p(relation | h, t) = softmax(W [r(h, t); r(t, h)] + b)

r is the relation vector; W, b and the encoder behind r are trained together by cross entropy.
"""

import copy
import hashlib
import json
import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from relvec.data.benchmarks.classification import LabelledPairs
from relvec.errors import RelvecError
from relvec.evaluation.classification import Parts, classification_outcome, usable_parts
from relvec.evaluation.mlp_grid import check_scikit_learn
from relvec.evaluation.task import Outcome
from relvec.io.files import written_whole
from relvec.model.relation_model import RelBERT
from relvec.model.torch_backend import TorchRelBERT
from relvec.pairs import Pair
from relvec.progress import progress_bar
from relvec.training.weights import put_back, trainable

WARMUP_SHARE = 0.1
MAX_GRADIENT_NORM = 1.0
STEPS_PER_CHECKPOINT = 500


@dataclass(frozen=True)
class FineTuning:
    """How encoder and linear head are trained; a `lora_rank` of 0 trains all weights.

    Low-rank adapters want a learning rate about ten times as high.

    >>> FineTuning(epochs=5).settings["classifier"]
    'fine-tuned'
    """

    epochs: int = 3
    learning_rate: float = 3e-5
    batch_size: int = 32
    lora_rank: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("batch_size", 1), ("lora_rank", 0)):
            if getattr(self, name) < least:
                raise RelvecError(f"{name} = {getattr(self, name)} is impossible; use {least} or more.")
        if self.learning_rate <= 0:
            raise RelvecError(f"learning_rate = {self.learning_rate} is impossible; use a positive number.")

    @property
    def settings(self) -> dict[str, Any]:
        """What a record says of it, so that it is never taken for frozen vectors."""
        return {"classifier": "fine-tuned", **asdict(self)}


def evaluate_fine_tuned(
    model: RelBERT,
    parts: Parts,
    recipe: FineTuning | None = None,
    *,
    exclude_labels: Collection[str] = (),
    work_folder: str | Path | None = None,
    steps_per_checkpoint: int = STEPS_PER_CHECKPOINT,
    show_progress: bool | None = None,
) -> Outcome:
    """Train a copy of the model on the training part and test it; the model itself stays as it is.

    The epoch with the highest micro F1 on the validation part counts, the last one where there is no such part.
    With a `work_folder` a run that was killed goes on from its last checkpoint, to the same result.

    >>> model = TorchRelBERT.from_pretrained(tiny_model)
    >>> train = LabelledPairs((("cat", "animal"), ("hot", "cold")), ("hypernym", "antonym"))
    >>> recipe = FineTuning(epochs=10, learning_rate=0.01)
    >>> evaluate_fine_tuned(model, {"train": train, "test": train}, recipe).metrics["micro_f1"]
    100.0
    """
    check_scikit_learn()  # its scores come last
    model = TorchRelBERT.of(model)
    if model.encoder.dtype != torch.float32:  # most steps would be lost in rounding
        raise RelvecError(f"Fine-tuning needs a model in float32, not {model.encoder.dtype}; leave out the dtype.")
    recipe = recipe or FineTuning()
    parts = usable_parts(parts, exclude_labels)
    work = None if work_folder is None else _Work(Path(work_folder), _key(model, parts, recipe))
    course = work.finished() if work else None
    if course is None:
        devices = [model.device] if model.device.type == "cuda" else []
        with torch.random.fork_rng(devices):  # the caller's random numbers stay what they were
            course = _Tuner(model, parts, recipe).run(work, steps_per_checkpoint, show_progress)
    configuration = {**asdict(recipe), "epoch": course.best_epoch}
    return classification_outcome(
        parts, course.predicted, model.fingerprint, configuration=configuration, epochs=course.epochs
    )


@dataclass
class _Course:
    """How far a run is: steps done, loss of the epoch so far, scores of past epochs, answers of the best one."""

    step: int = 0
    loss_sum: float = 0.0
    epochs: list[dict[str, float | None]] = field(default_factory=list)
    best_epoch: int = 0
    predicted: list[str] = field(default_factory=list)


class _Tuner:
    """The copy of a model under training, its head and its optimiser."""

    def __init__(self, model: TorchRelBERT, parts: Parts, recipe: FineTuning) -> None:
        self.parts, self.recipe = parts, recipe
        self.classes = sorted(set(parts["train"].labels))
        self.model = copy.copy(model)
        self.model.encoder = copy.deepcopy(model.encoder)
        torch.manual_seed(recipe.seed)
        self.head = torch.nn.Linear(2 * model.dim, len(self.classes)).to(model.device)
        if recipe.lora_rank:
            try:
                from relvec.training.lora import add_lora

                add_lora(self.model.encoder, recipe.lora_rank)
            except ImportError as error:
                raise RelvecError(f"Low-rank adapters need {error.name}; run pip install 'relvec[train]'.") from error
        self.optimizer = torch.optim.AdamW(self._trainable().values(), lr=recipe.learning_rate)
        train = parts["train"]
        self._tokens = self.model.token_ids(_both_ways(train.pairs), truncate=True)
        number = {label: place for place, label in enumerate(self.classes)}
        self._targets = torch.tensor([number[label] for label in train.labels], device=model.device)
        self.steps_per_epoch = math.ceil(len(train.pairs) / recipe.batch_size)
        self.steps = recipe.epochs * self.steps_per_epoch

    def run(self, work: "_Work | None", steps_per_checkpoint: int, show_progress: bool | None) -> _Course:
        """Train to the end, from the last checkpoint if there is one."""
        course = (work.resume(self) if work else None) or _Course()
        with progress_bar(self.steps, "Fine-tuning", "step", show_progress, initial=course.step) as bar:
            while course.step < self.steps:
                course.step += 1
                loss = self._step(course.step)
                course.loss_sum += loss
                bar.update()
                bar.set_postfix(loss=f"{loss:.3f}")
                ends_epoch = course.step % self.steps_per_epoch == 0
                if ends_epoch:
                    self._end_epoch(course)
                if work and (ends_epoch or course.step % steps_per_checkpoint == 0):
                    work.save(self, course)
        return course

    def _step(self, step: int) -> float:
        """One batch, both directions of each pair in one forward pass; everything random hangs on seed and step."""
        self.model.encoder.train()
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.learning_rate * learning_rate_factor(step, self.steps)
        torch.manual_seed(self.recipe.seed * 1_000_003 + step)
        rows = self._rows(step)
        tokens = [self._tokens[row] for row in [*rows, *(row + len(self._targets) for row in rows)]]
        there, back = self.model.vectors_of_tokens(tokens).float().split(len(rows))
        loss = torch.nn.functional.cross_entropy(self.head(torch.cat([there, back], dim=1)), self._targets[rows])
        value = float(loss.detach())
        if not math.isfinite(value):
            raise RelvecError(f"The loss is {value} at step {step}; lower the learning rate.")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._trainable().values(), MAX_GRADIENT_NORM)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return value

    def _rows(self, step: int) -> list[int]:
        """The training pairs of a step; each epoch goes through all of them in an order of its own."""
        epoch, place = divmod(step - 1, self.steps_per_epoch)
        order = np.random.default_rng((self.recipe.seed, epoch)).permutation(len(self._targets))
        rows: list[int] = order[place * self.recipe.batch_size : (place + 1) * self.recipe.batch_size].tolist()
        return rows

    def _end_epoch(self, course: _Course) -> None:
        """Note the epoch's scores; the answers of the best one are kept instead of its weights, which are large."""
        valid = self.parts.get("valid")
        score = self._micro_f1(valid) if valid is not None else None
        before = max((epoch["valid_micro_f1"] or 0.0 for epoch in course.epochs), default=-1.0)
        course.epochs.append({"train_loss": course.loss_sum / self.steps_per_epoch, "valid_micro_f1": score})
        course.loss_sum = 0.0
        if (score > before) if score is not None else (course.step == self.steps):
            course.best_epoch, course.predicted = len(course.epochs), self._predict(self.parts["test"])

    def _micro_f1(self, labelled: LabelledPairs) -> float:
        return 100 * float(np.mean(np.array(self._predict(labelled)) == np.array(labelled.labels)))

    def _predict(self, labelled: LabelledPairs) -> list[str]:
        there, back = np.split(self.model.encode(_both_ways(labelled.pairs), truncate=True), 2)
        with torch.inference_mode():
            logits = self.head(torch.from_numpy(np.hstack([there, back])).to(self.model.device))
        return [self.classes[place] for place in logits.argmax(dim=1).tolist()]

    def _trainable(self) -> dict[str, torch.nn.Parameter]:
        named = [*self.model.encoder.named_parameters("encoder"), *self.head.named_parameters("head")]
        return trainable(named)

    def tensors(self) -> dict[str, torch.Tensor]:
        """All that training changes: weights, and the optimiser's state of each."""
        state = {
            f"optimizer.{number}.{name}": value
            for number, values in self.optimizer.state_dict()["state"].items()
            for name, value in values.items()
        }
        return {name: value.detach().cpu().contiguous() for name, value in (self._trainable() | state).items()}

    def load_tensors(self, tensors: dict[str, torch.Tensor]) -> None:
        put_back(self._trainable(), tensors)
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith("optimizer."):
                _, number, kind = name.split(".")
                state.setdefault(int(number), {})[kind] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})


class _Work:
    """The files of a run: a checkpoint while it lasts, a small JSON file with its course once it is over."""

    def __init__(self, folder: Path, key: str) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RelvecError(f"Cannot make {folder}: {error.strerror}; choose another folder.") from error
        self.checkpoint = folder / f"{key[:16]}-checkpoint.safetensors"
        self.outcome = folder / f"{key[:16]}-fine-tuned.json"

    def finished(self) -> _Course | None:
        return _Course(**json.loads(self.outcome.read_text(encoding="utf-8"))) if self.outcome.is_file() else None

    def resume(self, tuner: _Tuner) -> _Course | None:
        if not self.checkpoint.is_file():
            return None
        try:
            with safe_open(self.checkpoint, framework="pt") as file:
                tuner.load_tensors({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
                return _Course(**json.loads(file.metadata()["course"]))
        except SafetensorError as error:
            raise RelvecError(f"{self.checkpoint} is no whole checkpoint ({error}); remove it.") from error

    def save(self, tuner: _Tuner, course: _Course) -> None:
        """One file holds tensors and course, so that they never disagree; the end leaves the course alone."""
        text = json.dumps(asdict(course), ensure_ascii=False)
        is_over = course.step == tuner.steps
        target = self.outcome if is_over else self.checkpoint
        try:
            with written_whole(target) as partial:
                if is_over:
                    partial.write_text(text, encoding="utf-8")
                else:
                    save_file(tuner.tensors(), partial, metadata={"course": text})
        except SafetensorError as error:  # also for a full disk
            raise RelvecError(f"Cannot write {target} ({error}); free space and start again.") from error
        if is_over:
            self.checkpoint.unlink(missing_ok=True)


def learning_rate_factor(step: int, steps: int) -> float:
    """Linear warm-up over the first tenth of the steps, then falling to nearly zero.

    >>> [round(learning_rate_factor(step, 20), 2) for step in (1, 2, 3, 20)]
    [0.5, 1.0, 1.0, 0.06]
    """
    warm = math.ceil(WARMUP_SHARE * steps)
    return step / warm if step <= warm else (steps - step + 1) / (steps - warm)


def _both_ways(pairs: tuple[Pair, ...]) -> list[Pair]:
    """All pairs, then all of them turned round."""
    return [*pairs, *((tail, head) for head, tail in pairs)]


def _key(model: TorchRelBERT, parts: Parts, recipe: FineTuning) -> str:
    """A checksum of all that decides the result."""
    return hashlib.sha256(repr((model.fingerprint, dict(parts), recipe)).encode()).hexdigest()
