"""From what the user wrote - a name, a folder or a hub id - to a folder on disk."""

import re
from pathlib import Path

from relvec.errors import RelvecError, did_you_mean
from relvec.hub.catalogue import BASE_MODELS, BUNDLED_MODELS, HUB_MODELS
from relvec.hub.fetch import fetch
from relvec.hub.network import HUB_PATIENCE_SECONDS, hub_answers, is_refusal, offline
from relvec.io.paths import expanded

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_READABLE = (".json", ".txt", ".model", ".safetensors")


def resolve(model: str | Path, revision: str | None = None, show_progress: bool | None = None) -> Path:
    """The folder of a model; base models are fetched, hub models come through the hub's own cache."""
    name = str(model)
    if name in BUNDLED_MODELS:
        return BUNDLED_MODELS[name].folder
    if name in BASE_MODELS:
        return fetch(BASE_MODELS[name], show_progress)
    folder = expanded(model)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise RelvecError(
                f"The folder {name} holds no config.json, so it is no model; give a saved model's folder."
            )
        return folder
    if folder.is_file():
        raise RelvecError(f"{name} is a file; give the folder that holds the model.")
    if not _HUB_ID.fullmatch(name) or name.startswith("."):
        raise RelvecError(f"There is no model folder {name}; check the path, or see `relvec models`.")
    return _hub_folder(name, revision)


def _hub_folder(repository: str, revision: str | None) -> Path:
    """A snapshot of a hub repository: weights as safetensors if it has them, no code, no other formats."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        if not hub_answers():
            return Path(snapshot_download(repository, revision=revision, local_files_only=True))
        siblings = HfApi().model_info(repository, revision=revision, timeout=HUB_PATIENCE_SECONDS).siblings or []
        names = [sibling.rfilename for sibling in siblings if "/" not in sibling.rfilename]
        wanted = [name for name in names if name.endswith(_READABLE)]
        if not any(name.endswith(".safetensors") for name in names):
            wanted += [name for name in names if name.startswith("pytorch_model") and name.endswith(".bin")]
        patience = HUB_PATIENCE_SECONDS
        return Path(snapshot_download(repository, revision=revision, allow_patterns=wanted, etag_timeout=patience))
    except LocalEntryNotFoundError as error:
        reason = "the network is switched off" if offline() else "the hub does not answer"
        raise RelvecError(f"{_unknown(repository)} (it may be on the hub, but {reason}).") from error
    except Exception as error:  # the transport's own errors are not the hub library's
        if is_refusal(error):
            raise RelvecError(f"{_unknown(repository)} (the hub has none of that name, or none for you).") from error
        raise RelvecError(f"The hub broke off while sending {repository}; try again, or give a folder.") from error


def _unknown(name: str) -> str:
    names = (*BUNDLED_MODELS, *BASE_MODELS, *HUB_MODELS)
    advice = did_you_mean(name, names, otherwise="see `relvec models` for names, or give a folder or a hub id")
    return f"Unknown model {name!r}; {advice}"
