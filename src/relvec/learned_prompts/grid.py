"""The search over lengths: a prompt is learned for each, and the validation loss decides (section 4.1)."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from relvec.data.rated import RatedRelation
from relvec.errors import RelvecError, one_of
from relvec.io.paths import expanded
from relvec.learned_prompts.autoprompt.search import autoprompt
from relvec.learned_prompts.masked_model import check_room
from relvec.learned_prompts.plots import draw_grid
from relvec.learned_prompts.ptuning.learning import ptune
from relvec.model.base import check_beside_base
from relvec.model.torch_backend import TorchRelBERT
from relvec.prompts.learned import PromptResult
from relvec.prompts.lengths import Lengths
from relvec.storage.journal import Journal, check_own

METHODS: dict[str, Callable[..., PromptResult]] = {"autoprompt": autoprompt, "ptuning": ptune}
GRID_NAME = "grid.jsonl"
PICTURE_NAME = "losses.svg"

# More iterations continue a search, and the others change nothing in what it finds.
_NOT_DECISIVE = ("iterations", "source", "device", "show_progress")


def search(
    method: str,
    base: str,
    relations: Sequence[RatedRelation],
    grid: Sequence[Lengths],
    output: str | Path,
    *,
    show_progress: bool | None = None,
    **settings: Any,
) -> list[PromptResult]:
    """Learn a prompt of each length in a folder of its own below `output`, and return them, best first.

    Those of other lengths that an earlier search has left in `output` are among them. `settings` are the method's own.
    A search that was killed goes on where it was, and more `iterations` continue one of AutoPrompt; what was found is
    in grid.jsonl and, with matplotlib, in losses.svg.
    """
    check_settings(method, settings)
    folder = expanded(output)
    check_beside_base(base, folder, "prompt")
    fingerprint = _checked_base(base, grid, relations)
    chosen = _defaults(method) | settings
    decisive = sorted((name, value) for name, value in chosen.items() if name not in _NOT_DECISIVE)
    job = (method, fingerprint, list(relations), decisive)
    check_own(folder, GRID_NAME, (PICTURE_NAME,))
    journal = Journal(folder / GRID_NAME, hashlib.sha256(repr(job).encode()).hexdigest())
    with journal.damage_noticed():
        done = {entry["lengths"] for entry in journal.entries}
    results = []
    for lengths in grid:
        place = prompt_folder(folder, lengths)
        saved = PromptResult.found_in(place) if str(lengths) in done else None
        if saved and saved.settings.get("iterations") == chosen.get("iterations"):
            results.append(saved)
            continue
        learned = METHODS[method](base, relations, lengths, place, show_progress=show_progress, **settings)
        journal.add({"lengths": str(lengths), "validation_loss": learned.validation_loss, "text": learned.text})
        results.append(learned)
    results += _of_other_lengths(folder, done - {str(lengths) for lengths in grid})
    draw_grid(results, folder / PICTURE_NAME)
    return sorted(results, key=lambda result: result.validation_loss)


def _of_other_lengths(folder: Path, lengths: Iterable[str]) -> list[PromptResult]:
    found = (PromptResult.found_in(prompt_folder(folder, Lengths.parse(each))) for each in sorted(lengths))
    return [result for result in found if result]


def _checked_base(base: str, grid: Sequence[Lengths], relations: Sequence[RatedRelation]) -> str:
    """The fingerprint of the base; lengths that it has no room for fail now, not after hours of learning others."""
    plain = TorchRelBERT.from_pretrained(base, template="[h] [t]", pooling="average", device="cpu")
    for lengths in grid:
        check_room(plain, lengths, relations)
    return plain.fingerprint


def check_settings(method: str, settings: Iterable[str]) -> None:
    """Refuse an unknown method, and a setting that it does not have."""
    known = signature(METHODS[one_of("method", method, METHODS)]).parameters
    for name in settings:
        if name not in known:
            raise RelvecError(f"The method {method} has no setting {name}; leave it out, or choose another method.")


def _defaults(method: str) -> dict[str, Any]:
    parameters = signature(METHODS[method]).parameters.values()
    return {each.name: each.default for each in parameters if each.kind is Parameter.KEYWORD_ONLY}


def prompt_folder(output: str | Path, lengths: Lengths) -> Path:
    """Where the search keeps the prompt of some lengths.

    >>> prompt_folder("prompts", Lengths(8, 2, 2)).as_posix()
    'prompts/8-2-2'
    """
    return Path(output) / str(lengths).replace(",", "-")
