"""AutoPrompt: a prompt of vocabulary tokens for a frozen language model (section 3.1)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from relvec.data.rated import RatedRelation, check_relations
from relvec.io.files import expanded
from relvec.learned_prompts.autoprompt.token_search import TokenSearch
from relvec.learned_prompts.masked_model import check_room, masked_model
from relvec.learned_prompts.objective import PromptObjective
from relvec.learned_prompts.plots import PICTURE_NAME, draw_history
from relvec.learned_prompts.settings import AutoPromptSettings
from relvec.model.adapter import check_beside_base, lasting
from relvec.model.torch_backend import TorchRelBERT
from relvec.prompts.learned import PROMPT_NAME, Lengths, PromptResult, readable
from relvec.prompts.template import Template
from relvec.storage.journal import HISTORY_NAME, check_own


def autoprompt(
    base: str | Path,
    relations: Sequence[RatedRelation],
    lengths: Lengths,
    output: str | Path,
    *,
    source: Mapping[str, Any] | None = None,
    device: str | torch.device | None = None,
    show_progress: bool | None = None,
    **settings: Any,
) -> PromptResult:
    """Search a prompt for `base` and write it to the folder `output`; the same call again resumes a killed search.

    `settings` are those of AutoPromptSettings. More `iterations` than before continue a finished search. The validation
    loss is that of float32, whatever the `dtype`. `source` says where the relations are from, for prompt.json.

    >>> from relvec.data.sources import load
    >>> found = autoprompt(tiny_model, load("bundled")[:4], Lengths(2, 1, 1), "auto", iterations=1, candidates=3)
    >>> len(found.tokens), found.train_loss <= found.history[0]["loss"]
    (6, True)
    """
    chosen = AutoPromptSettings(**settings)
    check_relations(relations)
    valid = PromptObjective(relations, "valid")
    output = expanded(output)
    check_beside_base(str(base), output, "prompt")
    check_own(output, HISTORY_NAME, (PROMPT_NAME, PICTURE_NAME))
    model = masked_model(base, lengths, chosen.pooling, device, chosen.dtype)
    check_room(model, lengths, relations)
    search = TokenSearch(
        model, relations, output, candidates=chosen.candidates, exhaustive=chosen.exhaustive, seed=chosen.seed
    )
    search.run(chosen.iterations, show_progress)
    tokens = lengths.arranged(search.tokens)
    encoder = masked_model(base, lengths, chosen.pooling, device).encoder  # in float32, whatever the search computed in
    learned = TorchRelBERT(encoder, model.tokenizer, Template.from_tokens(tokens), chosen.pooling)
    result = PromptResult(
        method="autoprompt",
        base=lasting(str(base)),
        pooling=chosen.pooling,
        lengths=lengths,
        seed=chosen.seed,
        tokens=tokens,
        text=readable(tokens, model.tokenizer.convert_tokens_to_string),
        train_loss=search.loss,
        validation_loss=valid.of_model(learned),
        encodings=search.encodings,
        seconds=search.seconds,
        triple_encodings=search.triple_encodings,
        settings={**chosen.model_dump(exclude={"pooling", "seed"}), **(source or {})},
        history=search.history,
    )
    result.save(output)
    draw_history(result, output / PICTURE_NAME)
    return result
