"""The base that an adapter or a prompt was learned for: named so that it lasts, and never written over."""

from pathlib import Path

from relvec.encoders.catalog import BASE_MODELS, BUNDLED_MODELS
from relvec.encoders.resolve import adapters_and_base, resolve
from relvec.errors import RelvecError


def lasting(base: str) -> str:
    """A folder by its absolute path, which holds in any working directory; a name or a hub id as it is.

    >>> lasting("mpnet"), lasting(".") == str(Path.cwd())
    ('mpnet', True)
    """
    folder = Path(base).expanduser()
    is_name = base in BUNDLED_MODELS or base in BASE_MODELS
    return base if is_name or not folder.is_dir() else str(folder.absolute())


def check_beside_base(base: str, output: Path, what: str) -> None:
    """What stands on a base must not take its place; `what` is named in the message."""
    adapters, plain = adapters_and_base(resolve(base))
    if output.resolve() in [folder.resolve() for folder in (*adapters, plain)]:
        raise RelvecError(f"{output} holds the base that the {what} needs; choose another output.")
