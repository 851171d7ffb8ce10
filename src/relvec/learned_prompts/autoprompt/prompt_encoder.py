"""Fixed pairs under a prompt whose triggers change: what does not change is done once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import Module

from relvec.model.relation_model import BATCH_SIZE, batches_by_length
from relvec.model.torch_backend import TorchRelBERT
from relvec.pairs import Pair


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
            with _embedded(self.model) as embedded:
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


@contextmanager
def _embedded(model: TorchRelBERT) -> Iterator[list[Tensor]]:
    """Collect the input embeddings of what is encoded, as the tensors that gradients start from."""
    embedded: list[Tensor] = []

    def keep(_module: Module, _inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        embedded.append(output.detach().requires_grad_())
        return embedded[-1]

    hook = model.encoder.get_input_embeddings().register_forward_hook(keep)
    try:
        yield embedded
    finally:
        hook.remove()
