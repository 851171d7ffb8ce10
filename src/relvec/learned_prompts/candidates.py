"""AutoPrompt's candidates: chosen by gradient, encoded, and compared on ever more relations (the paper's appendix)."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import Embedding
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from relvec.learned_prompts.objective import PromptObjective
from relvec.learned_prompts.prompt_task import embeddings_changed
from relvec.model.relation_model import BATCH_SIZE, batches_by_length
from relvec.model.torch_backend import TorchRelBERT
from relvec.pairs import Pair
from relvec.prompts.template import HEAD, MASK, TAIL

FIRST_ROUND = 4  # relations; each round has twice those of the one before, and at most half its candidates
STANDARD_ERRORS = 2.5  # by which a candidate may be behind the leader
ALWAYS_LEFT = 3  # candidates that halving leaves at least

# A template would take these for what they stand for.
_SLOTS = {HEAD, TAIL, MASK, "<subj>", "<obj>"}
_UNUSED = re.compile(r"[\[<]?unused_?\d+[\]>]?|madeupword\d+")


class PromptEncoder:
    """Encodes pairs with any trigger tokens in place of the masks of a template.

    The words are tokenized once; a prompt is the vocabulary numbers of its triggers. `encodings` counts the pairs that
    went through the language model.
    """

    def __init__(self, model: TorchRelBERT, pairs: Sequence[Pair]) -> None:
        self.model = model
        self.encodings = 0
        self._tokens = model.token_ids(pairs)
        mask = model.tokenizer.mask_token_id
        # Where the triggers are depends on how many tokens the words have.
        self._places = torch.tensor([[i for i, token in enumerate(row) if token == mask] for row in self._tokens])

    @property
    def triggers(self) -> int:
        """How many triggers a prompt has."""
        return self._places.shape[1]

    def vectors(self, prompts: Sequence[Sequence[int]], rows: range) -> list[Tensor]:
        """The vectors of some of the pairs for each prompt: [rows, dim], without gradient."""
        chunks = list(self._chunks(rows))
        batches = [self._filled(triggers, chunk) for triggers in prompts for chunk in chunks]
        self.encodings += len(prompts) * len(rows)
        encoded = iter(self.model.vectors_of_batches(batches))
        found = torch.empty(len(prompts), len(rows), self.model.dim)
        for place in range(len(prompts)):
            for chunk in chunks:
                found[place, [row - rows.start for row in chunk]] = torch.from_numpy(next(encoded))
        return list(found.to(self.model.device))

    def trigger_gradients(self, triggers: Sequence[int], vector_gradients: Tensor) -> Tensor:
        """The gradients with respect to the input embeddings of the triggers, summed over all pairs: [triggers, d].

        `vector_gradients` [pairs, dim] is the gradient with respect to the vectors. Each chunk is computed with
        gradient by itself (gradient caching), so memory does not grow with the data.
        """
        total: Tensor | None = None
        for chunk in self._chunks(range(len(self._tokens))):
            self.encodings += len(chunk)
            embedded: list[Tensor] = []

            def as_leaf(_: Tensor, embeddings: Tensor, embedded: list[Tensor] = embedded) -> Tensor:
                embedded.append(embeddings.detach().requires_grad_())
                return embedded[-1]

            with embeddings_changed(self.model.encoder, as_leaf):
                vectors = self.model.vectors_of_tokens(self._filled(triggers, chunk))
            (gradient,) = torch.autograd.grad(vectors, embedded, vector_gradients[chunk].to(vectors.dtype))
            at_triggers = gradient[torch.arange(len(chunk)).unsqueeze(1), self._places[chunk]].float().sum(dim=0)
            total = at_triggers if total is None else total + at_triggers
        assert total is not None
        return total

    def _filled(self, triggers: Sequence[int], rows: Sequence[int]) -> list[list[int]]:
        token_ids = []
        for row in rows:
            tokens = self._tokens[row].copy()
            for place, trigger in zip(self._places[row].tolist(), triggers, strict=True):
                tokens[place] = trigger
            token_ids.append(tokens)
        return token_ids

    def _chunks(self, rows: range) -> Iterator[list[int]]:
        """Rows of similar length: always the same for the same rows, so that results repeat to the last bit."""
        for chunk in batches_by_length([len(self._tokens[row]) for row in rows], BATCH_SIZE):
            yield [rows[place] for place in chunk]


def input_embeddings(encoder: PreTrainedModel) -> Tensor:
    """e_w of each word w of the vocabulary, as the encoder embeds it, any scaling included: [vocabulary, dim]."""
    table = encoder.get_input_embeddings()
    assert isinstance(table, Embedding)
    with torch.no_grad():
        embedded: Tensor = table(torch.arange(table.num_embeddings, device=encoder.device))
        return embedded.float()


def usable_tokens(tokenizer: PreTrainedTokenizerBase, vocabulary_size: int) -> Tensor:
    """Whether each number stands for a token that can be read: no special, added, unused or unprintable one."""
    excluded = {*tokenizer.all_special_ids, *tokenizer.get_added_vocab().values()}
    usable = torch.zeros(vocabulary_size, dtype=torch.bool)
    for token, number in tokenizer.get_vocab().items():
        if number < vocabulary_size and number not in excluded:
            usable[number] = _is_readable(token, tokenizer.convert_tokens_to_string([token]))
    return usable


def _is_readable(token: str, text: str) -> bool:
    text = text.strip()
    is_broken = "\ufffd" in text  # a part of a character
    return bool(text) and text.isprintable() and not is_broken and token not in _SLOTS and not _UNUSED.fullmatch(token)


def best_candidates(embeddings: Tensor, gradient: Tensor, usable: Tensor, current: int, count: int) -> list[int]:
    """The `count` usable tokens w with the lowest e_w^T gradient, lowest first, without the current one.

    The paper writes top-k of e_w^T gradient; what lowers a loss, to first order, is the most negative value.

    >>> embeddings, gradient = torch.tensor([[1.0], [-2.0], [0.5], [-1.0]]), torch.tensor([1.0])
    >>> best_candidates(embeddings, gradient, torch.tensor([True, True, True, True]), current=1, count=2)
    [3, 2]
    """
    is_candidate = usable.clone()
    is_candidate[current] = False
    scores = (embeddings @ gradient).cpu().where(is_candidate, torch.inf)
    return torch.argsort(scores, stable=True)[: min(count, int(is_candidate.sum()))].tolist()


class SuccessiveHalving:
    """Candidates are compared on ever more relations; each round has the pairs of the rounds before it.

    `pairs` are ordered so that the pairs of a round come first; `new_rows[number]` are those that a round adds.
    """

    def __init__(self, objective: PromptObjective) -> None:
        sizes = [FIRST_ROUND]
        while sizes[-1] < objective.relations:
            sizes.append(sizes[-1] * 2)
        self._rounds = [*(objective.subset(size) for size in sizes[:-1]), objective]
        self.relations = [each.relations for each in self._rounds]
        self.last = len(self._rounds) - 1  # the number of the round on all relations
        distinct = dict.fromkeys(pair for each in self._rounds for pair in each.pairs)
        rows = {pair: row for row, pair in enumerate(distinct)}
        self._rows = [torch.tensor([rows[pair] for pair in each.pairs]) for each in self._rounds]
        self.pairs = tuple(rows)
        self.new_rows = [range(start, end) for start, end in pairwise([0, *(len(each.pairs) for each in self._rounds)])]

    def loss(self, vectors: Tensor) -> Tensor:
        """The loss over all relations, from the vectors of `pairs`."""
        return self._rounds[-1].loss(vectors[self._rows[-1]])

    def losses(self, number: int, vectors: Tensor) -> list[float]:
        """What a prompt is judged by in a round: the loss by relation; in the last round, the loss itself.

        What is not a number counts as infinite, so that it never wins.
        """
        if number == self.last:
            losses = self.loss(vectors).unsqueeze(0)
        else:
            losses = self._rounds[number].by_relation(vectors[self._rows[number]])
        return losses.where(~losses.isnan(), torch.inf).tolist()

    def survivors(self, number: int, current: Sequence[float], losses: Mapping[int, Sequence[float]]) -> list[int]:
        """The candidates that survive a round, in their order; of the last round, the best if it beats `current`.

        `current` are the losses of the prompt as it is, `losses` those of the candidates. How much a candidate is worse
        than the best of them all has a mean d and a standard deviation s over the n of N relations of a round. It
        survives if

            d <= 2.5 * 2 * s / sqrt(n) * sqrt(1 - n / N),  2.5 standard errors

        of a mean over pairs of relations (an anchor's and a negative's, hence the 2) in a finite population. It must
        also be in the better half, or one of the best three.
        """
        names = list(losses)
        if number == self.last:
            best = min(names, key=lambda name: losses[name][0])
            return [best] if losses[best][0] < current[0] else []
        table = torch.tensor([current, *losses.values()], dtype=torch.float64)
        behind = (table - table[table.mean(dim=1).argmin()])[1:]
        seen, total = self.relations[number], self.relations[-1]
        error = 2 * behind.std(dim=1) * math.sqrt((1 - seen / total) / seen)
        survives = behind.mean(dim=1) <= STANDARD_ERRORS * error
        most = max(ALWAYS_LEFT, math.ceil(len(names) / 2))
        survives[behind.mean(dim=1).argsort(stable=True)[most:]] = False
        return [name for name, stays in zip(names, survives.tolist(), strict=True) if stays]
