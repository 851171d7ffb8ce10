"""The one place that picks what computes a model's vectors: torch, or numpy without torch."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relvec.errors import RelvecError, needed_for, one_of
from relvec.hub.catalogue import DEFAULT_MODEL

if TYPE_CHECKING:
    from relvec.model.relation_model import RelBERT


@dataclass(frozen=True)
class Backend:
    """A subclass of RelBERT by its place, so that reading the registry imports none of them."""

    name: str
    help: str
    module: str
    class_name: str
    packages: tuple[str, ...] = ()

    @property
    def is_installed(self) -> bool:
        try:
            return all(find_spec(package) is not None for package in self.packages)
        except (ImportError, ValueError):  # blocked, or half imported
            return False

    def load(self) -> "type[RelBERT]":
        """The class; where its packages are missing, the error names the command that brings them."""
        with needed_for(f"The {self.name} backend"):
            for package in self.packages:
                import_module(package)
            return getattr(import_module(self.module), self.class_name)


BACKENDS: dict[str, Backend] = {
    backend.name: backend
    for backend in (
        Backend(
            "torch",
            "every encoder of transformers; GPUs, bfloat16, training",
            "relvec.model.torch_backend",
            "TorchRelBERT",
            ("torch", "transformers"),
        ),
        Backend(
            "numpy",
            "BERT and MPNet on the CPU; the quickest to start",
            "relvec.model.numpy_backend.model",
            "NumpyRelBERT",
        ),
    )
}


DTYPES = ("float32", "float16", "bfloat16")


class UnsupportedModelError(Exception):
    """This backend does not know the model, or cannot read its files; another backend may."""


def open_model(
    model: str | Path = DEFAULT_MODEL,
    *,
    backend: str = "auto",
    few_pairs: bool = False,
    device: Any = None,
    dtype: Any = "float32",
    template: Any = None,
    pooling: str | None = None,
    revision: str | None = None,
    show_progress: bool | None = None,
) -> "RelBERT":
    """Load a model by name, folder or hub id with a backend of that name.

    `auto` is torch where it is installed. With `few_pairs`, it is numpy where numpy knows the model, because torch
    takes longer to import than a few pairs take to encode; a `device` or another `dtype` still asks for torch.

    >>> type(open_model(tiny_model, few_pairs=True)).__name__  # numpy does not know RoBERTa
    'TorchRelBERT'
    """
    from relvec.model.stored import StoredModel

    if isinstance(dtype, str):
        one_of("dtype", dtype, DTYPES)
    stored = StoredModel.find(model, revision, show_progress)
    reason = ""
    for candidate in _candidates(backend, few_pairs and device is None and dtype == "float32"):
        try:
            return candidate.load().open(stored, template=template, pooling=pooling, device=device, dtype=dtype)
        except UnsupportedModelError as error:
            reason = str(error)
    raise RelvecError(
        f"The numpy backend cannot open {stored.name} ({reason}); use the torch backend (pip install 'relvec[torch]')."
    )


def _candidates(backend: str, few_pairs: bool) -> Iterator[Backend]:
    """The backends to try, one after the other."""
    if one_of("backend", backend, ("auto", *BACKENDS)) != "auto":
        yield BACKENDS[backend]
        return
    torch, numpy = BACKENDS["torch"], BACKENDS["numpy"]
    if few_pairs or not torch.is_installed:
        yield numpy
    if torch.is_installed:
        yield torch
