"""The weights of a model folder, mapped from disk, with the low-rank updates of its adapters."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from relvec.model.adapter import KEY_PREFIX, WEIGHTS_NAME, adapted_layers, adapter_config
from relvec.model.backends import UnsupportedModelError
from relvec.similarity import Vectors

Matrix = NDArray[np.float32]

_DTYPES = {"F32": "<f4", "F16": "<f2"}
_SIZE_BYTES = 8


class TensorFile:
    """A safetensors file: the size of a JSON header, the header, then the numbers that it describes.

    It is mapped, because to copy 400 MB takes longer than to encode a few pairs.
    """

    def __init__(self, path: Path) -> None:
        self.bytes = np.memmap(path, np.uint8, "r")
        start = _SIZE_BYTES + int.from_bytes(self.bytes[:_SIZE_BYTES].tobytes(), "little")
        header = json.loads(self.bytes[_SIZE_BYTES:start].tobytes())
        self._places = {name: place for name, place in header.items() if name != "__metadata__"}
        self._numbers = self.bytes[start:]
        if max(place["data_offsets"][1] for place in self._places.values()) != len(self._numbers):
            raise ValueError(f"{path} is cut short")

    def names(self) -> Sequence[str]:
        return list(self._places)

    def tensor(self, name: str) -> Matrix:
        place = self._places[name]
        first, end = place["data_offsets"]
        found = self._numbers[first:end].view(_DTYPES[place["dtype"]]).reshape(place["shape"])
        return np.asarray(found, dtype=np.float32)


@dataclass(frozen=True)
class Linear:
    """x W^T + b, and x A^T B^T for each adapter (A, B).

    Adapters stay apart: to merge one would read and write all weights, which takes longer than a few pairs do.
    """

    weight: Matrix
    bias: Matrix
    updates: Sequence[tuple[Matrix, Matrix]] = ()

    def __call__(self, x: Vectors) -> Vectors:
        y = x @ self.weight.T
        y += self.bias
        for down, up in self.updates:
            y += (x @ down.T) @ up.T
        return y


class Weights:
    """The tensors of an encoder and of the adapters that stand on it."""

    def __init__(self, encoder: Path, adapters: Sequence[Path] = ()) -> None:
        self._file = TensorFile(encoder / "model.safetensors")
        self._updates: dict[str, list[tuple[Matrix, Matrix]]] = {}
        self._adapters: list[tuple[TensorFile, np.float32]] = []
        for folder in adapters:
            path, scale = folder / WEIGHTS_NAME, np.float32(adapter_config(folder).scale)
            file = TensorFile(path)
            self._adapters.append((file, scale))
            for layer in adapted_layers(file.names(), path):
                update = file.tensor(f"{layer}.lora_A.weight"), scale * file.tensor(f"{layer}.lora_B.weight")
                self._updates.setdefault(layer.removeprefix(KEY_PREFIX), []).append(update)

    def tensor(self, name: str, *shape: int) -> Matrix:
        found = self._file.tensor(name)
        if found.shape != shape:
            raise UnsupportedModelError(f"{name} has the shape {found.shape}, not {shape}")
        return found

    def linear(self, name: str, width_in: int, width_out: int) -> Linear:
        updates = self._updates.pop(name, [])
        if any((up.shape[0], down.shape[1]) != (width_out, width_in) for down, up in updates):
            raise UnsupportedModelError(f"an adapter does not fit {name}")
        weight, bias = self.tensor(f"{name}.weight", width_out, width_in), self.tensor(f"{name}.bias", width_out)
        return Linear(weight, bias, updates)

    def checksum(self) -> str:
        digest = hashlib.sha256(self._file.bytes.data)
        for file, scale in self._adapters:
            digest.update(file.bytes.data)
            digest.update(scale.tobytes())
        return digest.hexdigest()

    def check_adapters_used(self) -> None:
        if self._updates:
            raise UnsupportedModelError(f"an adapter changes {next(iter(self._updates))}")
