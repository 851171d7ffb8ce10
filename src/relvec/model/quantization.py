"""Weights of one byte a number: each row of a matrix is whole numbers from -127 to 127 times a scale of the row."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

INT8_WEIGHTS = "model.int8.safetensors"
SCALE = ".scale"
"""What the name of the scales of a matrix has after the name of the matrix."""

LARGEST = 127

Matrix = NDArray[np.float32]


def quantized(matrix: Matrix, dtype: Any = np.float32) -> tuple[NDArray[np.int8], NDArray[Any]]:
    """The whole numbers and the scale of each row; a matrix that was quantized before gives the same again.

    Scales are stored as `dtype`.

    >>> numbers, scales = quantized(np.array([[-1.0, 0.5], [0.0, 0.0]], dtype=np.float32))
    >>> numbers.tolist(), [round(float(scale) * 127, 4) for scale in scales]
    ([[-127, 64], [0, 0]], [1.0, 0.0])
    """
    scales = (np.abs(matrix).max(axis=1) / np.float32(LARGEST)).astype(dtype)
    divisors = np.where(scales > 0, scales, 1).astype(np.float32)
    numbers = np.clip(np.rint(matrix / divisors[:, None]), -LARGEST, LARGEST)
    return numbers.astype(np.int8), scales


def quantized_tensors(tensors: Mapping[str, Matrix]) -> dict[str, NDArray[Any]]:
    """The content of an int8 file: matrices as whole numbers with their scales, all else as it is."""
    content: dict[str, NDArray[Any]] = {}
    for name, tensor in tensors.items():
        if tensor.ndim == 2:
            content[name], content[name + SCALE] = quantized(tensor)
        else:
            content[name] = tensor
    return content
