"""The base that an adapter or a prompt was learned for: named so that it lasts, and never written over."""

from pathlib import Path

from relvec.errors import RelvecError
from relvec.hub.catalogue import BASE_MODELS, BUNDLED_MODELS
from relvec.hub.models import resolve
from relvec.io.files import expanded
from relvec.model.adapter import adapters_and_base


def lasting(base: str) -> str:
    """A folder by its full path, which holds in any working directory; a name or a hub id as it is.

    >>> lasting("mpnet"), lasting(".") == str(Path.cwd().resolve())
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
