"""P-tuning: the prompt is new tokens whose embeddings are learned while the language model is frozen (section 3.1).

What is saved is what was learned: the output of the trigger encoder becomes new rows of the vocabulary, and the model
is a plain encoder that loads anywhere.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from relvec.data.rated import RatedRelation, check_relations, split
from relvec.data.sources import describe
from relvec.errors import RelvecError
from relvec.io.files import expanded
from relvec.learned_prompts.masked_model import check_room, masked_model
from relvec.learned_prompts.objective import PromptObjective, check_finite
from relvec.learned_prompts.plots import PICTURE_NAME, draw_history
from relvec.learned_prompts.ptuning.prompt_tuner import PromptTuner
from relvec.learned_prompts.settings import PTuningSettings
from relvec.model.adapter import check_beside_base, lasting
from relvec.model.saving import check_no_model
from relvec.prompts.learned import PROMPT_NAME, Lengths, PromptResult
from relvec.storage.journal import HISTORY_NAME, Journal, check_own
from relvec.training.checkpoint import CHECKPOINT_NAME, job_of
from relvec.training.loop import Loop, Scores
from relvec.training.samplers import TripleBatches


def ptune(
    base: str | Path,
    relations: Sequence[RatedRelation],
    lengths: Lengths,
    output: str | Path,
    *,
    source: Mapping[str, Any] | None = None,
    device: str | torch.device | None = None,
    show_progress: bool | None = None,
    **settings: Any,
) -> PromptResult:
    """Learn a prompt for `base` and save model and prompt in one folder; the same call again resumes a killed run.

    `settings` are those of PTuningSettings. An epoch is the paper's: 450 triples a relation with their in-batch
    negatives, and 5,040 a category, in batches of `triples_per_batch`. A step encodes each distinct pair of its batch
    once: on the paper's data, in batches of 64, about 360 pairs a step and 200,000 an epoch of 556 steps.

    The embeddings with the lowest validation loss are kept. In the history, the `loss` of step 0 is over the whole
    training part, like `train_loss`, and that of a later step over its batch. With a `dtype` of bfloat16 the frozen
    language model computes in it, in half the time where the hardware has it; what is learned and saved, and the losses
    of the result, are float32 in any case. `source` says where the relations are from, for prompt.json and the model
    card.

    >>> from relvec import RelBERT
    >>> from relvec.data.sources import load
    >>> found = ptune(tiny_model, load("bundled")[:4], Lengths(2, 1, 1), "soft", steps=2)
    >>> RelBERT.from_pretrained("soft").template.text == found.text
    True
    """
    chosen = PTuningSettings(**settings)
    check_relations(relations)
    train = split(relations, "train")
    _check_negatives(train)
    sampler = TripleBatches(train, chosen.triples_per_batch, chosen.seed)
    steps = chosen.steps or math.ceil(chosen.epochs * sampler.steps_per_epoch)
    output = expanded(output)
    check_beside_base(str(base), output, "prompt")
    check_no_model(output, (HISTORY_NAME, CHECKPOINT_NAME))
    check_own(output, HISTORY_NAME, (PROMPT_NAME, PICTURE_NAME))
    model = masked_model(base, lengths, chosen.pooling, device, chosen.dtype)
    check_room(model, lengths, relations)
    decisive = (steps, chosen.learning_rate, chosen.triples_per_batch, chosen.evaluate_every, chosen.seed)
    job = job_of(model.fingerprint, decisive, list(relations))
    journal = Journal(output / HISTORY_NAME, job)
    if journal.entries and not (output / CHECKPOINT_NAME).exists() and (saved := PromptResult.found_in(output)):
        found = saved.model_copy(update={"settings": {**saved.settings, **(source or {})}, "history": journal.entries})
        found.save(output)  # the same relations may have come another way
        return found

    tuner = PromptTuner(model, lengths, seed=chosen.seed)
    run = PromptTuning(tuner, sampler, relations, chosen, job, output / CHECKPOINT_NAME, steps)
    course = run.run(show_progress)
    learned = PromptTuner(masked_model(base, lengths, chosen.pooling, device), lengths)
    learned.keep(run.best["embeddings"])
    train_loss, validation_loss = (run.loss_of(objective, learned) for objective in (run.training, run.validation))
    history = run.history()
    (output / HISTORY_NAME).unlink(missing_ok=True)
    journal = Journal(output / HISTORY_NAME, job)
    for entry in history:
        journal.add(entry)
    language_model, model = model.language_model, learned.model
    model.name = output.resolve().name
    own = chosen.model_dump(exclude={"pooling", "seed", "epochs"})
    stored = {**own, "steps": steps, **(source or {})}
    record = _record(base, stored, chosen.seed, train_loss, validation_loss, course.best_step)
    model.training_record = {"language_model": language_model, **record} if language_model else record
    model.save_pretrained(output)
    result = PromptResult(
        method="ptuning",
        base=lasting(str(base)),
        pooling=chosen.pooling,
        lengths=lengths,
        seed=chosen.seed,
        tokens=list(model.template.tokens or ()),
        text=model.template.text,
        train_loss=train_loss,
        validation_loss=validation_loss,
        encodings=course.counts["encodings"],
        seconds=course.seconds,
        triple_encodings=course.counts["triple_encodings"],
        settings=stored,
        history=history,
    )
    result.save(output)
    draw_history(result, output / PICTURE_NAME)
    run.delete_checkpoint()
    return result


def _check_negatives(train: Sequence[RatedRelation]) -> None:
    for relation in train:
        if not relation.negatives:
            problem = f"Relation {relation.name!r} has no badly rated pair to train on, besides what is held out"
            raise RelvecError(f"{problem}; rate more of its pairs low, leave it out, or use AutoPrompt.")


class PromptTuning(Loop):
    """The training of the trigger encoder; of the best step, the embeddings are kept."""

    title, score = "P-tuning", "validation_loss"

    def __init__(
        self,
        tuner: PromptTuner,
        sampler: TripleBatches,
        relations: Sequence[RatedRelation],
        settings: PTuningSettings,
        job: str,
        checkpoint: Path,
        steps: int,
    ) -> None:
        self.tuner, self.sampler = tuner, sampler
        self.training = PromptObjective(relations, "train", settings.seed)
        self.validation = PromptObjective(relations, "valid", settings.seed)
        super().__init__(
            tuner.triggers.named_parameters(),
            job,
            checkpoint,
            steps=steps,
            evaluate_every=settings.evaluate_every,
            learning_rate=settings.learning_rate,
            schedule="constant",
            weight_decay=0.0,
        )

    def gradients(self, step: int) -> float:
        batch = self.sampler(step - 1)
        self.course.counts["encodings"] += len(batch.pairs)
        self.course.counts["triple_encodings"] += 3 * len(batch.triples)
        loss = self.tuner.loss(batch)
        loss.backward()
        return float(loss.detach())

    def evaluate(self) -> Scores:
        self.tuner.keep(self.tuner.embeddings())
        if not self.course.loss:
            self.course.loss[0] = self.loss_of(self.training, self.tuner)
            check_finite(self.course.loss[0])
        return {self.score: self.loss_of(self.validation, self.tuner)}

    def snapshot(self) -> Mapping[str, Tensor]:
        return {"embeddings": self.tuner.embeddings()}

    def loss_of(self, objective: PromptObjective, tuner: PromptTuner) -> float:
        self.course.counts["encodings"] += len(objective.pairs)
        self.course.counts["triple_encodings"] += objective.triple_encodings
        return objective.of_model(tuner.model)

    def history(self) -> list[dict[str, Any]]:
        """One entry a step: its loss, and the validation loss where it was computed."""
        return [
            {"step": step, "loss": loss, **self.course.scores.get(step, {})} for step, loss in self.course.loss.items()
        ]


def _record(
    base: str | Path,
    settings: Mapping[str, Any],
    seed: int,
    train_loss: float,
    validation_loss: float,
    best_step: int,
) -> dict[str, Any]:
    """What the model card says about the training."""
    shown = {name: value for name, value in settings.items() if value and name != "data"}
    losses = {"training loss": round(train_loss, 4), "validation loss": round(validation_loss, 4)}
    return {
        "base": str(base),
        **({"data": "; ".join(map(describe, settings["data"]))} if "data" in settings else {}),
        "recipe": {"method": "P-tuning, language model frozen", **shown, "seed": seed},
        "metrics": {**losses, "step": best_step},
    }
