"""P-tuning: the prompt is new tokens whose embeddings are learned while the language model is frozen (section 3.1).

What is saved is what was learned: the output of the trigger encoder becomes new rows of the vocabulary, and the model
is a plain encoder that loads anywhere.
"""

import hashlib
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from relvec.data.rated import RatedRelation, check_relations, split
from relvec.data.sources import describe
from relvec.errors import RelvecError
from relvec.io.paths import expanded
from relvec.learned_prompts.masked_model import check_room, masked_model
from relvec.learned_prompts.objective import PromptObjective, check_finite
from relvec.learned_prompts.plots import PICTURE_NAME, draw_history
from relvec.learned_prompts.ptuning.prompt_tuner import PromptTuner
from relvec.model.base import check_beside_base, lasting
from relvec.model.saving import check_unused
from relvec.progress import progress_bar
from relvec.prompts.learned import PROMPT_NAME, PromptResult
from relvec.prompts.lengths import Lengths
from relvec.storage.journal import HISTORY_NAME, Entry, Journal, check_own
from relvec.training.batches import Sampler, TripleBatches
from relvec.training.checkpoint import CHECKPOINT_NAME, load_checkpoint, save_checkpoint


def ptune(
    base: str | Path,
    relations: Sequence[RatedRelation],
    lengths: Lengths,
    output: str | Path,
    *,
    pooling: str = "average",
    epochs: float = 2.0,
    steps: int | None = None,
    learning_rate: float = 1e-3,
    triples_per_batch: int = 64,
    evaluate_every: int = 25,
    seed: int = 0,
    dtype: str = "float32",
    source: Mapping[str, Any] | None = None,
    device: str | torch.device | None = None,
    show_progress: bool | None = None,
) -> PromptResult:
    """Learn a prompt for `base` and save model and prompt in one folder; a run that was killed goes on where it was.

    An epoch is the paper's: 450 triples a relation with their in-batch negatives, and 5,040 a category, in batches of
    `triples_per_batch`. A step encodes each distinct pair of its batch once: on the paper's data, in batches of
    64, about 360 pairs a step and 200,000 an epoch of 556 steps. `steps`, if given, is the length of the run instead.
    The embeddings with the lowest validation loss are kept; it is computed at the start, every `evaluate_every` steps,
    when the run also becomes safe against being killed, and at the end. In the history, the `loss` of step 0 is over
    the whole training part, like `train_loss`, and that of a later step over its batch. With a `dtype` of bfloat16 the
    frozen language model computes in it, in half the time where the hardware has it; what is learned and saved, and the
    losses of the result, are float32 in any case. `source` says where the relations are from, for prompt.json and the
    model card.

    >>> from relvec import RelBERT
    >>> from relvec.data.sources import load
    >>> found = ptune(tiny_model, load("bundled")[:4], Lengths(2, 1, 1), "soft", steps=2)
    >>> RelBERT.from_pretrained("soft").template.text == found.text
    True
    """
    check_relations(relations)
    for name, value in (("triples_per_batch", triples_per_batch), ("evaluate_every", evaluate_every)):
        if value < 1:
            raise RelvecError(f"P-tuning cannot have a {name} of {value}; use 1 or more.")
    for name, share in (("learning rate", learning_rate), ("number of epochs", epochs if steps is None else 1)):
        if not 0 < share < math.inf:
            raise RelvecError(f"P-tuning cannot have a {name} of {share}; use a number above 0.")
    train = split(relations, "train")
    _check_negatives(train)
    sampler = TripleBatches(train, triples_per_batch, seed)
    if steps is None:
        if math.isinf(epochs * sampler.steps_per_epoch):
            raise RelvecError(f"P-tuning would never end with {epochs} epochs; use fewer.")
        steps = math.ceil(epochs * sampler.steps_per_epoch)
    if steps < 1:
        raise RelvecError(f"P-tuning in {steps} steps learns nothing; use 1 or more.")
    output = expanded(output)
    check_beside_base(str(base), output, "prompt")
    check_unused(output, (HISTORY_NAME,))
    check_own(output, HISTORY_NAME, (PROMPT_NAME, PICTURE_NAME))
    model = masked_model(base, lengths, pooling, device, dtype)
    check_room(model, lengths, relations)
    decisive = (steps, learning_rate, triples_per_batch, evaluate_every, seed)
    job = hashlib.sha256(repr((model.fingerprint, decisive, list(relations))).encode()).hexdigest()
    journal = Journal(output / HISTORY_NAME, job)
    is_done = _last_step(journal) == steps and not (output / CHECKPOINT_NAME).exists()
    if is_done and (saved := PromptResult.found_in(output)):
        found = replace(saved, settings={**saved.settings, **(source or {})}, history=journal.entries)
        found.save(output)  # the same relations may have come another way
        return found

    tuner = PromptTuner(model, lengths, learning_rate=learning_rate, seed=seed)
    run = _Run(tuner, sampler, relations, output, job, journal, seed)
    run.to(steps, evaluate_every, show_progress)
    learned = PromptTuner(masked_model(base, lengths, pooling, device), lengths)
    train_loss, validation_loss = run.finish(learned)
    language_model, model = model.language_model, learned.model
    model.name = output.resolve().name
    settings = {
        "steps": steps,
        "learning_rate": learning_rate,
        "triples_per_batch": triples_per_batch,
        "evaluate_every": evaluate_every,
        "dtype": dtype,
        **(source or {}),
    }
    record = _record(base, settings, seed, train_loss, validation_loss, run.progress.best_step)
    model.training_record = {"language_model": language_model, **record} if language_model else record
    model.save_pretrained(output)
    result = PromptResult(
        method="ptuning",
        base=lasting(str(base)),
        pooling=pooling,
        lengths=lengths,
        seed=seed,
        tokens=list(model.template.tokens or ()),
        text=model.template.text,
        train_loss=train_loss,
        validation_loss=validation_loss,
        encodings=run.progress.encodings,
        seconds=run.progress.seconds,
        triple_encodings=run.progress.triple_encodings,
        settings=settings,
        history=journal.entries,
    )
    result.save(output)
    draw_history(result, output / PICTURE_NAME)
    (output / CHECKPOINT_NAME).unlink(missing_ok=True)
    return result


def _check_negatives(train: Sequence[RatedRelation]) -> None:
    for relation in train:
        if not relation.negatives:
            problem = f"Relation {relation.name!r} has no badly rated pair to train on, besides what is held out"
            raise RelvecError(f"{problem}; rate more of its pairs low, leave it out, or use AutoPrompt.")


@dataclass
class _Progress:
    """Steps done, the step with the lowest validation loss, and the cost so far."""

    step: int = 0
    best_step: int = 0
    best_loss: float = float("inf")
    encodings: int = 0
    triple_encodings: int = 0
    seconds: float = 0.0


class _Run:
    """The loop over the steps: losses written down, the best embeddings remembered, checkpoints."""

    def __init__(
        self,
        tuner: PromptTuner,
        sampler: Sampler,
        relations: Sequence[RatedRelation],
        output: Path,
        job: str,
        journal: Journal,
        seed: int,
    ) -> None:
        self.tuner, self.sampler = tuner, sampler
        self._output, self._job, self._journal = output, job, journal
        self._training = PromptObjective(relations, "train", seed)
        self._validation = PromptObjective(relations, "valid", seed)
        self.progress, self._best = _Progress(), tuner.embeddings()
        state = load_checkpoint(output, job)
        # Where the journal has lost its tail, the run starts again: the history shall have no gap.
        if state is not None and state["progress"]["step"] <= _last_step(journal):
            self.progress, self._best = _Progress(**state["progress"]), state["best"]
            tuner.triggers.load_state_dict(state["triggers"])
            tuner.optimizer.load_state_dict(state["optimizer"])
        self._started = time.perf_counter() - self.progress.seconds

    def to(self, steps: int, evaluate_every: int, show_progress: bool | None) -> None:
        """Go on until so many steps are done."""
        if not self.progress.step:
            start: Entry = {
                "step": 0,
                "loss": self._loss(self._training, self.tuner),
                "validation_loss": self._evaluate(),
            }
            check_finite(start["loss"])
            self._note(start)
        bar = progress_bar(steps, "P-tuning", unit="step", show=show_progress, initial=self.progress.step)
        with bar:
            while self.progress.step < steps:
                batch = self.sampler(self.progress.step)
                entry: Entry = {"step": self.progress.step + 1, "loss": self.tuner.step(batch)}
                self.progress.step += 1
                self.progress.encodings += len(batch.pairs)
                self.progress.triple_encodings += 3 * len(batch.triples)
                is_safe = self.progress.step % evaluate_every == 0 or self.progress.step == steps
                if is_safe:
                    entry["validation_loss"] = self._evaluate()
                self._note(entry)
                if is_safe:
                    self._save()
                bar.update()
                bar.set_postfix(loss=f"{entry['loss']:.4f}", valid=f"{self.progress.best_loss:.4f}")

    def finish(self, learned: PromptTuner) -> tuple[float, float]:
        """Keep the best embeddings in `learned`, and return its losses over the training and the validation part."""
        learned.keep(self._best)
        losses = self._loss(self._training, learned), self._loss(self._validation, learned)
        self.progress.seconds = time.perf_counter() - self._started
        return losses

    def _evaluate(self) -> float:
        """The validation loss of the embeddings as they are now, which are remembered if they are the best so far."""
        embeddings = self.tuner.embeddings()
        self.tuner.keep(embeddings)
        loss = self._loss(self._validation, self.tuner)
        if loss < self.progress.best_loss:
            self.progress.best_step, self.progress.best_loss, self._best = self.progress.step, loss, embeddings
        return loss

    def _loss(self, objective: PromptObjective, tuner: PromptTuner) -> float:
        self.progress.encodings += len(objective.pairs)
        self.progress.triple_encodings += objective.triple_encodings
        return objective.of_model(tuner.model)

    def _note(self, entry: Entry) -> None:
        """Write an entry down, unless an attempt that was killed after its last checkpoint already did."""
        if entry["step"] > _last_step(self._journal):
            self._journal.add(entry)

    def _save(self) -> None:
        self.progress.seconds = time.perf_counter() - self._started
        state = {
            "progress": asdict(self.progress),
            "best": self._best,
            "triggers": self.tuner.triggers.state_dict(),
            "optimizer": self.tuner.optimizer.state_dict(),
        }
        save_checkpoint(self._output, self._job, state)


def _last_step(journal: Journal) -> int:
    with journal.damage_noticed():
        return int(journal.entries[-1]["step"]) if journal.entries else -1


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
