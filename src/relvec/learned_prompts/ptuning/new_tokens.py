"""New tokens of a vocabulary, and what the encoder reads for them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count, islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding
from transformers import AddedToken, PreTrainedModel, PreTrainedTokenizerBase

from relvec.errors import RelvecError
from relvec.model.loading import quiet_transformers


def add_tokens(encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, number: int) -> list[str]:
    """Give tokenizer and encoder `number` tokens more, and return their names; what was there stays as it is.

    The names are free ones of `<relvec-1>`, `<relvec-2>`, ... In a sentence such a token takes the space before it
    and leaves the one after it to the next word, as a mask token does, so that the text of a template gives the same
    tokens as the template itself.

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
    rows = max(token_ids(tokenizer, names), default=-1) + 1
    if rows > embedding_table(encoder).num_embeddings:  # some encoders have rows to spare
        with quiet_transformers():
            encoder.resize_token_embeddings(rows, mean_resizing=False)
    return names


def token_ids(tokenizer: PreTrainedTokenizerBase, names: Sequence[str]) -> list[int]:
    """The rows of the embedding matrix that belong to some tokens."""
    vocabulary = tokenizer.get_vocab()
    return [vocabulary[name] for name in names]


def embedding_table(encoder: PreTrainedModel) -> nn.Embedding:
    """The table that token ids are looked up in; its vectors may be shorter than the encoder's output (ALBERT)."""
    table = encoder.get_input_embeddings()
    if type(table) is not nn.Embedding:  # one that scales its rows would not read what is written
        raise RelvecError(f"The input embeddings of {encoder.config.model_type} are no plain table; use another base.")
    return table


@torch.no_grad()
def write_rows(encoder: PreTrainedModel, ids: Sequence[int], rows: Tensor) -> None:
    """Store `rows` [n, d] as the input embeddings of the tokens `ids`."""
    weight = embedding_table(encoder).weight
    weight[list(ids)] = rows.to(weight)


@contextmanager
def rows_replaced(encoder: PreTrainedModel, ids: Sequence[int], rows: Tensor) -> Iterator[None]:
    """Within the block, the encoder reads `rows` [n, d] for the tokens `ids`, and gradients flow into them.

    The replacement is made where token ids become vectors, so every encoder that takes `input_ids` knows it, and
    positions, padding and pooling see the same tokens as ever.
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
