"""The training loop: batches in, a better encoder out; interrupted runs go on where they stopped.

It stands on accelerate, which gives devices, mixed precision and processes without owning the loop: the loss
needs all vectors of a step at once, which a trainer that sees one example at a time would hide.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import broadcast

from relvec.data.rated import RatedRelation
from relvec.data.sources import describe
from relvec.errors import RelvecError
from relvec.io.paths import expanded
from relvec.model.base import check_beside_base
from relvec.model.saving import check_output
from relvec.model.torch_backend import TorchRelBERT
from relvec.progress import progress_bar
from relvec.training.batches import RelationBatches, Sampler, TripleBatches, validation_batch
from relvec.training.checkpoint import CHECKPOINT_NAME, load_checkpoint, save_checkpoint
from relvec.training.freezing import freeze_layers
from relvec.training.gradients import step_gradients
from relvec.training.lora import add_lora, save_adapter
from relvec.training.losses import Loss, make_loss
from relvec.training.recipe import Recipe
from relvec.training.record import is_recipe_of, recipe_record, saved_recipe
from relvec.training.schedule import learning_rate_factor
from relvec.training.weights import kept, put_back, trainable

LOGS_NAME = "logs"


@dataclass(frozen=True)
class Progress:
    """How a run went: training loss by step, validation loss by step, and the step whose weights were kept."""

    train_loss: dict[int, float]
    valid_loss: dict[int, float]

    @property
    def best_step(self) -> int:
        return min(self.valid_loss, key=lambda step: self.valid_loss[step])


class Trainer:
    """Fine-tunes a RelBERT on relations; see `Recipe` for the choices."""

    def __init__(
        self,
        model: TorchRelBERT,
        train: Sequence[RatedRelation],
        valid: Sequence[RatedRelation],
        recipe: Recipe,
        output: str | Path,
    ) -> None:
        self.model, self.recipe, self.output = model, recipe, expanded(output)
        self.relations = train
        self._language_model = model.language_model or recipe.base
        self._check_output()
        # A pair that the model cannot take shall fail now, not when a step meets it.
        rated = [pair for relation in (*train, *valid) for pair in (*relation.positives, *relation.negatives)]
        model.token_ids(list(dict.fromkeys(rated)))
        AcceleratorState._reset_state()  # else a second run of the process could not change its precision
        self.accelerator = Accelerator(mixed_precision=recipe.mixed_precision)
        torch.nn.Module.to(model.encoder, self.accelerator.device)
        self.loss = self._make_loss()
        self.sampler = self._make_sampler(train)
        self.steps = recipe.steps if recipe.epochs <= 0 else math.ceil(recipe.epochs * self.sampler.steps_per_epoch)
        self.validation = validation_batch(train, valid).to(self.accelerator.device)
        freeze_layers(model, recipe.frozen_layers)
        job = (recipe, model.fingerprint, list(train), list(valid))
        self._job = hashlib.sha256(repr(job).encode()).hexdigest()
        torch.manual_seed(recipe.seed)
        self.adapter = add_lora(model.encoder, recipe.lora_rank) if recipe.lora_rank else None
        self.trainable = trainable(chain(model.encoder.named_parameters(), self.loss.named_parameters("loss")))
        self.optimizer = torch.optim.AdamW(
            self.trainable.values(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
        )

    def _check_output(self) -> None:
        """A run must not replace its base, files that are no model's, or a finished model of another recipe."""
        check_beside_base(self.recipe.base, self.output, "adapter" if self.recipe.lora_rank else "training")
        check_output(self.output)
        logs = self.output / LOGS_NAME
        if logs.exists() and not logs.is_dir():
            raise RelvecError(f"{logs} is a file where the losses go; move it away, or choose another output.")
        if (self.output / CHECKPOINT_NAME).exists():
            return
        saved = saved_recipe(self.output)
        if saved and not is_recipe_of(self.recipe, saved):
            problem = f"{self.output} holds a finished model of another recipe"
            raise RelvecError(f"{problem}; choose another output, or remove it.")

    def _make_loss(self) -> Loss:
        torch.manual_seed(self.recipe.seed)
        loss = make_loss(self.recipe.loss, self.model.dim, **self.recipe.loss_settings)
        return loss.to(self.accelerator.device)

    def _make_sampler(self, relations: Sequence[RatedRelation]) -> Sampler:
        recipe = self.recipe
        if self.loss.needs_triples:
            return TripleBatches(relations, recipe.triples_per_batch, recipe.seed)
        return RelationBatches(
            relations,
            recipe.relations_per_batch,
            recipe.positives_per_relation,
            recipe.negatives_per_relation,
            recipe.seed,
        )

    def fit(self, show_progress: bool | None = None) -> Progress:
        """Train, keep the weights with the lowest validation loss, and save the model to the output folder."""
        if not self.accelerator.is_main_process:
            show_progress = False
        progress, best = Progress({}, {}), kept(self.trainable)
        resumed = self._resume()
        if resumed is not None:
            progress, best = resumed
        else:
            progress.valid_loss[0] = self.validation_loss()
        done = max(progress.train_loss, default=0)
        last = done if self._has_stalled(progress) else self.steps  # a run may be killed between its end and its saving
        with (
            _Log(self.output, self.accelerator.is_main_process) as log,
            progress_bar(self.steps, "Training", unit="step", show=show_progress, initial=done) as bar,
        ):
            for step in range(done + 1, last + 1):
                progress.train_loss[step] = self._step(step)
                log.write("train loss", progress.train_loss[step], step)
                bar.update()
                bar.set_postfix(
                    loss=f"{progress.train_loss[step]:.3f}", valid=f"{min(progress.valid_loss.values()):.3f}"
                )
                if step % self.recipe.evaluate_every == 0 or step == self.steps:
                    progress.valid_loss[step] = self.validation_loss()
                    log.write("valid loss", progress.valid_loss[step], step)
                    if progress.best_step == step:
                        best = kept(self.trainable)
                    self._save_checkpoint(progress, best)
                    if self._has_stalled(progress):
                        break
        put_back(self.trainable, best)
        if self.accelerator.is_main_process:
            self.save(progress)
            (self.output / CHECKPOINT_NAME).unlink(missing_ok=True)
        return progress

    def _step(self, step: int) -> float:
        self.model.encoder.train(self.recipe.dropout)
        factor = learning_rate_factor(step, self.steps, self.recipe.warmup_steps, self.recipe.schedule)
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.learning_rate * factor
        batch = self.sampler(step - 1).to(self.accelerator.device)
        seed = (self.recipe.seed * 1_000_003 + step) * 1000
        value = step_gradients(self.model, self.loss, batch, self.accelerator, self.recipe.pairs_per_forward, seed)
        if not math.isfinite(value):
            raise RelvecError(f"The loss is {value} at step {step}; lower the learning rate.")
        torch.nn.utils.clip_grad_norm_(self.trainable.values(), self.recipe.max_gradient_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return value

    def validation_loss(self) -> float:
        """The loss on the validation part, all of it as one batch, without dropout."""
        with torch.no_grad():
            vectors = torch.from_numpy(self.model.encode(self.validation.pairs)).to(self.accelerator.device)
            value = self.loss(vectors[self.validation.row], self.validation)
            # All processes must agree on when to stop, to the last bit.
            return float(broadcast(value.detach()))

    def save(self, progress: Progress) -> None:
        """Write the trained model: an adapter for LoRA, a plain encoder otherwise."""
        record = training_record(self.recipe, self.steps, progress)
        is_first = self._language_model == self.recipe.base
        self.model.training_record = record if is_first else {"language_model": self._language_model, **record}
        self.model.name = self.output.resolve().name
        if self.adapter is None:
            self.model.save_pretrained(self.output)
        else:
            save_adapter(self.adapter, self.model, self.recipe.base, self.output)

    def _has_stalled(self, progress: Progress) -> bool:
        evaluations = list(progress.valid_loss)
        since_best = len(evaluations) - 1 - evaluations.index(progress.best_step)
        return 0 < self.recipe.patience <= since_best

    def _save_checkpoint(self, progress: Progress, best: dict[str, torch.Tensor]) -> None:
        if not self.accelerator.is_main_process:
            return
        state = {
            "train_loss": progress.train_loss,
            "valid_loss": progress.valid_loss,
            "weights": kept(self.trainable),
            "best": best,
            "optimizer": self.optimizer.state_dict(),
        }
        save_checkpoint(self.output, self._job, state)

    def _resume(self) -> tuple[Progress, dict[str, torch.Tensor]] | None:
        self.output.mkdir(parents=True, exist_ok=True)
        state = load_checkpoint(self.output, self._job)
        if state is None:
            return None
        put_back(self.trainable, state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        return Progress(state["train_loss"], state["valid_loss"]), state["best"]


class _Log:
    """Losses for TensorBoard, in a folder below the output folder."""

    def __init__(self, output: Path, is_main: bool) -> None:
        self._folder = output / LOGS_NAME if is_main else None

    def __enter__(self) -> "_Log":
        self._writer: Any = None
        if self._folder is not None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._folder))
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, name: str, value: float, step: int) -> None:
        if self._writer is not None:
            self._writer.add_scalar(name.replace(" ", "/"), value, step)


def training_record(recipe: Recipe, steps: int, progress: Progress) -> dict[str, Any]:
    """What the model card says about the training."""
    best = progress.best_step
    return {
        "base": recipe.base,
        "data": "; ".join(describe(name) for name in recipe.data),
        "recipe": recipe_record(recipe, steps),
        "metrics": {
            "validation loss before training": round(progress.valid_loss[0], 4),
            "validation loss": round(progress.valid_loss[best], 4),
            "step": best,
        },
    }
