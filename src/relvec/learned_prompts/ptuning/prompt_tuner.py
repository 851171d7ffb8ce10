"""One step of P-tuning: a frozen model reads the trigger encoder's output, and the loss flows back into it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from relvec.errors import RelvecError
from relvec.learned_prompts.ptuning.new_tokens import add_tokens, embedding_table, rows_replaced, token_ids, write_rows
from relvec.learned_prompts.ptuning.trigger_encoder import TriggerEncoder
from relvec.model.torch_backend import TorchRelBERT
from relvec.pairs import Pair
from relvec.prompts import Template
from relvec.prompts.lengths import Lengths
from relvec.training.batch import Batch
from relvec.training.losses.triplet import Triplet

MAX_GRADIENT_NORM = 1.0


class PromptTuner:
    """A model with new tokens in its prompt, and the trigger encoder that learns their embeddings.

    `model` is taken over: its vocabulary grows, and its weights are frozen. `model` of the tuner encodes with the
    embeddings that were last kept, at first those that the trigger encoder starts with.

    >>> tuner = PromptTuner(TorchRelBERT.from_pretrained(tiny_model), Lengths(2, 1, 0))
    >>> tuner.model.template.text
    '<relvec-1> <relvec-2> [h] <relvec-3> [t]'
    """

    def __init__(
        self, model: TorchRelBERT, lengths: Lengths, *, learning_rate: float = 1e-3, margin: float = 1.0, seed: int = 0
    ) -> None:
        encoder, tokenizer = model.encoder, model.tokenizer
        encoder.requires_grad_(False).eval()
        vocabulary = embedding_table(encoder).weight.float().clone()
        names = add_tokens(encoder, tokenizer, lengths.total)
        template = Template.from_tokens(lengths.arranged(names))
        self.model = TorchRelBERT(encoder, tokenizer, template, model.pooling, name=model.name)
        self.triggers = TriggerEncoder(lengths.total, vocabulary, vocabulary[tokenizer.mask_token_id], seed)
        self.optimizer = torch.optim.Adam(self.triggers.parameters(), lr=learning_rate)
        self._ids = token_ids(tokenizer, names)
        self._loss = Triplet(model.dim, margin)
        self.keep(self.embeddings())

    @torch.no_grad()
    def embeddings(self) -> Tensor:
        """The trigger embeddings as they are now: [triggers, d]."""
        found: Tensor = self.triggers()
        return found

    def keep(self, embeddings: Tensor) -> None:
        """Make trigger embeddings rows of the vocabulary: with these the model encodes, and these it saves."""
        write_rows(self.model.encoder, self._ids, embeddings)

    def vectors(self, pairs: Sequence[Pair]) -> Tensor:
        """The vectors of pairs under the prompt being learned: [pairs, dim], differentiable in the trigger encoder."""
        with rows_replaced(self.model.encoder, self._ids, self.triggers()):
            return self.model.vectors_by_length(self.model.token_ids(pairs)).float()

    def step(self, batch: Batch) -> float:
        """One update by the triplet loss of a batch; its value before the update is returned."""
        batch = batch.to(self.model.device)
        loss: Tensor = self._loss(self.vectors(batch.pairs)[batch.row], batch)
        if not loss.isfinite():
            raise RelvecError(f"The loss of P-tuning is {loss.item()}; lower the learning rate.")
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.triggers.parameters(), MAX_GRADIENT_NORM)
        self.optimizer.step()
        return float(loss.detach())
