"""What the folder of a model holds, read without torch: configuration, prompt, pooling, adapters and base."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from relvec.errors import RelvecError
from relvec.hub.models import resolve
from relvec.model.adapter import adapters_and_base
from relvec.prompts import DEFAULT_TEMPLATE, Template


@dataclass(frozen=True)
class StoredModel:
    """A model on disk, before a backend opens it.

    >>> stored = StoredModel.find(tiny_model)
    >>> stored.name, stored.kind, stored.pooling
    ('tiny-roberta', 'roberta', 'average')
    """

    name: str
    folder: Path
    config: dict[str, Any]
    settings: dict[str, Any]
    """The entry `relbert_config`; empty for an encoder that was never tuned on relations."""
    adapters: list[Path]
    """Folders of adapters, the uppermost first."""
    base: Path
    """The folder of the plain encoder."""

    @classmethod
    def find(cls, model: str | Path, revision: str | None = None, show_progress: bool | None = None) -> Self:
        """A model by name, folder or hub id; what is not here yet is fetched."""
        folder = resolve(model, revision, show_progress)
        config = read_config(folder)
        adapters, base = adapters_and_base(folder, show_progress)
        return cls(Path(model).name, folder, config, relbert_config(folder), adapters, base)

    @property
    def kind(self) -> str:
        """The architecture, as transformers names it."""
        return str(self.config.get("model_type"))

    @property
    def template(self) -> Template:
        """The stored prompt; the paper's template 4 for a plain encoder."""
        return Template.from_config(self.settings) if "template" in self.settings else Template.of(DEFAULT_TEMPLATE)

    @property
    def pooling(self) -> str:
        return str(self.settings.get("aggregation_mode", "average"))

    @property
    def training_record(self) -> dict[str, Any]:
        return dict(self.settings.get("training", {}))


def read_config(folder: Path) -> dict[str, Any]:
    """The content of a folder's config.json."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RelvecError(f"{path} describes no encoder ({error}); use a folder of transformers.") from error
    if not isinstance(config, dict):
        raise RelvecError(f"{path} describes no encoder; use a folder of transformers.")
    return config


def relbert_config(folder: Path) -> dict[str, Any]:
    """The prompt and pooling that a checkpoint carries; empty for a plain encoder."""
    settings = read_config(folder).get("relbert_config") or {}
    place = f"relbert_config in {folder / 'config.json'}"
    if not isinstance(settings, dict):
        raise RelvecError(f"{place} is broken; give it template and aggregation_mode.")
    _check_kinds(settings, {"template": str, "aggregation_mode": str, "training": dict}, place)
    _check_kinds(settings.get("training", {}), {"base": str, "recipe": dict, "metrics": dict}, f"training of {place}")
    tokens = settings.get("template_tokens")
    if tokens is not None and not (isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)):
        raise RelvecError(f"template_tokens of {place} is {tokens!r}; give a list of tokens.")
    return settings


def _check_kinds(settings: dict[str, Any], kinds: dict[str, type], place: str) -> None:
    for name, kind in kinds.items():
        if name in settings and not isinstance(settings[name], kind):
            meant = "a text" if kind is str else "entries by name"
            raise RelvecError(f"{name} of {place} is {settings[name]!r}; give {meant}, or leave it out.")
