"""Which tokens may replace a trigger: those whose embedding promises the lowest loss, to first order (the appendix)."""

import re

import torch
from torch import Tensor
from torch.nn import Embedding
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from relvec.prompts.template import HEAD, MASK, TAIL

# A template would take these for what they stand for.
_SLOTS = {HEAD, TAIL, MASK, "<subj>", "<obj>"}
_UNUSED = re.compile(r"[\[<]?unused_?\d+[\]>]?|madeupword\d+")


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
