"""Likelihoods of texts under a causal language model that reads their shared prefixes once."""

import torch
from transformers import PreTrainedModel

from relvec.model.token_tree import TokenTree, tree_inputs

ROWS_AT_A_TIME = 8  # of logits in float32, each as wide as the vocabulary: more would not fit into a CPU's cache


@torch.inference_mode()
def tree_log_probabilities(network: PreTrainedModel, tree: TokenTree) -> dict[int, float]:
    """log P of each text by its number: the sum over its tokens, each given those before it, without the first."""
    read = tree.to_read()
    found = _log_probabilities(network, tree, read) if read else [0.0] * len(tree.tokens)
    sums: list[float] = []
    for parent, log_probability in zip(tree.parents, found, strict=True):
        sums.append(sums[parent] + log_probability if parent >= 0 else 0.0)
    return {number: sums[end] for number, end in tree.ends.items()}


def _log_probabilities(network: PreTrainedModel, tree: TokenTree, read: list[int]) -> list[float]:
    """log P of each token of a tree given those before it; a first token has one that means nothing."""
    device = network.device
    logits = network(**tree_inputs(tree, read, device, network.dtype)).logits[0]
    norms = torch.cat([rows.float().logsumexp(-1) for rows in logits.split(ROWS_AT_A_TIME)])
    rows = {place: row for row, place in enumerate(read)}
    parents = torch.tensor([rows.get(parent, 0) for parent in tree.parents], device=device)
    tokens = torch.tensor(tree.tokens, device=device)
    found: list[float] = (logits[parents, tokens].float() - norms[parents]).double().cpu().tolist()
    return found
