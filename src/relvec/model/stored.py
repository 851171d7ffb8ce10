"""What the folder of a model holds, read without torch: configuration, prompt, pooling, adapters and base."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from relvec.errors import RelvecError, errors_as
from relvec.hub.models import resolve
from relvec.io.checksums import check_folder
from relvec.model.adapter import CONFIG_NAME, adapters_and_base
from relvec.prompts import DEFAULT_TEMPLATE, Template
from relvec.settings import Settings

LAYER_COUNTS = ("num_hidden_layers", "n_layers", "n_layer")
"""What architectures call the number of their layers."""

SIZES = ("model_type", "vocab_size", "hidden_size", "intermediate_size")


class RelbertConfig(Settings, extra="ignore", coerce_numbers_to_str=False):
    """The entry `relbert_config` of config.json, in the spelling of the published checkpoints."""

    template: str = ""
    template_tokens: list[str] | None = None
    aggregation_mode: str = "average"
    training: dict[str, Any] = Field(default_factory=dict)


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
    settings: RelbertConfig | None
    """None for an encoder that was never tuned on relations."""
    adapters: list[Path]
    """Folders of adapters, the uppermost first."""
    base: Path
    """The folder of the plain encoder."""
    changes: dict[str, Any]
    """What was asked for otherwise than config.json has it."""

    @classmethod
    def find(
        cls, model: str | Path, revision: str | None = None, show_progress: bool | None = None, layers: int = 0
    ) -> Self:
        """A model by name, folder or hub id, perhaps its lowest `layers` only; what is not here yet is fetched.

        A file that is not what was stored is refused.
        """
        folder = resolve(model, revision, show_progress)
        config = read_config(folder)
        changes = _fewer_layers(config, layers) if layers else {}
        adapters, base = adapters_and_base(folder, show_progress)
        for each in dict.fromkeys((folder, *adapters, base)):
            check_folder(each)
        _check_fit(adapters, base)
        return cls(Path(model).name, folder, config | changes, relbert_config(folder), adapters, base, changes)

    @property
    def kind(self) -> str:
        """The architecture, as transformers names it."""
        return str(self.config.get("model_type"))

    @property
    def template(self) -> Template:
        """The stored prompt; the paper's template 4 for a plain encoder."""
        if self.settings is None or not self.settings.template:
            return Template.of(DEFAULT_TEMPLATE)
        return Template.from_config(self.settings.as_dict())

    @property
    def pooling(self) -> str:
        return self.settings.aggregation_mode if self.settings else "average"

    @property
    def training_record(self) -> dict[str, Any]:
        return dict(self.settings.training) if self.settings else {}


def read_config(folder: Path) -> dict[str, Any]:
    """The content of a folder's config.json."""
    path = folder / "config.json"
    fix = "use a folder of transformers"
    with errors_as(f"{path} describes no encoder", fix, OSError, TypeError, ValueError):
        return dict(json.loads(path.read_text(encoding="utf-8")))


def _check_fit(adapters: Sequence[Path], base: Path) -> None:
    """Refuse an adapter that was trained on another base, which else would seem to be broken."""
    of_base = read_config(base) if adapters else {}
    for adapter in adapters:
        own = read_config(adapter)
        if differing := [name for name in SIZES if own.get(name, of_base.get(name)) != of_base.get(name)]:
            problem = f"{differing[0]} is {own[differing[0]]}, not {of_base.get(differing[0])}"
            fix = f"name the base that it was trained on in its {CONFIG_NAME}"
            raise RelvecError(f"The adapter {adapter} does not fit its base {base} ({problem}); {fix}.")


def _fewer_layers(config: dict[str, Any], count: int) -> dict[str, Any]:
    """The settings of a configuration with so many layers; the weights of the others are then not loaded."""
    if count < 0:
        raise RelvecError(f"A base of {count} layers is impossible; keep 1 or more, or 0 for all.")
    name = next((each for each in LAYER_COUNTS if each in config), None)
    if name is None:
        raise RelvecError(f"The layers of {config.get('model_type')} cannot be told apart; keep all (layers 0).")
    layers = config[name]
    if count > layers:
        raise RelvecError(f"The base has {layers} layers, fewer than {count}; keep fewer, or 0 for all.")
    kinds = config.get("layer_types")
    return {name: count} | ({"layer_types": kinds[:count]} if kinds else {})


def relbert_config(folder: Path) -> RelbertConfig | None:
    """The prompt and pooling that a checkpoint carries; None for a plain encoder."""
    found = read_config(folder).get("relbert_config")
    where = f"relbert_config in {folder / 'config.json'}: "
    return RelbertConfig.checked(found if isinstance(found, dict) else {"template": found}, where) if found else None
