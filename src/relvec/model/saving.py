"""Saving a model: the folder as a whole, and its files in a form that older releases of transformers read too."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relvec.errors import RelvecError
from relvec.io.checksums import CHECKSUMS_NAME, check_folder, write_checksums
from relvec.io.files import atomic_folder, expanded
from relvec.model.quantization import INT8_WEIGHTS
from relvec.model.stored import relbert_config
from relvec.progress import quiet_transformers
from relvec.storage.job import check_job

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

TOKENIZER_CONFIG = "tokenizer_config.json"

# A model has one of these files, with an entry that no other program's file of that name is likely to have.
CONFIGS = {"config.json": "model_type", "adapter_config.json": "peft_type"}

# What an older model may have left in a folder that a new one is saved to. No more: files of the user's may be there.
MODEL_FILES = (
    "model.safetensors",
    "model-*-of-*.safetensors",
    "model.safetensors.index.json",
    INT8_WEIGHTS,
    "pytorch_model.bin",
    "pytorch_model-*-of-*.bin",
    "pytorch_model.bin.index.json",
    "config.json",
    "adapter_model.safetensors",
    "adapter_config.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "spiece.model",
    CHECKSUMS_NAME,
)


def check_model_output(folder: Path) -> None:
    """A model can be saved there: in place of an older one, or beside files that have other names than a model's."""
    place = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if not place.is_dir():
        raise RelvecError(f"{place} is a file; choose a folder for the model.")
    if not os.access(place, os.W_OK):
        raise RelvecError(f"{place} cannot be written to; choose another folder for the model.")
    found = (path for name in ("README.md", *MODEL_FILES) for path in folder.glob(name))
    other = next((path for path in found if not path.is_dir()), None)
    if other is not None and not any(_has_entry(folder / name, entry) for name, entry in CONFIGS.items()):
        raise RelvecError(f"{folder} has a {other.name} that is not a model's; choose another folder, or move it away.")


@contextmanager
def atomic_model_folder(
    folder: str | Path, readme: str, config: Mapping[str, Any] | None = None, stale: Sequence[str] = ()
) -> Iterator[Path]:
    """Yield a new folder for the files of a model, which takes the place of an older model once it is complete.

    The README, the checksums and, if it is given, config.json are written here. `stale` are further files to remove.
    """
    check_model_output(expanded(folder))
    with atomic_folder(folder, stale=(*MODEL_FILES, *stale), first=CONFIGS) as partial:
        yield partial
        if config is not None:
            text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
            (partial / "config.json").write_text(text, encoding="utf-8")
        (partial / "README.md").write_text(readme, encoding="utf-8")
        write_checksums(partial)


def finished_run(folder: Path, job: str, own_files: Sequence[str] = ()) -> dict[str, Any]:
    """What the model of a folder says of this very job, which has made it; empty where there is none yet.

    The model of another job is refused, unless one of `own_files` says that a run is at work there.
    """
    check_model_output(folder)
    if any((folder / name).exists() for name in own_files) or not any((folder / name).exists() for name in CONFIGS):
        return {}
    stored = relbert_config(folder) if (folder / "config.json").is_file() else None
    run: dict[str, Any] = stored.training.get("run", {}) if stored else {}
    check_job(run.get("job") == job, folder)
    return run if check_folder(folder, every=True) else {}  # without checksums, a kill came before the last file


def _has_entry(path: Path, entry: str) -> bool:
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(settings, dict) and entry in settings


def check_finite(weights: "Mapping[str, Tensor]") -> None:
    """Weights that are no numbers are never an output."""
    for name, weight in weights.items():
        if not weight.isfinite().all():
            problem = f"The weight {name} is not finite: what it was made of is damaged, or training went astray"
            raise RelvecError(f"{problem}; check what it was made of with `relvec verify`.")


def save_encoder(encoder: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", folder: Path) -> None:
    """Write a plain encoder folder: safetensors, configuration, tokenizer."""
    check_finite(encoder.state_dict())
    with quiet_transformers():
        encoder.save_pretrained(folder)
    save_tokenizer(tokenizer, folder)


def save_tokenizer(tokenizer: "PreTrainedTokenizerBase", folder: Path) -> None:
    with quiet_transformers():
        tokenizer.save_pretrained(folder)
    path = folder / TOKENIZER_CONFIG
    settings = older_spelling(json.loads(path.read_text(encoding="utf-8")))
    path.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def older_spelling(settings: dict[str, Any]) -> dict[str, Any]:
    """A tokenizer's settings in the spelling that transformers 4 wrote and both 4 and 5 read.

    >>> older_spelling({"tokenizer_class": "TokenizersBackend", "extra_special_tokens": ["<v0>"], "is_local": True})
    {'tokenizer_class': 'PreTrainedTokenizerFast', 'additional_special_tokens': ['<v0>']}
    """
    kept = {name: value for name, value in settings.items() if name not in ("is_local", "local_files_only")}
    if kept.get("tokenizer_class") == "TokenizersBackend":
        kept["tokenizer_class"] = "PreTrainedTokenizerFast"
    if isinstance(kept.get("extra_special_tokens"), list):
        kept["additional_special_tokens"] = kept.pop("extra_special_tokens")
    return kept
