"""Fine-tuning an encoder on relations.

It uses accelerate for devices, mixed precision and several processes. The loss needs all vectors of a step at once,
which a trainer that sees one example at a time would hide.
"""

import math
from collections.abc import Sequence
from contextlib import nullcontext
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
from relvec.io.files import expanded
from relvec.model.adapter import check_beside_base
from relvec.model.saving import check_model_output
from relvec.model.torch_backend import TorchRelBERT
from relvec.storage.lock import writing
from relvec.training.adapters import add_lora, save_adapter
from relvec.training.checkpoint import CHECKPOINT_NAME, job_of
from relvec.training.gradients import step_gradients
from relvec.training.loop import Course, Loop, Scores, put_back
from relvec.training.losses import LOSSES, make_loss
from relvec.training.recipe import Recipe, is_recipe_of, recipe_record, saved_recipe
from relvec.training.samplers import RelationBatches, Sampler, TripleBatches, validation_batch

LOGS_NAME = "logs"
VALID_LOSS = "valid loss"


class Trainer(Loop):
    """Fine-tunes a RelBERT on relations; see `Recipe` for the choices."""

    score = VALID_LOSS

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
        # A pair that is too long for the model is found now, not at its step.
        rated = [pair for relation in (*train, *valid) for pair in (*relation.positives, *relation.negatives)]
        model.token_ids(list(dict.fromkeys(rated)))
        AcceleratorState._reset_state()  # else a second run of the process could not change its precision
        self.accelerator = Accelerator(mixed_precision=recipe.mixed_precision)
        device = self.accelerator.device
        self.is_main = self.accelerator.is_main_process
        self.logs = self.output / LOGS_NAME
        self.patience, self.max_gradient_norm = recipe.patience, recipe.max_gradient_norm
        torch.nn.Module.to(model.encoder, device)
        torch.manual_seed(recipe.seed)
        self.loss = make_loss(recipe.loss, model.dim, **recipe.loss_settings).to(device)
        self.sampler = self._make_sampler(train)
        self.validation = validation_batch(train, valid).to(device)
        freeze_layers(model, recipe.frozen_layers)
        job = job_of(recipe, model.fingerprint, list(train), list(valid))
        torch.manual_seed(recipe.seed)
        self.adapter = add_lora(model.encoder, recipe.lora_rank) if recipe.lora_rank else None
        super().__init__(
            chain(model.encoder.named_parameters(), self.loss.named_parameters("loss")),
            job,
            self.output / CHECKPOINT_NAME,
            steps=recipe.steps if recipe.epochs <= 0 else math.ceil(recipe.epochs * self.sampler.steps_per_epoch),
            evaluate_every=recipe.evaluate_every,
            learning_rate=recipe.learning_rate,
            warmup_steps=recipe.warmup_steps,
            schedule=recipe.schedule,
            weight_decay=recipe.weight_decay,
        )

    def _check_output(self) -> None:
        """A run must not replace its base, files that are no model's, or a finished model of another recipe."""
        check_beside_base(self.recipe.base, self.output, "adapter" if self.recipe.lora_rank else "training")
        check_model_output(self.output)
        saved = {} if (self.output / CHECKPOINT_NAME).exists() else saved_recipe(self.output)
        if saved and not is_recipe_of(self.recipe, saved):
            problem = f"{self.output} holds a finished model of another recipe"
            raise RelvecError(f"{problem}; choose another output, or remove it.")

    def _make_sampler(self, relations: Sequence[RatedRelation]) -> Sampler:
        recipe = self.recipe
        if LOSSES[recipe.loss].needs_triples:
            return TripleBatches(relations, recipe.triples_per_batch, recipe.seed)
        return RelationBatches(
            relations,
            recipe.relations_per_batch,
            recipe.positives_per_relation,
            recipe.negatives_per_relation,
            recipe.seed,
        )

    def fit(self, show_progress: bool | None = None) -> Course:
        """Train, keep the weights with the lowest validation loss, and save the model to the output folder."""
        with writing(self.output) if self.is_main else nullcontext():
            course = self.run(show_progress)
            put_back(self.weights, self.best)
            if self.is_main:
                self.save(course)
            self.delete_checkpoint()
        return course

    def gradients(self, step: int) -> float:
        self.model.encoder.train(self.recipe.dropout)
        batch = self.sampler(step - 1).to(self.accelerator.device)
        seed = (self.recipe.seed * 1_000_003 + step) * 1000
        return step_gradients(self.model, self.loss, batch, self.accelerator, self.recipe.pairs_per_forward, seed)

    def evaluate(self) -> Scores:
        """The loss on the validation part, all of it as one batch, without dropout."""
        with torch.no_grad():
            vectors = torch.from_numpy(self.model.encode(self.validation.pairs)).to(self.accelerator.device)
            value = self.loss(vectors[self.validation.row], self.validation)
            # All processes must agree on when to stop, to the last bit.
            return {VALID_LOSS: float(broadcast(value.detach()))}

    def save(self, course: Course) -> None:
        """Write the trained model: an adapter for LoRA, a plain encoder otherwise."""
        record = training_record(self.recipe, self.steps, course)
        is_first = self._language_model == self.recipe.base
        self.model.training_record = record if is_first else {"language_model": self._language_model, **record}
        self.model.name = self.output.resolve().name
        if self.adapter is None:
            self.model.save_pretrained(self.output)
        else:
            save_adapter(self.adapter, self.model, self.recipe.base, self.output)


def freeze_layers(model: TorchRelBERT, count: int) -> None:
    """Keep the embeddings and the first `count` blocks of the encoder as they are; at least one is left to train."""
    if not count:
        return
    blocks = next((m for m in model.encoder.modules() if isinstance(m, torch.nn.ModuleList)), None)
    if blocks is None or count >= len(blocks):
        problem = f"Cannot freeze {count} layers of {model.encoder.config.model_type}, which has {len(blocks or ())}"
        raise RelvecError(f"{problem}; use a smaller number.")
    embeddings = getattr(model.encoder, "embeddings", model.encoder.get_input_embeddings())
    for module in (embeddings, *blocks[:count]):
        module.requires_grad_(False)


def training_record(recipe: Recipe, steps: int, course: Course) -> dict[str, Any]:
    """What the model card says about the training."""
    return {
        "base": recipe.base,
        "data": "; ".join(describe(name) for name in recipe.data),
        "recipe": recipe_record(recipe, steps),
        "metrics": {
            "validation loss before training": round(course.first[VALID_LOSS], 4),
            "validation loss": round(course.best[VALID_LOSS], 4),
            "step": course.best_step,
        },
    }
