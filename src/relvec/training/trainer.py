"""Fine-tuning an encoder on relations, with accelerate for devices, mixed precision and several processes.

A contrastive loss needs all vectors of a batch at once. Where they do not fit into one forward pass, or lie on
several processes, the vectors are first computed without gradient and gathered; the loss gives the gradient of each
vector; then each chunk is computed again and this gradient is sent back through it (gradient caching). Without dropout
the result equals that of one large pass; with it, each chunk drops units of its own.
"""

import math
from collections.abc import Collection, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import broadcast
from torch import Tensor

from relvec.data.rated import RatedRelation
from relvec.data.sources import describe
from relvec.errors import RelvecError
from relvec.io.files import expanded
from relvec.model.adapter import check_beside_base
from relvec.model.torch_backend import TorchRelBERT
from relvec.pairs import Pair
from relvec.storage.job import job_of
from relvec.training.adapters import add_lora
from relvec.training.batch import Batch
from relvec.training.gradients import gradients_by_threads
from relvec.training.loop import LOOP_SETTINGS, Course, NamedScores
from relvec.training.losses import LOSSES, make_loss
from relvec.training.model_training import ModelTraining, seconds_of
from relvec.training.recipe import Recipe, recipe_record
from relvec.training.samplers import RelationBatches, Scrambler, TripleBatches, validation_batch
from relvec.training.teacher import Teacher

LOGS_NAME = "logs"
VALID_LOSS = "valid loss"


class Trainer(ModelTraining):
    """Fine-tunes a RelBERT on relations and, if there is one, on the similarities of a teacher; see `Recipe`.

    No scrambled negative has an `excluded` key.
    """

    model: TorchRelBERT
    score = VALID_LOSS

    def __init__(
        self,
        model: TorchRelBERT,
        train: Sequence[RatedRelation],
        valid: Sequence[RatedRelation],
        recipe: Recipe,
        output: str | Path,
        excluded: Collection[Pair] = (),
        teacher: Teacher | None = None,
    ) -> None:
        output = expanded(output)
        self.model, self.base, self.recipe, self.teacher = model, recipe.base, recipe, teacher
        self.relations, self.valid = train, valid
        self._language_model = model.language_model or recipe.base
        check_beside_base(recipe.base, output, "adapter" if recipe.lora_rank else "training")
        # A pair that is too long for the model is found now, not at its step.
        model.token_ids(list(dict.fromkeys(pair for relation in (*train, *valid) for pair in relation.pairs)))
        AcceleratorState._reset_state()  # else a second run of the process could not change its precision
        self.accelerator = Accelerator(mixed_precision=recipe.mixed_precision)
        device = self.accelerator.device
        self.is_main = self.accelerator.is_main_process
        self.logs = output / LOGS_NAME
        torch.nn.Module.to(model.encoder, device)
        torch.manual_seed(recipe.seed)
        self.loss = make_loss(recipe.loss, model.dim, **recipe.loss_settings).to(device)
        self.sampler: RelationBatches | TripleBatches = (
            TripleBatches(train, recipe.triples_per_batch, recipe.seed)
            if LOSSES[recipe.loss].needs_triples
            else RelationBatches(train, recipe, Scrambler([*train, *valid], excluded))
        )
        count = min(recipe.validation_relations or len(train), len(train))
        rows = torch.linspace(0, len(train) - 1, count).round().int().tolist()
        self.validation = validation_batch([train[row] for row in rows], [valid[row] for row in rows]).to(device)
        freeze_layers(model, recipe.frozen_layers)
        taught_by = (teacher.vectors.fingerprint, list(teacher.unlabelled)) if teacher else ()
        job = job_of(recipe, model.fingerprint, list(train), list(valid), *taught_by)
        torch.manual_seed(recipe.seed)
        self.adapter = add_lora(model.encoder, recipe.lora_rank)
        super().__init__(
            chain(model.encoder.named_parameters(), self.loss.named_parameters("loss")),
            job,
            output,
            steps=recipe.steps if recipe.epochs <= 0 else math.ceil(recipe.epochs * self.sampler.steps_per_epoch),
            **recipe.model_dump(include=LOOP_SETTINGS),
        )

    def gradients(self, step: int) -> float:
        model, accelerator = self.model, self.accelerator
        model.encoder.train(self.recipe.dropout)
        batch = self.sampler(step - 1).to(accelerator.device)
        pairs = self._pairs(batch, step)
        token_ids = model.token_ids(pairs, truncate=True)  # words of two pairs may be too long together
        share = math.ceil(len(token_ids) / accelerator.num_processes)
        chunks = list(torch.arange(len(token_ids)).split(min(self.recipe.pairs_per_forward, share)))
        mine = range(accelerator.process_index, len(chunks), accelerator.num_processes)
        seed = (self.recipe.seed * 1_000_003 + step) * 1000

        def loss(vectors: Tensor) -> Tensor:
            value: Tensor = self.loss(vectors[batch.row], batch)
            return value + self.teacher.loss(vectors, pairs) if self.teacher else value

        def encoded(chunk: int) -> Tensor:
            torch.manual_seed(seed + chunk)  # both passes must drop the same units
            with accelerator.autocast():
                return model.vectors_by_length([token_ids[row] for row in chunks[chunk].tolist()]).float()

        if accelerator.num_processes == len(chunks) == 1:
            torch.manual_seed(seed)
            return gradients_by_threads(model, token_ids, loss, accelerator.autocast)
        vectors = torch.zeros(len(token_ids), model.dim, device=accelerator.device)
        with torch.no_grad():
            for chunk in mine:
                vectors[chunks[chunk]] = encoded(chunk)
        vectors = accelerator.reduce(vectors, "sum").requires_grad_()
        value = loss(vectors)
        value.backward()  # also the gradients of the loss, the same in every process
        assert vectors.grad is not None
        for chunk in mine:
            accelerator.backward((encoded(chunk) * vectors.grad[chunks[chunk]]).sum())
        if accelerator.num_processes > 1:
            for weight in model.encoder.parameters():
                if weight.requires_grad:
                    gradient = torch.zeros_like(weight) if weight.grad is None else weight.grad
                    weight.grad = accelerator.reduce(gradient, "sum")
        return float(value.detach())

    def _pairs(self, batch: Batch, step: int) -> list[Pair]:
        """The distinct pairs of a step: those of its batch, which come first, and those that a teacher adds."""
        added = self.teacher.added_pairs(step) if self.teacher else []
        return list(dict.fromkeys((*batch.pairs, *added)))

    def evaluate(self) -> NamedScores:
        """The loss on the validation part, all of it as one batch, without dropout."""
        with torch.no_grad():
            vectors = torch.from_numpy(self.model.encode(self.validation.pairs)).to(self.accelerator.device)
            value = self.loss(vectors[self.validation.row], self.validation)
            # All processes must agree on when to stop, to the last bit.
            return {VALID_LOSS: float(broadcast(value.detach()))}

    def record(self, course: Course) -> dict[str, Any]:
        recipe = self.recipe
        language_model = {} if self._language_model == recipe.base else {"language_model": self._language_model}
        return language_model | {
            "base": recipe.base,
            "data": "; ".join(describe(name) for name in recipe.data),
            "recipe": recipe_record(recipe, self.steps),
            "metrics": {
                "validation loss before training": round(course.first[VALID_LOSS], 4),
                "validation loss": round(course.best[VALID_LOSS], 4),
                "step": course.best_step,
            },
        }

    def plan(self) -> dict[str, float]:
        """Count the run and estimate its seconds; the weights stay as they are.

        A teacher is taken to encode all pairs of all steps; it takes less time where they repeat.
        """
        train, batch, evaluated_pairs = self.relations, self.sampler(0), len(self.validation.pairs)
        pairs, teacher_seconds = self._pairs(batch, 1), 0.0
        if self.teacher:
            teacher = self.teacher.vectors
            teacher_seconds = self.steps * seconds_of(lambda: teacher.model.encode(pairs, truncate=True))
            teacher.prepare(pairs)  # so that a step does not wait for them
        step_seconds = self.estimated_seconds(lambda: self.gradients(1), len(pairs), evaluated_pairs)
        return {
            "relations": len(train),
            "categories": len({relation.category for relation in train if relation.category}),
            "train_pairs": len({pair for relation in train for pair in relation.pairs}),
            # An evaluation encodes training pairs besides.
            "valid_pairs": len({pair for relation in self.valid for pair in relation.pairs}),
            "steps": self.steps,
            "pairs_per_step": len(pairs),
            "triples_per_step": len(batch.triples),
            "trainable_parameters": self.trainable_parameters,
            "seconds": step_seconds + teacher_seconds,
        }


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
