"""P-tuning: the prompt is new tokens whose embeddings are learned while the language model is frozen (section 3.1).

A trigger encoder is trained; a frozen model reads its output as the embeddings of the new tokens. What is saved is that
output, as new rows of the vocabulary: the model is a plain encoder that loads anywhere.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import count, islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding
from transformers import AddedToken, PreTrainedModel, PreTrainedTokenizerBase

from relvec.data.rated import split
from relvec.data.sources import describe
from relvec.errors import RelvecError
from relvec.learned_prompts.objective import PromptObjective, check_finite
from relvec.learned_prompts.prompt_task import PromptTask, embeddings_changed
from relvec.learned_prompts.settings import PTuningSettings
from relvec.model.saving import finished_run
from relvec.model.torch_backend import TorchRelBERT
from relvec.pairs import Pair
from relvec.progress import quiet_transformers
from relvec.prompts.learned import Lengths, PromptResult
from relvec.prompts.template import Template
from relvec.storage.job import job_of
from relvec.storage.journal import HISTORY_NAME, Journal
from relvec.training.batch import Batch
from relvec.training.loop import CHECKPOINT_NAME, LOOP_SETTINGS, Loop, NamedScores
from relvec.training.losses.triplet import Triplet
from relvec.training.samplers import TripleBatches

LAYERS = 2


class PromptTuner:
    """A model with new tokens in its prompt, and the trigger encoder that learns their embeddings.

    `model` is taken over: its vocabulary grows, and its weights are frozen. `model` of the tuner encodes with the
    embeddings that were last kept, at first those that the trigger encoder starts with.

    >>> tuner = PromptTuner(TorchRelBERT.from_pretrained(tiny_model), Lengths(2, 1, 0))
    >>> tuner.model.template.text
    '<relvec-1> <relvec-2> [h] <relvec-3> [t]'
    """

    def __init__(self, model: TorchRelBERT, lengths: Lengths, seed: int = 0) -> None:
        encoder, tokenizer = model.encoder, model.tokenizer
        encoder.requires_grad_(False).eval()
        vocabulary = embedding_table(encoder).weight.float().clone()
        names = add_tokens(encoder, tokenizer, lengths.total)
        template = Template.from_tokens(lengths.arranged(names))
        self.model = TorchRelBERT(encoder, tokenizer, template, model.pooling, name=model.name)
        self.triggers = TriggerEncoder(lengths.total, vocabulary, vocabulary[tokenizer.mask_token_id], seed)
        self._ids = [tokenizer.get_vocab()[name] for name in names]
        self._loss = Triplet(model.dim)
        self.keep(self.embeddings())

    @torch.no_grad()
    def embeddings(self) -> Tensor:
        """The trigger embeddings as they are now: [triggers, d]."""
        found: Tensor = self.triggers()
        return found

    @torch.no_grad()
    def keep(self, embeddings: Tensor) -> None:
        """Make trigger embeddings rows of the vocabulary: with these the model encodes, and these it saves."""
        weight = embedding_table(self.model.encoder).weight
        weight[self._ids] = embeddings.to(weight)

    def vectors(self, pairs: Sequence[Pair]) -> Tensor:
        """The vectors of pairs under the prompt being learned: [pairs, dim], differentiable in the trigger encoder."""
        with rows_replaced(self.model.encoder, self._ids, self.triggers()):
            return self.model.vectors_by_length(self.model.token_ids(pairs)).float()

    def loss(self, batch: Batch) -> Tensor:
        """The triplet loss of a batch, differentiable in the trigger encoder."""
        batch = batch.to(self.model.device)
        value: Tensor = self._loss(self.vectors(batch.pairs)[batch.row], batch)
        return value


class TriggerEncoder(nn.Module):
    """The embeddings of n trigger tokens, each of which knows its neighbours (section 3.1 of the paper).

        e_1 .. e_n = W2 relu(W1 BiLSTM(v_1 .. v_n) + b1) + b2

    All of v [n, d], the two-layer BiLSTM, W and b are trained. The v are drawn at the scale of the language model's
    input embeddings, `vocabulary` [words, d]; the triggers start around `start` [d], that of the mask, at that scale.

    >>> vocabulary = torch.randn(100, 8)
    >>> TriggerEncoder(5, vocabulary, start=vocabulary[3])().shape
    torch.Size([5, 8])
    """

    def __init__(self, count: int, vocabulary: Tensor, start: Tensor, seed: int = 0) -> None:
        super().__init__()
        size, scale = vocabulary.shape[1], float(vocabulary.std())
        half = (size + 1) // 2  # of each direction
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.inputs = nn.Parameter(scale * torch.randn(count, size))
            self.recurrent = nn.LSTM(size, half, num_layers=LAYERS, bidirectional=True)
            self.hidden = nn.Linear(2 * half, size)
            self.output = nn.Linear(size, size)
        self._start_around(start.detach().cpu(), scale)
        self.to(vocabulary.device)

    def forward(self) -> Tensor:
        """The trigger embeddings: [n, d]."""
        states, _ = self.recurrent(self.inputs)
        embeddings: Tensor = self.output(torch.relu(self.hidden(states)))
        return embeddings

    @torch.no_grad()
    def _start_around(self, start: Tensor, scale: float) -> None:
        """Bring the first embeddings, which torch would draw at a scale of its own, to that of the language model."""
        self.output.bias.zero_()
        self.output.weight.mul_(scale / self().square().mean().sqrt())
        self.output.bias.copy_(start)


def add_tokens(encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, number: int) -> list[str]:
    """Give tokenizer and encoder `number` tokens more, and return their names; what was there stays as it is.

    In a sentence such a token takes the space before it and leaves the one after it to the next word, as a mask token
    does, so that the text of a template gives the same tokens as the template itself.

    >>> from relvec import RelBERT
    >>> model = RelBERT.from_pretrained(tiny_model)
    >>> add_tokens(model.encoder, model.tokenizer, 2)
    ['<relvec-1>', '<relvec-2>']
    >>> model.encoder.config.vocab_size == len(model.tokenizer)
    True
    """
    known = tokenizer.get_vocab()
    names = list(islice((name for name in map("<relvec-{}>".format, count(1)) if name not in known), number))
    added: list[Any] = [AddedToken(name, lstrip=True, special=True, normalized=False) for name in names]
    tokenizer.add_tokens(added, special_tokens=True)
    rows = max(map(tokenizer.get_vocab().__getitem__, names)) + 1
    if rows > embedding_table(encoder).num_embeddings:  # some encoders have rows to spare
        with quiet_transformers():
            encoder.resize_token_embeddings(rows, mean_resizing=False)
    return names


def embedding_table(encoder: PreTrainedModel) -> nn.Embedding:
    """The table that token ids are looked up in; its vectors may be shorter than the encoder's output (ALBERT)."""
    table = encoder.get_input_embeddings()
    if type(table) is not nn.Embedding:  # one that scales its rows would not read what is written
        raise RelvecError(f"The input embeddings of {encoder.config.model_type} are no plain table; use another base.")
    return table


def rows_replaced(encoder: PreTrainedModel, ids: Sequence[int], rows: Tensor) -> AbstractContextManager[None]:
    """Within the block, the encoder reads `rows` [n, d] for the tokens `ids`, and gradients flow into them.

    The replacement is made where token ids become vectors; positions, padding and pooling see the same tokens as ever.
    """
    place = torch.full((embedding_table(encoder).num_embeddings,), -1, device=rows.device)
    place[list(ids)] = torch.arange(len(ids), device=rows.device)

    def replaced(token_ids: Tensor, embeddings: Tensor) -> Tensor:
        places = place[token_ids]
        learned = embedding(places.clamp(min=0), rows).to(embeddings.dtype)
        return torch.where((places >= 0).unsqueeze(-1), learned, embeddings)

    return embeddings_changed(encoder, replaced)


def ptune(task: PromptTask, show_progress: bool | None = None) -> PromptResult:
    """Learn a prompt, keep the embeddings with the lowest validation loss, and save the model beside the prompt.

    An epoch has the paper's 450 triples a relation and 5,040 a category, and 2 (m - 1) in-batch triples for each of the
    m in a step: its 13,500 a relation if m is 16. In the history, the `loss` of step 0 is over the whole training part,
    like `train_loss`, and that of a later step over its batch.
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
    """The training of the trigger encoder; the snapshot of the best step is its embeddings."""

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
            schedule="constant",
            weight_decay=0.0,
            **settings.model_dump(include=LOOP_SETTINGS),
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
