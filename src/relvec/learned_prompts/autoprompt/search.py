"""AutoPrompt: a prompt of vocabulary tokens for a frozen language model (section 3.1)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from relvec.data.rated import RatedRelation, check_relations
from relvec.errors import RelvecError
from relvec.io.paths import expanded
from relvec.learned_prompts.autoprompt.token_search import TokenSearch
from relvec.learned_prompts.masked_model import check_room, masked_model
from relvec.learned_prompts.objective import PromptObjective
from relvec.learned_prompts.plots import PICTURE_NAME, draw_history
from relvec.model.base import check_beside_base, lasting
from relvec.model.torch_backend import TorchRelBERT
from relvec.prompts.learned import PROMPT_NAME, PromptResult, readable
from relvec.prompts.lengths import Lengths
from relvec.prompts.template import Template
from relvec.storage.journal import HISTORY_NAME, check_own


def autoprompt(
    base: str | Path,
    relations: Sequence[RatedRelation],
    lengths: Lengths,
    output: str | Path,
    *,
    pooling: str = "average",
    iterations: int = 50,
    candidates: int = 50,
    exhaustive: bool = False,
    seed: int = 0,
    dtype: str = "float32",
    source: Mapping[str, Any] | None = None,
    device: str | torch.device | None = None,
    show_progress: bool | None = None,
) -> PromptResult:
    """Search a prompt for `base` and write it to the folder `output`; a search that was killed goes on where it was.

    Candidates that do badly on a part of the relations are dropped early unless `exhaustive`. More `iterations` than
    before continue a finished search. With a `dtype` of bfloat16 the search takes half the time where the hardware has
    it; the validation loss is that of float32 in any case. `source` says where the relations are from, for prompt.json.

    >>> from relvec.data.sources import load
    >>> found = autoprompt(tiny_model, load("bundled")[:4], Lengths(2, 1, 1), "auto", iterations=1, candidates=3)
    >>> len(found.tokens), found.train_loss <= found.history[0]["loss"]
    (6, True)
    """
    check_relations(relations)
    for name, value in (("iterations", iterations), ("candidates", candidates)):
        if value < 1:
            raise RelvecError(f"A search with {value} {name} finds nothing; use 1 or more.")
    valid = PromptObjective(relations, "valid")
    output = expanded(output)
    check_beside_base(str(base), output, "prompt")
    check_own(output, HISTORY_NAME, (PROMPT_NAME, PICTURE_NAME))
    model = masked_model(base, lengths, pooling, device, dtype)
    check_room(model, lengths, relations)
    search = TokenSearch(model, relations, output, candidates=candidates, exhaustive=exhaustive, seed=seed)
    search.run(iterations, show_progress)
    tokens = lengths.arranged(search.tokens)
    encoder = masked_model(base, lengths, pooling, device).encoder  # in float32, whatever the search computed in
    learned = TorchRelBERT(encoder, model.tokenizer, Template.from_tokens(tokens), pooling)
    result = PromptResult(
        method="autoprompt",
        base=lasting(str(base)),
        pooling=pooling,
        lengths=lengths,
        seed=seed,
        tokens=tokens,
        text=readable(tokens, model.tokenizer.convert_tokens_to_string),
        train_loss=search.loss,
        validation_loss=valid.of_model(learned),
        encodings=search.encodings,
        seconds=search.seconds,
        triple_encodings=search.triple_encodings,
        settings={
            "iterations": iterations,
            "candidates": candidates,
            "exhaustive": exhaustive,
            "dtype": dtype,
            **(source or {}),
        },
        history=search.history,
    )
    result.save(output)
    draw_history(result, output / PICTURE_NAME)
    return result
