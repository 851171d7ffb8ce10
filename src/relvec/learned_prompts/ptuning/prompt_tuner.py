"""What P-tuning trains: a trigger encoder, whose output a frozen model reads as embeddings of new tokens."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from relvec.learned_prompts.ptuning.new_tokens import add_tokens, embedding_table, rows_replaced, token_ids, write_rows
from relvec.model.torch_backend import TorchRelBERT
from relvec.pairs import Pair
from relvec.prompts import Template
from relvec.prompts.learned import Lengths
from relvec.training.batch import Batch
from relvec.training.losses.triplet import Triplet

LAYERS = 2


class PromptTuner:
    """A model with new tokens in its prompt, and the trigger encoder that learns their embeddings.

    `model` is taken over: its vocabulary grows, and its weights are frozen. `model` of the tuner encodes with the
    embeddings that were last kept, at first those that the trigger encoder starts with.

    >>> tuner = PromptTuner(TorchRelBERT.from_pretrained(tiny_model), Lengths(2, 1, 0))
    >>> tuner.model.template.text
    '<relvec-1> <relvec-2> [h] <relvec-3> [t]'
    """

    def __init__(self, model: TorchRelBERT, lengths: Lengths, *, margin: float = 1.0, seed: int = 0) -> None:
        encoder, tokenizer = model.encoder, model.tokenizer
        encoder.requires_grad_(False).eval()
        vocabulary = embedding_table(encoder).weight.float().clone()
        names = add_tokens(encoder, tokenizer, lengths.total)
        template = Template.from_tokens(lengths.arranged(names))
        self.model = TorchRelBERT(encoder, tokenizer, template, model.pooling, name=model.name)
        self.triggers = TriggerEncoder(lengths.total, vocabulary, vocabulary[tokenizer.mask_token_id], seed)
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

    def loss(self, batch: Batch) -> Tensor:
        """The triplet loss of a batch, differentiable in the trigger encoder."""
        batch = batch.to(self.model.device)
        value: Tensor = self._loss(self.vectors(batch.pairs)[batch.row], batch)
        return value


class TriggerEncoder(nn.Module):
    """The embeddings of n trigger tokens, each of which knows its neighbours (section 3.1 of the paper).

        e_1 .. e_n = W2 relu(W1 BiLSTM(v_1 .. v_n) + b1) + b2

    All of v [n, d], the two-layer BiLSTM, W and b are trained; d is the size of the language model's input
    embeddings, `vocabulary` [words, d]. The v are drawn at their scale. The triggers start around `start` [d], the
    embedding of the mask token as in AutoPrompt, at that same scale. `seed` decides all that is drawn.

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
