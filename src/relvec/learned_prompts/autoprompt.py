"""AutoPrompt: a prompt of vocabulary tokens for a frozen model, found with the help of the gradient (section 3.1)."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from relvec.errors import RelvecError
from relvec.learned_prompts.candidates import (
    PromptEncoder,
    SuccessiveHalving,
    best_candidates,
    input_embeddings,
    usable_tokens,
)
from relvec.learned_prompts.objective import check_finite
from relvec.learned_prompts.prompt_task import PromptTask
from relvec.learned_prompts.settings import AutoPromptSettings
from relvec.model.torch_backend import TorchRelBERT
from relvec.progress import progress_bar
from relvec.prompts.learned import PromptResult, readable
from relvec.prompts.template import MASK, Template
from relvec.storage.job import job_of
from relvec.storage.journal import HISTORY_NAME, Entry, Journal

AT_ONCE = 8  # candidates: enough to fill the cores, few enough to lose if the search is killed


def autoprompt(task: PromptTask, show_progress: bool | None = None) -> PromptResult:
    """Search a prompt; the validation loss is that of float32, whatever the search computed in."""
    search = TokenSearch(task)
    search.run(show_progress)
    tokens = task.lengths.arranged(search.tokens)
    encoder, tokenizer = task.masked_model().encoder, task.model.tokenizer
    learned = TorchRelBERT(encoder, tokenizer, Template.from_tokens(tokens), task.settings.pooling)
    return task.save(
        method="autoprompt",
        tokens=tokens,
        text=readable(tokens, tokenizer.convert_tokens_to_string),
        train_loss=search.loss,
        validation_loss=task.validation.of_model(learned),
        encodings=search.encodings,
        seconds=search.seconds,
        triple_encodings=search.triple_encodings,
        history=search.history,
    )


@dataclass
class _Prompt:
    """Triggers by their vocabulary numbers, and what was computed of them: vectors round by round, gradients."""

    triggers: list[int]
    vectors: list[Tensor] = field(default_factory=list)
    gradients: Tensor | None = None


class TokenSearch:
    """Lowers the training loss of a prompt, trigger by trigger: `run` it, then read `tokens` and `loss`.

        candidates(j) = the k tokens w with the lowest e_w^T grad_j L(T),  j random
        z_j = argmin over candidates(j) of L(T with w at j),  if that is below L(T)

    L is the loss over the whole training part. Triggers start as masks. Every choice depends on the seed and
    the iteration alone, and each loss is written down once it is known, so that an interrupted search ends as it would
    have without the interruption.
    """

    def __init__(self, task: PromptTask) -> None:
        model, settings = task.model, task.settings
        assert isinstance(settings, AutoPromptSettings)
        self._settings, self._objective = settings, task.training
        self._halving = SuccessiveHalving(self._objective)
        self._encoder = PromptEncoder(model, self._halving.pairs)
        self._embeddings = input_embeddings(model.encoder)
        self._usable = usable_tokens(model.tokenizer, len(self._embeddings))
        mask = int(model.tokenizer.mask_token_id)
        self._number_of = {**model.tokenizer.get_vocab(), MASK: mask}
        self._token_of = {number: token for token, number in self._number_of.items()}
        self._token_of[mask] = MASK
        decisive = (settings.candidates, settings.exhaustive, settings.seed)
        job = job_of(model.fingerprint, list(task.relations), *decisive)
        self._journal = Journal(task.output / HISTORY_NAME, job)
        self._prompt = _Prompt([mask] * self._encoder.triggers)
        self.loss = float("inf")
        self._done = -1  # the last iteration that ended; the start is number 0
        self._tried: set[int] = set()  # the positions at which this very prompt was not bettered
        self._known: dict[tuple[str, int], list[float]] = {}  # of this iteration's candidates, by token and round
        self._encodings_before, self._seconds_before = 0, 0.0
        self._started = time.perf_counter()
        with self._journal.damage_noticed():
            for entry in self._journal.entries:
                self._apply(entry)
                self._encodings_before, self._seconds_before = int(entry["encodings"]), float(entry["seconds"])

    @property
    def tokens(self) -> list[str]:
        """The triggers in the tokenizer's spelling; a mask is `<mask>`."""
        return [self._token_of[trigger] for trigger in self._prompt.triggers]

    @property
    def history(self) -> list[Entry]:
        """One entry an iteration, after that of the start."""
        return [entry for entry in self._journal.entries if "candidate" not in entry]

    @property
    def encodings(self) -> int:
        """How many pairs went through the language model."""
        return self._encodings_before + self._encoder.encodings

    @property
    def seconds(self) -> float:
        return self._seconds_before + time.perf_counter() - self._started

    @property
    def triple_encodings(self) -> int:
        """How many pairs it would be with each triple by itself, for every candidate and every gradient."""
        candidates = min(self._settings.candidates, int(self._usable.sum()))
        return self._objective.triple_encodings * (1 + self._done * (1 + candidates))

    def run(self, show_progress: bool | None = None) -> None:
        """Search until the iterations of the settings are done."""
        iterations = self._settings.iterations
        if self._done > iterations:
            problem = f"The search has already done {self._done} iterations"
            raise RelvecError(f"{problem}; ask for as many or more, or choose another output.")
        if self._done < 0:
            (loss,) = self._losses(self._prompt, self._halving.last)
            check_finite(loss)
            self._add({"iteration": 0, "loss": loss})
        with progress_bar(iterations, "AutoPrompt", unit="iteration", show=show_progress, initial=self._done) as bar:
            for iteration in range(self._done + 1, iterations + 1):
                self._iterate(iteration, bar)
                bar.update()

    def _iterate(self, iteration: int, bar: Any) -> None:
        position = random.Random(f"{self._settings.seed} {iteration}").randrange(self._encoder.triggers)
        entry: Entry = {"iteration": iteration, "position": position, "changed": False, "loss": self.loss}
        # At a position that was tried, the candidates would be the same again.
        better = None if position in self._tried else self._better(iteration, position, bar)
        if better is None:
            self._add(entry)
            return
        token, prompt, loss = better
        self._add(entry | {"changed": True, "loss": loss, "token": self._token_of[token]})
        self._prompt = prompt  # with its vectors

    def _better(self, iteration: int, position: int, bar: Any) -> tuple[int, _Prompt, float] | None:
        """The best candidate for a trigger, the prompt with it and its loss; None if none beats what is there."""
        triggers = self._prompt.triggers
        candidates = {token: _Prompt(_replaced(triggers, position, token)) for token in self._candidates_at(position)}
        losses: dict[int, list[float]] = {}
        for number in range(self._halving.last if self._settings.exhaustive else 0, self._halving.last + 1):
            losses = {}
            items = list(candidates.items())
            for start in range(0, len(items), AT_ONCE):
                group = items[start : start + AT_ONCE]
                unknown = [each for each in group if (self._token_of[each[0]], number) not in self._known]
                self._encode([prompt for _, prompt in unknown], number)
                for token, prompt in unknown:
                    entry = {"iteration": iteration, "position": position, "candidate": self._token_of[token]}
                    self._add({**entry, "round": number, "losses": self._losses(prompt, number)})
                losses |= {token: self._known[self._token_of[token], number] for token, _ in group}
                for token, prompt in group:
                    if number == self._halving.last and losses[token] > min(losses.values()):
                        prompt.vectors.clear()  # only those of the best are needed again
                bar.set_postfix(
                    loss=f"{self.loss:.4f}", candidates=len(candidates), relations=self._halving.relations[number]
                )
            current = self._losses(self._prompt, number)
            candidates = {token: candidates[token] for token in self._halving.survivors(number, current, losses)}
            if not candidates:
                return None
        ((token, prompt),) = candidates.items()
        return token, prompt, losses[token][0]

    def _candidates_at(self, position: int) -> list[int]:
        """The tokens that promise most for a trigger."""
        prompt = self._prompt
        if prompt.gradients is None:  # one pass for all triggers, until one of them changes
            vectors = self._vectors(prompt, self._halving.last).clone().requires_grad_()
            (vector_gradients,) = torch.autograd.grad(self._halving.loss(vectors), vectors)
            prompt.gradients = self._encoder.trigger_gradients(prompt.triggers, vector_gradients)
        gradient, current = prompt.gradients[position], prompt.triggers[position]
        return best_candidates(self._embeddings, gradient, self._usable, current, self._settings.candidates)

    def _losses(self, prompt: _Prompt, number: int) -> list[float]:
        with torch.no_grad():
            return self._halving.losses(number, self._vectors(prompt, number))

    def _vectors(self, prompt: _Prompt, number: int) -> Tensor:
        """The vectors of a round's pairs."""
        self._encode([prompt], number)
        return torch.cat(prompt.vectors[: number + 1])

    def _encode(self, prompts: Sequence[_Prompt], number: int) -> None:
        """Encode the pairs of a round; those of the rounds before are not encoded again."""
        for done, rows in enumerate(self._halving.new_rows[: number + 1]):
            if lacking := [prompt for prompt in prompts if len(prompt.vectors) == done]:
                found = self._encoder.vectors([prompt.triggers for prompt in lacking], rows)
                for prompt, vectors in zip(lacking, found, strict=True):
                    prompt.vectors.append(vectors)

    def _add(self, entry: Entry) -> None:
        self._journal.add({**entry, "encodings": self.encodings, "seconds": round(self.seconds, 1)})
        self._apply(entry)

    def _apply(self, entry: Entry) -> None:
        """What an entry of the journal changes, whether it was just added or is read again."""
        if "candidate" in entry:
            self._known[entry["candidate"], entry["round"]] = entry["losses"]
            return
        self._done, self.loss, self._known = int(entry["iteration"]), float(entry["loss"]), {}
        if entry.get("changed"):
            number = self._number_of[entry["token"]]
            self._prompt = _Prompt(_replaced(self._prompt.triggers, entry["position"], number))
            self._tried = set()
        elif "position" in entry:
            self._tried.add(entry["position"])


def _replaced(triggers: Sequence[int], position: int, token: int) -> list[int]:
    """rep(T, j, w) of the paper."""
    return [*triggers[:position], token, *triggers[position + 1 :]]
