"""Options that several commands share, and how they print."""

import os
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relvec.errors import RelvecError
from relvec.model.backends import BACKENDS

if TYPE_CHECKING:
    from relvec.model.relation_model import RelBERT


def _check_device(device: str | None) -> str | None:
    if device is not None and device.partition(":")[0] not in ("cpu", "cuda", "mps"):  # cuda:1 is one too
        raise RelvecError(f"Unknown device {device!r}; use cpu, cuda or mps.")
    return device


Model = Annotated[str, typer.Option("--model", "-m", help="A model name, a folder or a hub id.")]
Device = Annotated[
    str | None, typer.Option(callback=_check_device, help="cpu, cuda or mps; by default the fastest there is.")
]
_BACKENDS = ", ".join(f"{backend.name} ({backend.help})" for backend in BACKENDS.values())
BackendOption = Annotated[str, typer.Option("--backend", help=f"auto, {_BACKENDS}.")]
Dtype = Annotated[
    str,
    typer.Option(help="float32, or bfloat16: about twice as fast where the hardware has it, a little less exact."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
LOSS_NAMES = "triplet, classification, triplet+classification, infonce, infoloob or contrastive"
ScoringOption = Annotated[str, typer.Option(help="forward, reverse or bidirectional.")]
SeedOption = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Decides every random choice.")]
DataDir = Annotated[
    Path | None, typer.Option(help="The folder with the datasets; by default $RELVEC_DATA, else the hub.")
]


def with_shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command in which each parameter that is a dataclass stands for options, one a field.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Run:
    ...     device: Device = None
    ...     json: Json = False
    >>> @with_shared_options
    ... def show(*, part: str = "test", run: Run) -> None:
    ...     typer.echo(f"{part} {run.device}")
    >>> list(signature(show).parameters)
    ['part', 'device', 'json']
    """
    given = signature(command).parameters
    groups: dict[str, Any] = {name: found.annotation for name, found in given.items() if is_dataclass(found.annotation)}

    @wraps(command)
    def expanded(**options: Any) -> None:
        for name, group in groups.items():
            options[name] = group(**{field.name: options.pop(field.name) for field in fields(group)})
        command(**options)

    shown = [option for name, found in given.items() for option in (_options(groups.get(name)) or [found])]
    keywords = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in shown]
    expanded.__signature__ = Signature(keywords)  # type: ignore[attr-defined]
    return expanded


def _options(group: Any) -> list[Parameter]:
    """The fields of a dataclass as parameters of a command."""
    return [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
        for field in (fields(group) if group else ())
    ]


def start_quickly() -> None:
    """Ready this process to encode a few pairs with numpy; only before numpy is imported has it an effect."""
    # Threads that share a small matrix product wait for each other: on a busy machine, for many times what they save.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def load_model(
    model: str, device: str | None, *, backend: str = "auto", dtype: str = "float32", few_pairs: bool = True
) -> "RelBERT":
    """A model for a command; with `few_pairs`, `auto` prefers the backend that starts first."""
    if few_pairs:
        start_quickly()
    from relvec.model.backends import open_model

    return open_model(model, backend=backend, device=device, dtype=dtype, few_pairs=few_pairs)
