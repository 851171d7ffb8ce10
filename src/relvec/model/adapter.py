"""Low-rank adapters in PEFT's file format, and the base that an adapter or a prompt was learned for."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from relvec.errors import RelvecError
from relvec.hub.catalogue import BASE_MODELS, BUNDLED_MODELS
from relvec.hub.models import resolve
from relvec.io.files import expanded
from relvec.settings import Settings

CONFIG_NAME = "adapter_config.json"
WEIGHTS_NAME = "adapter_model.safetensors"

KEY_PREFIX = "base_model.model."
_PLAIN_ONLY = ("use_dora", "rank_pattern", "alpha_pattern", "fan_in_fan_out", "layer_replication", "modules_to_save")


class AdapterConfig(Settings, extra="allow"):
    """What decides a plain LoRA; PEFT writes more, which is kept but not used."""

    base_model_name_or_path: str
    r: Annotated[int, Field(ge=1)]
    lora_alpha: Annotated[float, Field(gt=0)]
    peft_type: Any = None
    use_rslora: bool = False
    bias: str = "none"

    @property
    def scale(self) -> float:
        """How much of the low-rank product is added to a weight: alpha / r, or alpha / sqrt(r) if rank-stabilised."""
        return self.lora_alpha / (self.r**0.5 if self.use_rslora else self.r)


def is_adapter(folder: Path) -> bool:
    return (folder / CONFIG_NAME).is_file()


def adapter_config(folder: Path) -> AdapterConfig:
    """The adapter's settings, once it is known to be a plain LoRA."""
    config = AdapterConfig.from_json(folder / CONFIG_NAME, fix="fetch it again")
    special = [name for name in _PLAIN_ONLY if (config.model_extra or {}).get(name)]
    if config.peft_type != "LORA" or special or config.bias != "none":
        raise RelvecError(f"The adapter in {folder} is not a plain LoRA; merge it with the library that made it.")
    return config


def adapted_layers(names: Collection[str], path: Path) -> list[str]:
    """The layers of an adapter's tensors, once each is known to have an A and a B, and the file nothing else."""
    layers = [name.removesuffix(".lora_A.weight") for name in names if name.endswith(".lora_A.weight")]
    if not layers or set(names) != {f"{layer}.lora_{part}.weight" for layer in layers for part in "AB"}:
        problem = f"The adapter {path} is not made of pairs of lora_A and lora_B"
        raise RelvecError(f"{problem}; fetch it again, or merge it with the library that made it.")
    return layers


def plain_base(model: str) -> str:
    """The model itself, or what an adapter, or a pile of them, stands on.

    >>> plain_base(tiny_model) == tiny_model
    True
    """
    adapters, _ = adapters_and_base(resolve(model))
    return adapter_config(adapters[-1]).base_model_name_or_path if adapters else model


def adapters_and_base(folder: Path, show_progress: bool | None = None) -> tuple[list[Path], Path]:
    """The adapters of a model's folder, the uppermost first, and the folder of the plain encoder below them."""
    adapters: list[Path] = []
    while is_adapter(folder):
        if any(folder.samefile(above) for above in adapters):
            raise RelvecError(f"The adapter {folder} stands on itself; name its true base in its {CONFIG_NAME}.")
        adapters.append(folder)
        folder = resolve(adapter_config(folder).base_model_name_or_path, show_progress=show_progress)
    return adapters, folder


def absolute_base(base: str) -> str:
    """A folder by its full path, which holds in any working directory; a name or a hub id as it is.

    >>> absolute_base("mpnet"), absolute_base(".") == str(Path.cwd().resolve())
    ('mpnet', True)
    """
    folder = expanded(base)
    return base if _is_name(base) or not folder.is_dir() else str(folder.resolve())


def as_folder(path: str) -> str:
    """The path of a folder such that it is not taken for the name of a model.

    >>> as_folder("mpnet"), as_folder("my-prompt")
    ('./mpnet', 'my-prompt')
    """
    return f"./{path}" if _is_name(path) else path


def _is_name(model: str) -> bool:
    return model in BUNDLED_MODELS or model in BASE_MODELS


def check_beside_base(base: str, output: Path, what: str) -> None:
    """What stands on a base must not take its place; `what` is named in the message."""
    if holds(output, base):
        raise RelvecError(f"{output} holds the base that the {what} needs; choose another output.")


def holds(folder: Path, model: str) -> bool:
    """Whether a folder is a model's own, or that of an adapter or encoder which the model stands on.

    >>> holds(Path(tiny_model), tiny_model), holds(Path("elsewhere"), tiny_model)
    (True, False)
    """
    if not folder.exists():
        return False
    adapters, plain = adapters_and_base(resolve(model))
    return any(folder.samefile(each) for each in (*adapters, plain))
