"""AutoPrompt: a prompt of vocabulary tokens for a frozen language model (section 3.1)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from relvec.data.rated import RatedRelation, check_relations
from relvec.encoders.base_folder import check_beside_base, lasting
from relvec.errors import RelvecError
from relvec.learned_prompts.lengths import Lengths
from relvec.learned_prompts.objective import PromptObjective
from relvec.learned_prompts.plots import draw_history
from relvec.learned_prompts.result import PromptResult, readable
from relvec.learned_prompts.token_search import TokenSearch
from relvec.model import RelBERT
from relvec.prompts.template import MASK, Template
from relvec.prompts.tokenized import TokenizedTemplate


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
    check_beside_base(str(base), Path(output), "prompt")
    model = masked_model(base, lengths, pooling, device, relations, dtype)
    search = TokenSearch(model, relations, Path(output), candidates=candidates, exhaustive=exhaustive, seed=seed)
    search.run(iterations, show_progress)
    tokens = lengths.arranged(search.tokens)
    encoder = masked_model(base, lengths, pooling, device).encoder  # in float32, whatever the search computed in
    learned = RelBERT(encoder, model.tokenizer, Template.from_tokens(tokens), pooling)
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
    draw_history(result, Path(output) / "loss.svg")
    return result


def masked_model(
    base: str | Path,
    lengths: Lengths,
    pooling: str = "average",
    device: str | torch.device | None = None,
    relations: Sequence[RatedRelation] = (),
    dtype: str = "float32",
) -> RelBERT:
    """The base with a mask for each trigger, its weights frozen; the pairs of `relations` must find room in it."""
    if pooling == "mask":
        raise RelvecError("Mask pooling has nothing to read once all masks are replaced; use average pooling.")
    plain = RelBERT.from_pretrained(base, template="[h] [t]", pooling="average", device=device, dtype=dtype)
    if plain.tokenizer.mask_token is None:
        raise RelvecError(f"{base} has no mask token for the triggers to start from; use a masked language model.")
    plain.encoder.requires_grad_(False)
    plain.encoder.eval()
    template = Template.from_tokens(lengths.arranged([MASK] * lengths.total))
    pairs = [pair for relation in relations for pair in (*relation.positives, *relation.negatives)]
    for pair, tokens in zip(pairs, TokenizedTemplate(template, plain.tokenizer)(pairs), strict=True):
        if len(tokens) > plain.max_tokens:
            problem = f"With the lengths {lengths} the pair {':'.join(pair)} makes {len(tokens)} tokens"
            raise RelvecError(
                f"{problem} where {base} takes {plain.max_tokens}; give fewer --lengths, or shorten the pair."
            )
    return RelBERT(plain.encoder, plain.tokenizer, template, pooling)
