"""P-tuning: the prompt is new tokens whose embeddings are learned while the language model is frozen (section 3.1).

What is saved is what was learned: the output of the trigger encoder becomes new rows of the vocabulary, and the model
is a plain encoder that loads anywhere.
"""

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from relvec.data.rated import split
from relvec.data.sources import describe
from relvec.learned_prompts.objective import PromptObjective, check_finite
from relvec.learned_prompts.prompt_task import PromptTask
from relvec.learned_prompts.ptuning.prompt_tuner import PromptTuner
from relvec.learned_prompts.settings import PTuningSettings
from relvec.model.saving import finished_run
from relvec.prompts.learned import PromptResult
from relvec.storage.job import job_of
from relvec.storage.journal import HISTORY_NAME, Journal
from relvec.training.loop import CHECKPOINT_NAME, Loop, NamedScores
from relvec.training.samplers import TripleBatches


def ptune(task: PromptTask, show_progress: bool | None = None) -> PromptResult:
    """Learn a prompt, keep the embeddings with the lowest validation loss, and save the model beside the prompt.

    An epoch is the paper's: 450 triples a relation with their in-batch negatives, and 5,040 a category. In the history,
    the `loss` of step 0 is over the whole training part, like `train_loss`, and that of a later step over its batch.
    What is learned and saved, and the losses of the result, are float32 whatever the `dtype`.
    """
    chosen, output, model = task.settings, task.output, task.model
    assert isinstance(chosen, PTuningSettings)
    sampler = TripleBatches(split(task.relations, "train"), chosen.triples_per_batch, chosen.seed)
    steps = chosen.steps or math.ceil(chosen.epochs * sampler.steps_per_epoch)
    task.stored["steps"] = steps
    decisive = (steps, chosen.learning_rate, chosen.triples_per_batch, chosen.evaluate_every, chosen.seed)
    job = job_of(model.fingerprint, decisive, list(task.relations))
    finished_run(output, job, (HISTORY_NAME, CHECKPOINT_NAME))  # the journal knows more of a finished one
    journal = Journal(output / HISTORY_NAME, job)
    if journal.entries and not (output / CHECKPOINT_NAME).exists() and (saved := PromptResult.found_in(output)):
        found = saved.model_copy(update={"settings": {**saved.settings, **task.stored}, "history": journal.entries})
        found.save(output)  # the same relations may have come another way
        return found

    run = PromptTuning(task, chosen, sampler, steps, job)
    course = run.run(show_progress)
    learned = PromptTuner(task.masked_model(), task.lengths)
    learned.keep(run.best["embeddings"])
    train_loss, validation_loss = (run.loss_of(objective, learned) for objective in (task.training, task.validation))
    history = run.history()
    (output / HISTORY_NAME).unlink(missing_ok=True)
    journal = Journal(output / HISTORY_NAME, job)
    for entry in history:
        journal.add(entry)
    language_model, model = model.language_model, learned.model
    model.name = output.resolve().name
    shown = {name: value for name, value in task.stored.items() if value and name != "data"}
    losses = {"training loss": round(train_loss, 4), "validation loss": round(validation_loss, 4)}
    model.training_record = {
        **({"language_model": language_model} if language_model else {}),
        "base": task.base,
        **({"data": "; ".join(map(describe, task.stored["data"]))} if "data" in task.stored else {}),
        "recipe": {"method": "P-tuning, language model frozen", **shown, "seed": chosen.seed},
        "metrics": {**losses, "step": course.best_step},
    }
    model.save_pretrained(output)
    result = task.save(
        method="ptuning",
        tokens=list(model.template.tokens or ()),
        text=model.template.text,
        train_loss=train_loss,
        validation_loss=validation_loss,
        encodings=course.counts["encodings"],
        seconds=course.seconds,
        triple_encodings=course.counts["triple_encodings"],
        history=history,
    )
    run.delete_checkpoint()
    return result


class PromptTuning(Loop):
    """The training of the trigger encoder; of the best step, the embeddings are kept."""

    title, score = "P-tuning", "validation_loss"

    def __init__(
        self, task: PromptTask, settings: PTuningSettings, sampler: TripleBatches, steps: int, job: str
    ) -> None:
        self.task, self.sampler = task, sampler
        self.tuner = PromptTuner(task.model, task.lengths, settings.seed)
        super().__init__(
            self.tuner.triggers.named_parameters(),
            job,
            task.output / CHECKPOINT_NAME,
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

    def evaluate(self) -> NamedScores:
        self.tuner.keep(self.tuner.embeddings())
        if not self.course.loss:
            self.course.loss[0] = self.loss_of(self.task.training, self.tuner)
            check_finite(self.course.loss[0])
        return {self.score: self.loss_of(self.task.validation, self.tuner)}

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
