"""What P-tuning trains: a trigger encoder, whose output a frozen model reads as embeddings of new tokens."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count, islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding
from transformers import AddedToken, PreTrainedModel, PreTrainedTokenizerBase

from relvec.errors import RelvecError
from relvec.model.torch_backend import TorchRelBERT
from relvec.pairs import Pair
from relvec.progress import quiet_transformers
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


@contextmanager
def rows_replaced(encoder: PreTrainedModel, ids: Sequence[int], rows: Tensor) -> Iterator[None]:
    """Within the block, the encoder reads `rows` [n, d] for the tokens `ids`, and gradients flow into them.

    The replacement is made where token ids become vectors; positions, padding and pooling see the same tokens as ever.
    """
    table = embedding_table(encoder)
    place = torch.full((table.num_embeddings,), -1, device=rows.device)
    place[list(ids)] = torch.arange(len(ids), device=rows.device)

    def replace(module: object, arguments: tuple[Tensor, ...], output: Tensor) -> Tensor:
        places = place[arguments[0]]
        replaced = embedding(places.clamp(min=0), rows).to(output.dtype)
        return torch.where((places >= 0).unsqueeze(-1), replaced, output)

    handle = table.register_forward_hook(replace)
    try:
        yield
    finally:
        handle.remove()
