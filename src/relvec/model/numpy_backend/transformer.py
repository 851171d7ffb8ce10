"""BERT and MPNet, forwards only: token ids become output vectors.

Both are post-norm transformers, and differ in the names of their weights and in how they know positions. Pairs of
different length are not padded: all tokens lie in one matrix, and only attention looks at pairs of one length at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relvec.model.numpy_backend.weights import Linear, Matrix, Weights
from relvec.similarity import Vectors

TokenArray = NDArray[np.int64]

# What a configuration must say, or not say, for this file to compute the same as transformers.
PLAIN = {"hidden_act": "gelu", "position_embedding_type": "absolute", "is_decoder": False, "quantization_config": None}

BUCKETS = 32  # of MPNet's relative positions
GELU_ROWS = 16  # so many stay in the processor's cache, which makes it three times as fast

# erfc(z) exp(z^2) as a polynomial of 1 / (1 + p z), with p first: Abramowitz and Stegun 7.1.26, good to 1.5e-7
_ERFC = (0.3275911, 0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


@dataclass(frozen=True)
class Architecture:
    """The names of the parts of a layer's attention, and how positions are known."""

    projections: tuple[str, str, str, str]  # of queries, keys, values and their result
    attention_norm: str
    first_position: int = 0
    has_token_types: bool = False
    has_relative_positions: bool = False


ARCHITECTURES = {
    "bert": Architecture(
        ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"),
        "attention.output.LayerNorm",
        has_token_types=True,
    ),
    "mpnet": Architecture(
        ("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o"),
        "attention.LayerNorm",
        first_position=2,
        has_relative_positions=True,
    ),
}


@dataclass(frozen=True)
class Norm:
    """(x - mean) / sqrt(variance + epsilon), scaled and moved, over the last dimension."""

    scale: Matrix
    shift: Matrix
    epsilon: float

    def __call__(self, x: Vectors) -> Vectors:
        x = x - x.mean(axis=-1, keepdims=True)
        x /= np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(self.epsilon))
        x *= self.scale
        x += self.shift
        return x


@dataclass(frozen=True)
class Layer:
    """Attention and a perceptron, each added to its input and normalised."""

    query: Linear
    key: Linear
    value: Linear
    result: Linear
    attention_norm: Norm
    wide: Linear
    narrow: Linear
    output_norm: Norm
    heads: int

    def __call__(self, x: Vectors, shapes: Sequence[tuple[int, ...]], biases: Sequence[Matrix]) -> Vectors:
        x = self.after_attention(x, shapes, biases)
        return self.output_norm(x + self.narrow(gelu(self.wide(x))))

    def after_attention(self, x: Vectors, shapes: Sequence[tuple[int, ...]], biases: Sequence[Matrix]) -> Vectors:
        return self.attention_norm(x + self.result(self._attended(x, shapes, biases)))

    def _attended(self, x: Vectors, shapes: Sequence[tuple[int, ...]], biases: Sequence[Matrix]) -> Vectors:
        """softmax(Q K^T / sqrt(d) + bias) V for each head of each pair."""
        projected = self.query(x), self.key(x), self.value(x)
        attended = np.empty_like(x)
        start = 0
        for (pairs, length), bias in zip(shapes, biases, strict=True):
            rows = slice(start, start + pairs * length)
            start = rows.stop
            query, key, value = (
                part[rows].reshape(pairs, length, self.heads, -1).transpose(0, 2, 1, 3) for part in projected
            )
            scores = query @ key.transpose(0, 1, 3, 2)
            scores *= np.float32(query.shape[-1] ** -0.5)
            scores += bias
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=-1, keepdims=True)
            attended[rows] = (scores @ value).transpose(0, 2, 1, 3).reshape(pairs * length, -1)
        return attended


class Network:
    """The encoder that a `config.json` describes."""

    def __init__(self, config: Mapping[str, Any], weights: Weights, padding: int) -> None:
        kind = ARCHITECTURES[config["model_type"]]
        self.dim, self.heads = int(config["hidden_size"]), int(config["num_attention_heads"])
        self.epsilon = float(config.get("layer_norm_eps", 1e-12))
        self.words = weights.rows("embeddings.word_embeddings.weight")
        is_plain = all(config.get(key, PLAIN[key]) == PLAIN[key] for key in PLAIN)
        has_its_sizes = self.words.numbers.shape[1] == self.dim and self.dim % self.heads == 0
        # MPNet counts positions from the padding token that it was trained with.
        if not (is_plain and has_its_sizes and kind.first_position in (0, padding + 1)):
            raise ValueError("it is not a plain encoder of the sizes that its config.json has")
        self.positions = weights.tensor("embeddings.position_embeddings.weight")[kind.first_position :]
        self.max_tokens = len(self.positions)
        if kind.has_token_types:
            self.positions = self.positions + weights.tensor("embeddings.token_type_embeddings.weight")[0]
        self.nearness: Matrix | None = None
        if kind.has_relative_positions:
            self.nearness = weights.tensor("encoder.relative_attention_bias.weight")
        self.norm = self._norm_of(weights, "embeddings.LayerNorm")
        layers = range(int(config["num_hidden_layers"]))
        self.layers = [self._layer(weights, kind, f"encoder.layer.{number}.") for number in layers]

    def __call__(self, groups: Sequence[TokenArray]) -> list[Vectors]:
        """Output vectors [pairs, length, dim] for the tokens [pairs, length] of each group of pairs of one length."""
        x, shapes, biases = self.embedded(groups)
        for layer in self.layers:
            x = layer(x, shapes, biases)
        ends = np.cumsum([ids.size for ids in groups])[:-1]
        return [rows.reshape(*shape, self.dim) for rows, shape in zip(np.split(x, ends), shapes, strict=True)]

    def embedded(self, groups: Sequence[TokenArray]) -> tuple[Vectors, list[tuple[int, ...]], list[Matrix]]:
        """What the first layer reads: all tokens in one matrix, the shape of each group, the bias of its attention."""
        embedded = [self.words[ids] + self.positions[: ids.shape[1]] for ids in groups]
        x = self.norm(np.concatenate([rows.reshape(-1, self.dim) for rows in embedded]))
        return x, [ids.shape for ids in groups], [self._bias(ids.shape[1]) for ids in groups]

    def _bias(self, length: int) -> Matrix:
        """What is added to the attention [heads, to token, from token] for the distance of two tokens."""
        if self.nearness is None:
            return np.zeros((1, 1, 1), dtype=np.float32)
        places = np.arange(length)
        return self.nearness[position_bucket(places[None, :] - places[:, None])].transpose(2, 0, 1)

    def _layer(self, weights: Weights, kind: Architecture, prefix: str) -> Layer:
        query, key, value, result = (weights.linear(prefix + name) for name in kind.projections)
        return Layer(
            query,
            key,
            value,
            result,
            self._norm_of(weights, prefix + kind.attention_norm),
            weights.linear(f"{prefix}intermediate.dense"),
            weights.linear(f"{prefix}output.dense"),
            self._norm_of(weights, f"{prefix}output.LayerNorm"),
            self.heads,
        )

    def _norm_of(self, weights: Weights, name: str) -> Norm:
        return Norm(weights.tensor(f"{name}.weight"), weights.tensor(f"{name}.bias"), self.epsilon)


def position_bucket(distance: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bucket of a distance in tokens: 0 to 15 backwards, 16 to 31 forwards.

    Each distance up to 7 has a bucket of its own; from there the width of a bucket grows by sqrt(2), up to 91 tokens.

    >>> position_bucket(np.array([0, -1, -7, -8, -11, -12, -500, 1, 500])).tolist()
    [0, 1, 7, 8, 8, 9, 15, 17, 31]
    """
    exact, half = BUCKETS // 4, BUCKETS // 2
    steps = np.abs(distance)
    far = exact + np.floor(2 * np.log2(np.maximum(steps, exact) / exact)).astype(np.int64)
    return np.where(steps < exact, steps, np.minimum(far, half - 1)) + half * (distance > 0)


def gelu(x: Vectors) -> Vectors:
    """x Phi(x), in place, as max(x, 0) - |x| Phi(-|x|), where Phi(-|x|) = erfc(|x| / sqrt(2)) / 2.

    >>> [round(float(number), 4) for number in gelu(np.array([-1.0, 0.0, 2.0], dtype=np.float32))]
    [-0.1587, 0.0, 1.9545]
    """
    slope, *coefficients = (np.float32(number) for number in _ERFC)
    slope *= np.float32(0.5**0.5)
    half = np.float32(0.5)
    for start in range(0, len(x), GELU_ROWS):
        rows = x[start : start + GELU_ROWS]
        size = np.abs(rows)
        t = 1 / (1 + slope * size)
        tail = np.zeros_like(t)
        for coefficient in reversed(coefficients):
            tail += coefficient
            tail *= t
        tail *= np.exp(-half * np.square(size))
        tail *= half * size
        np.maximum(rows, 0, out=rows)
        rows -= tail
    return x
