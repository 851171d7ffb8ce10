"""The search over lengths: a prompt is learned for each, and the validation loss decides (section 4.1)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from relvec.data.rated import RatedRelation
from relvec.errors import one_of
from relvec.io.files import expanded
from relvec.learned_prompts.autoprompt.search import autoprompt
from relvec.learned_prompts.masked_model import check_room
from relvec.learned_prompts.plots import draw_grid
from relvec.learned_prompts.ptuning.learning import ptune
from relvec.learned_prompts.settings import AutoPromptSettings, PromptSettings, PTuningSettings
from relvec.model.adapter import check_beside_base
from relvec.model.torch_backend import TorchRelBERT
from relvec.prompts.learned import Lengths, PromptResult
from relvec.storage.journal import Journal, check_own
from relvec.storage.lock import writing
from relvec.training.checkpoint import job_of


class Method(NamedTuple):
    """How a prompt is learned, and with which settings."""

    learn: Callable[..., PromptResult]
    settings: type[PromptSettings]


METHODS = {"autoprompt": Method(autoprompt, AutoPromptSettings), "ptuning": Method(ptune, PTuningSettings)}
GRID_NAME = "grid.jsonl"
PICTURE_NAME = "losses.svg"


def search(
    method: str,
    base: str,
    relations: Sequence[RatedRelation],
    grid: Sequence[Lengths],
    output: str | Path,
    *,
    source: Mapping[str, Any] | None = None,
    device: str | None = None,
    show_progress: bool | None = None,
    **settings: Any,
) -> list[PromptResult]:
    """Learn a prompt of each length in a folder of its own below `output`, and return them, best first.

    Those of other lengths that an earlier search has left in `output` are among them. `settings` are the method's own.
    The same call again resumes a killed search, and more `iterations` continue one of AutoPrompt; what was found is in
    grid.jsonl and, with matplotlib, in losses.svg.
    """
    chosen = checked_settings(method, settings).as_dict()
    folder = expanded(output)
    check_beside_base(base, folder, "prompt")
    fingerprint = _checked_base(base, grid, relations)
    iterations = chosen.pop("iterations", None)  # more of them continue a search
    check_own(folder, GRID_NAME, (PICTURE_NAME,))
    journal = Journal(folder / GRID_NAME, job_of(method, fingerprint, list(relations), sorted(chosen.items())))
    with journal.damage_noticed():
        done = {entry["lengths"] for entry in journal.entries}
    results = []
    for lengths in grid:
        place = prompt_folder(folder, lengths)
        saved = PromptResult.found_in(place) if str(lengths) in done else None
        if saved and saved.settings.get("iterations") == iterations:
            results.append(saved)
            continue
        options = {"source": source, "device": device, "show_progress": show_progress, **settings}
        learned = learn(method, base, relations, lengths, place, **options)
        journal.add({"lengths": str(lengths), "validation_loss": learned.validation_loss, "text": learned.text})
        results.append(learned)
    results += _of_other_lengths(folder, done - {str(lengths) for lengths in grid})
    draw_grid(results, folder / PICTURE_NAME)
    return sorted(results, key=lambda result: result.validation_loss)


def learn(
    method: str, base: str, relations: Sequence[RatedRelation], lengths: Lengths, output: Path, **options: Any
) -> PromptResult:
    """Learn one prompt by the method of that name; a second run into the same folder is refused meanwhile."""
    with writing(output):
        return METHODS[method].learn(base, relations, lengths, output, **options)


def checked_settings(method: str, settings: Mapping[str, Any]) -> PromptSettings:
    """The settings of a method by name."""
    return METHODS[one_of("method", method, METHODS)].settings.checked(settings, where=f"{method}: ")


def _of_other_lengths(folder: Path, lengths: Iterable[str]) -> list[PromptResult]:
    found = (PromptResult.found_in(prompt_folder(folder, Lengths.parse(each))) for each in sorted(lengths))
    return [result for result in found if result]


def _checked_base(base: str, grid: Sequence[Lengths], relations: Sequence[RatedRelation]) -> str:
    """The fingerprint of the base; lengths that it has no room for fail now, not after hours of learning others."""
    plain = TorchRelBERT.from_pretrained(base, template="[h] [t]", pooling="average", device="cpu")
    for lengths in grid:
        check_room(plain, lengths, relations)
    return plain.fingerprint


def prompt_folder(output: str | Path, lengths: Lengths) -> Path:
    """Where the search keeps the prompt of some lengths.

    >>> prompt_folder("prompts", Lengths(8, 2, 2)).as_posix()
    'prompts/8-2-2'
    """
    return Path(output) / str(lengths).replace(",", "-")
