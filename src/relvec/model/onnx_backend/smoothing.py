"""SmoothQuant (Xiao et al., 2023): a few numbers of each token are far larger than the others, and would leave those
with hardly any of the 127 steps of a byte. A channel's numbers are divided by a factor that goes into the weights."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from relvec.model.numpy_backend.transformer import Network, TokenArray, gelu
from relvec.model.numpy_backend.weights import Linear, Matrix
from relvec.pairs import Pair
from relvec.similarity import Vectors

# Of the bundled relations; they show which channels are large, and that is nearly the same for all pairs.
SAMPLE: tuple[Pair, ...] = (
    ("barista", "coffee"),
    ("wheel", "car"),
    ("hot", "cold"),
    ("Paris", "France"),
    ("puppy", "dog"),
    ("earthquake", "tsunami"),
    ("walk", "run"),
    ("umbrella", "rain"),
    ("happy", "joy"),
    ("novelist", "novel"),
    ("thermometer", "temperature"),
    ("ice cream", "dessert"),
    ("quickly", "slowly"),
    ("oak", "tree"),
    ("aspirin", "headache"),
    ("teach", "teacher"),
)


class Factors(NamedTuple):
    """Of the channels that the linear layers of a layer read."""

    attention: Matrix | None
    wide: Matrix | None
    narrow: Matrix | None


def smoothing(network: Network, groups: Sequence[TokenArray]) -> list[Factors]:
    """sqrt(largest input / largest weight) of each channel, for each layer."""
    x, shapes, biases = network.embedded(groups)
    found = []
    for layer in network.layers:
        middle = layer.after_attention(x, shapes, biases)
        widened = gelu(layer.wide(middle))
        attention = _factors(x, layer.query, layer.key, layer.value)
        found.append(Factors(attention, _factors(middle, layer.wide), _factors(widened, layer.narrow)))
        x = layer.output_norm(middle + layer.narrow(widened))
    return found


def _factors(x: Vectors, *linears: Linear) -> Matrix:
    inputs = np.abs(x).max(axis=0)
    weights = np.abs(np.concatenate([linear.merged for linear in linears])).max(axis=0)
    return np.sqrt(np.maximum(inputs, 1e-4) / np.maximum(weights, 1e-4))
