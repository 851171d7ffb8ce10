"""Options that several commands share."""

import os
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin

import typer

from relvec.errors import RelvecError
from relvec.hub.catalogue import DEFAULT_MODEL
from relvec.io.files import expanded
from relvec.model.backends import BACKENDS, Workload

if TYPE_CHECKING:
    from relvec.model.relation_model import RelBERT

QUICK_PAIRS = 200
"""From this many pairs on, it is worth waiting for torch, which may find a GPU."""


def workload_of(pairs: int) -> Workload:
    """Whether so few pairs are to be encoded that the start takes most of the time."""
    return "quick" if pairs < QUICK_PAIRS else "batch"


def check_device(device: str | None) -> str | None:
    if device is not None and device.partition(":")[0] not in ("cpu", "cuda", "mps"):  # cuda:1 is one too
        raise RelvecError(f"Unknown device {device!r}; use cpu, cuda or mps.")
    return device


def output_option(help: str, kind: type[str] | type[Path] = Path) -> Any:
    """The option `--output` or `-o`, which may not be empty: that would mean the current folder."""

    def given(output: str | Path) -> str | Path:
        if output == "":
            raise typer.BadParameter("it is empty, as an unset variable of the shell is; give it a name")
        return kind(expanded(output)) if str(output).startswith("~") else kind(output)

    return typer.Option("--output", "-o", parser=given, metavar="PATH", help=help)


Model = Annotated[str, typer.Option("--model", "-m", help="A model name, a folder or a hub id.")]
Device = Annotated[
    str | None, typer.Option(callback=check_device, help="cpu, cuda or mps; by default the fastest available.")
]
_BACKENDS = ", ".join(f"{backend.name} ({backend.help})" for backend in BACKENDS.values())
BackendOption = Annotated[str, typer.Option(help=f"auto, {_BACKENDS}.")]
Dtype = Annotated[
    str,
    typer.Option(help="float32; or bfloat16 (torch) and int8 (onnx): faster where supported, less exact."),
]
PairsFile = Annotated[
    str, typer.Argument(help="A .csv, .tsv, .jsonl or .parquet file, lines of head:tail, or - for stdin.")
]
Index = Annotated[
    str | None,
    typer.Option(help="An index folder, or milvus: and its address; by default the bundled vocabulary."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SeedOption = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Decides every random choice.")]
DataDir = Annotated[
    Path | None, typer.Option(help="The folder with the datasets; by default $RELVEC_DATA, else the hub.")
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Classifiers trained at once; by default one per core.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything and print the size of the run; run nothing.")]


@dataclass(frozen=True)
class Encoder:
    """The model that a command encodes with."""

    model: Model = DEFAULT_MODEL
    device: Device = None
    backend: BackendOption = "auto"
    dtype: Dtype = "float32"

    def load(self, workload: Workload = "quick") -> "RelBERT":
        """For a `quick` workload, `auto` prefers the backend that starts first."""
        if workload == "quick":
            start_quickly()
        from relvec.model.relation_model import RelBERT

        return RelBERT.from_pretrained(
            self.model, backend=self.backend, device=self.device, dtype=self.dtype, workload=workload
        )


@dataclass(frozen=True)
class BatchEncoder(Encoder):
    """The model that encodes a file of pairs, and how."""

    batch_size: Annotated[int, typer.Option(min=1, help="Pairs encoded at once.")] = 64
    truncate: Annotated[bool, typer.Option("--truncate", help="Cut pairs that are too long for the model.")] = False

    @property
    def batches(self) -> dict[str, Any]:
        return {"batch_size": self.batch_size, "truncate": self.truncate}


@dataclass(frozen=True)
class Run:
    """Where the data is, what computes, and how the result is shown."""

    data_dir: DataDir = None
    device: Device = None
    json: Json = False


def start_quickly() -> None:
    """Ready this process to encode a few pairs with numpy; it must come before numpy and pydantic are imported."""
    # Threads that share a small matrix product wait for each other: on a busy machine, for many times what they save.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # to look for them is to read every installed package


def with_shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command in which each parameter that is a dataclass, or a class of Settings, stands for options, one a field.

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
    annotations: dict[str, Any] = {name: found.annotation for name, found in given.items()}
    groups = {name: kind for name, kind in annotations.items() if _options(kind)}

    @wraps(command)
    def expanded(**options: Any) -> None:
        for name, group in groups.items():
            given = {option.name: options.pop(option.name) for option in _options(group)}
            if hasattr(group, "model_fields"):
                given = {name: value for name, value in given.items() if value is not None}
            options[name] = group(**given)
        command(**options)

    shown = [option for name, found in given.items() for option in (_options(groups.get(name)) or [found])]
    keywords = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in shown]
    expanded.__signature__ = Signature(keywords)  # type: ignore[attr-defined]
    return expanded


def _options(group: Any) -> list[Parameter]:
    """The fields of a dataclass, or of Settings, as parameters of a command."""
    if is_dataclass(group):
        known = [(field.name, field.default, field.type) for field in fields(group)]
    else:
        described = [each for each in getattr(group, "model_fields", {}).items() if each[1].description]
        known = [(name, None, _option(field)) for name, field in described]
    return [Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind) for name, default, kind in known]


def _option(field: Any) -> Any:
    """A field of Settings as an option: its description is the help, and None stands for its default."""
    names = [name for name in [field.json_schema_extra["option"]] if name]
    is_list = get_origin(field.annotation) in (list, tuple)
    shows_default = field.default_factory is None and field.default not in (None, "") and not is_list
    help_text = f"{field.description[0].upper()}{field.description[1:]}."
    kind = list[str] if is_list else field.annotation
    return Annotated[
        kind | None, typer.Option(*names, help=help_text, show_default=shows_default and str(field.default))
    ]
