"""The weights of a model folder, mapped from disk, with the low-rank updates of its adapters."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relvec.model.adapter import KEY_PREFIX, WEIGHTS_NAME, adapted_layers, adapter_config
from relvec.model.quantization import INT8_WEIGHTS, SCALE
from relvec.similarity import Vectors

Matrix = NDArray[np.float32]

_DTYPES = {"F32": "<f4", "F16": "<f2", "I8": "i1"}
_SIZE_BYTES = 8


@dataclass(frozen=True)
class Rows:
    """A tensor as it lies on disk; what is asked of it becomes float32."""

    numbers: NDArray[Any]
    scales: Matrix | None
    """Of the rows, where they are whole numbers."""

    def __getitem__(self, rows: Any) -> Matrix:
        found = self.numbers[rows]
        if self.scales is None:
            return np.asarray(found, dtype=np.float32)
        return np.multiply(found, self.scales[rows][..., None], dtype=np.float32)


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

    def names(self) -> Sequence[str]:
        return list(self._places)

    def rows(self, name: str) -> Rows:
        place = self._places[name]
        first, end = place["data_offsets"]
        numbers = self._numbers[first:end].view(_DTYPES[place["dtype"]]).reshape(place["shape"])
        return Rows(numbers, self.tensor(name + SCALE) if name + SCALE in self._places else None)

    def tensor(self, name: str) -> Matrix:
        return self.rows(name)[:]


@dataclass(frozen=True)
class Linear:
    """x W^T + b, and x A^T B^T for each adapter (A, B).

    Adapters stay apart: to merge one would read and write all weights, which takes longer than a few pairs do.
    """

    weight: Matrix
    bias: Matrix
    updates: Sequence[tuple[Matrix, Matrix]] = ()

    @property
    def merged(self) -> Matrix:
        """W with the product of each adapter in it."""
        return sum((up @ down for down, up in self.updates), start=self.weight)

    def __call__(self, x: Vectors) -> Vectors:
        y = x @ self.weight.T
        y += self.bias
        for down, up in self.updates:
            y += (x @ down.T) @ up.T
        return y


class Weights(TensorFile):
    """The tensors of an encoder, and the adapters that stand on it."""

    def __init__(self, encoder: Path, adapters: Sequence[Path] = ()) -> None:
        whole = encoder / INT8_WEIGHTS
        super().__init__(whole if whole.is_file() else encoder / "model.safetensors")
        self._updates: dict[str, list[tuple[Matrix, Matrix]]] = {}
        self._adapters: list[tuple[TensorFile, np.float32]] = []
        for folder in adapters:
            path, scale = folder / WEIGHTS_NAME, np.float32(adapter_config(folder).scale)
            file = TensorFile(path)
            self._adapters.append((file, scale))
            for layer in adapted_layers(file.names(), path):
                down, up = file.tensor(f"{layer}.lora_A.weight"), scale * file.tensor(f"{layer}.lora_B.weight")
                name = layer.removeprefix(KEY_PREFIX)
                if self.tensor(f"{name}.weight").shape != (up.shape[0], down.shape[1]):
                    raise ValueError(f"an adapter does not fit {name}")
                self._updates.setdefault(name, []).append((down, up))

    def linear(self, name: str) -> Linear:
        return Linear(self.tensor(f"{name}.weight"), self.tensor(f"{name}.bias"), self._updates.get(name, ()))

    def has_layer(self, number: int) -> bool:
        return any(name.startswith(f"encoder.layer.{number}.") for name in self.names())

    def checksum(self) -> str:
        digest = hashlib.sha256(self.bytes.data)
        for file, scale in self._adapters:
            digest.update(file.bytes.data)
            digest.update(scale.tobytes())
        return digest.hexdigest()
