"""The search over lengths: a prompt is learned for each, and the validation loss decides (section 4.1)."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from relvec.data.rated import RatedRelation
from relvec.errors import one_of
from relvec.io.files import expanded
from relvec.learned_prompts.autoprompt import autoprompt
from relvec.learned_prompts.prompt_task import PromptTask, check_room, draw_losses
from relvec.learned_prompts.ptuning import ptune
from relvec.learned_prompts.settings import AutoPromptSettings, PromptSettings, PTuningSettings
from relvec.model.adapter import check_beside_base
from relvec.model.torch_backend import TorchRelBERT
from relvec.prompts.learned import Lengths, PromptResult
from relvec.storage.job import job_of
from relvec.storage.journal import Journal, check_own
from relvec.storage.lock import output_lock

METHODS: dict[str, tuple[Callable[[PromptTask, bool | None], PromptResult], type[PromptSettings]]] = {
    "autoprompt": (autoprompt, AutoPromptSettings),
    "ptuning": (ptune, PTuningSettings),
}
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
    check_own(folder, GRID_NAME, (PICTURE_NAME,))
    plain = TorchRelBERT.from_pretrained(base, template="[h] [t]", pooling="average", device="cpu")
    for lengths in grid:  # those that the base has no room for fail now, not after hours of learning others
        check_room(plain, lengths, relations)
    iterations = chosen.pop("iterations", None)  # more of them continue a search
    job = job_of(method, plain.fingerprint, list(relations), sorted(chosen.items()))
    options = {"source": source, "device": device, "show_progress": show_progress, **settings}
    with output_lock(folder):
        journal = Journal(folder / GRID_NAME, job)
        with journal.damage_noticed():
            known = [Lengths.parse(entry["lengths"]) for entry in journal.entries]
        results = {each: found for each in known if (found := PromptResult.found_in(prompt_folder(folder, each)))}
        for lengths in grid:
            if lengths not in results or results[lengths].settings.get("iterations") != iterations:
                learned = learn(method, base, relations, lengths, prompt_folder(folder, lengths), **options)
                journal.add({"lengths": str(lengths), "validation_loss": learned.validation_loss, "text": learned.text})
                results[lengths] = learned
        training = {str(lengths): result.train_loss for lengths, result in results.items()}
        validation = {str(lengths): result.validation_loss for lengths, result in results.items()}
        draw_losses(folder / PICTURE_NAME, "triggers before, between and after the words", training, validation)
    return sorted(results.values(), key=lambda result: result.validation_loss)


def learn(
    method: str,
    base: str | Path,
    relations: Sequence[RatedRelation],
    lengths: Lengths,
    output: str | Path,
    *,
    source: Mapping[str, Any] | None = None,
    device: str | None = None,
    show_progress: bool | None = None,
    **settings: Any,
) -> PromptResult:
    """Learn one prompt for `base` in the folder `output`; the same call again resumes a killed run.

    `settings` are the method's own. More `iterations` than before continue a finished search of AutoPrompt. `source`
    says where the relations are from, for prompt.json.

    >>> from relvec import RelBERT
    >>> from relvec.data.sources import load
    >>> found = learn("ptuning", tiny_model, load("bundled")[:4], Lengths(2, 1, 1), "soft", steps=2)
    >>> RelBERT.from_pretrained("soft").template.text == found.text
    True
    """
    task = PromptTask(base, relations, lengths, output, checked_settings(method, settings), source, device)
    with output_lock(task.output):
        return METHODS[method][0](task, show_progress)


def checked_settings(method: str, settings: Mapping[str, Any]) -> PromptSettings:
    """The settings of a method by name."""
    return METHODS[one_of("method", method, METHODS)][1].checked(settings, where=f"{method}: ")


def prompt_folder(output: str | Path, lengths: Lengths) -> Path:
    """Where the search keeps the prompt of some lengths.

    >>> prompt_folder("prompts", Lengths(8, 2, 2)).as_posix()
    'prompts/8-2-2'
    """
    return Path(output) / str(lengths).replace(",", "-")
