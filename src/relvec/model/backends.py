"""The one place that picks what computes a model's vectors: torch, or without it numpy or ONNX Runtime."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from relvec.errors import needed_for, one_of

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
            "every encoder and decoder of transformers; GPUs, bfloat16, training",
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
        Backend(
            "onnx",
            "BERT and MPNet on the CPU; the fastest for many pairs, with int8",
            "relvec.model.onnx_backend.model",
            "OnnxRelBERT",
            ("onnx", "onnxruntime"),
        ),
    )
}

STATIC_KIND = "relvec-static"
STATIC = Backend("static", "models without a language model", "relvec.model.static_model", "StaticRelBERT")

Workload = Literal["batch", "quick", "serve"]
"""Many pairs at once; a few, where the start takes most of the time; or those of many clients, one after the other."""

DTYPES = ("float32", "float16", "bfloat16", "int8")


class UnsupportedModelError(Exception):
    """This backend does not know the model, or cannot read its files; another backend may."""


def has_gpu() -> bool:
    """Whether torch is there and would compute on a GPU."""
    if not BACKENDS["torch"].is_installed or version("torch").endswith("+cpu"):  # whose import takes time and memory
        return False
    import torch

    return torch.cuda.is_available() or torch.backends.mps.is_available()


def candidates(backend: str, workload: Workload = "batch", kind: str = "", dtype: Any = "float32") -> Iterator[Backend]:
    """The backends to try, one after the other; `auto` is torch, and for quick work numpy where it knows the model.

    To serve on a CPU it is onnx where that is installed, else numpy, where they know the model. A static model has no
    language model to choose a backend for.

    >>> [backend.name for backend in candidates("auto", "quick")]
    ['numpy', 'torch']
    >>> [backend.name for backend in candidates("auto", "quick", dtype="int8")]
    ['onnx']
    """
    if kind == STATIC_KIND:
        yield STATIC
        return
    if one_of("backend", backend, ("auto", *BACKENDS)) != "auto":
        yield BACKENDS[backend]
        return
    if dtype == "int8":
        yield BACKENDS["onnx"]
        return
    torch, numpy, onnx = BACKENDS["torch"], BACKENDS["numpy"], BACKENDS["onnx"]
    serves_on_cpu = workload == "serve" and not has_gpu()
    if serves_on_cpu and onnx.is_installed:
        yield onnx
    if workload == "quick" or serves_on_cpu or not torch.is_installed:
        yield numpy
    if torch.is_installed:
        yield torch
