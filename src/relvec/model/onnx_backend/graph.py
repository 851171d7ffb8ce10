"""The network of the numpy backend, with its pooling, as an ONNX graph.

Inputs are `input_ids` and `attention_mask` [pairs, length]; outputs are `last_hidden_state` [pairs, length, dim] and
`relation_vectors` [pairs, dim]. In between all tokens lie in one matrix.

As int8, each matrix product is one of whole numbers. A row of a weight has a scale, and so has every token, found when
it comes: the vector of a pair does not depend on the pairs beside it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from relvec.model.numpy_backend.transformer import Layer, Network, Norm, position_bucket
from relvec.model.numpy_backend.weights import Linear, Matrix
from relvec.model.onnx_backend.smoothing import Factors
from relvec.model.quantization import LARGEST, quantized

INPUTS = ("input_ids", "attention_mask")
HIDDEN, VECTORS = "last_hidden_state", "relation_vectors"

OPSET = 20
IR_VERSION = 10
MICROSOFT = "com.microsoft"  # ONNX Runtime's own operators

_ZERO = 128  # the byte that stands for 0 in a token's numbers
_NOT_A_TOKEN = -1e4  # added to the attention to padding: nothing is left of it


class Graph:
    """Nodes and constants, gathered one after the other."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, value: Any, dtype: Any = None) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(np.asarray(value, dtype)), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def number(self, value: float) -> str:
        return self.constant(value, np.float32)

    def add(self, operator: str, *inputs: str, domain: str = "", output: str = "", **attributes: Any) -> str:
        """A node with one output, and the name of that output."""
        name = output or f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], domain=domain, **attributes))
        return name


def onnx_model(network: Network, pooling: str, mask_token: int, smooth: Sequence[Factors] | None = None) -> bytes:
    """The content of a model.onnx: float32, or int8 where it is told how to smooth each layer."""
    writer = _Writer(network, smooth)
    hidden = writer.hidden()
    writer.pooled(hidden, pooling, mask_token)
    tokens = [helper.make_tensor_value_info(name, TensorProto.INT64, ["pairs", "length"]) for name in INPUTS]
    outputs = [
        helper.make_tensor_value_info(HIDDEN, TensorProto.FLOAT, ["pairs", "length", network.dim]),
        helper.make_tensor_value_info(VECTORS, TensorProto.FLOAT, ["pairs", network.dim]),
    ]
    return _serialized(writer, tokens, outputs)


def _serialized(graph: Graph, inputs: list[Any], outputs: list[Any]) -> bytes:
    empty = helper.make_graph(graph.nodes, "relvec", inputs, outputs)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(empty, opset_imports=opsets, ir_version=IR_VERSION)
    graph.constants.reverse()
    while graph.constants:  # each is copied and let go, so that the weights are never there twice
        model.graph.initializer.append(graph.constants.pop())
    return bytes(model.SerializeToString())


class _Writer(Graph):
    def __init__(self, network: Network, smooth: Sequence[Factors] | None) -> None:
        super().__init__()
        self._network = network
        self._is_int8 = smooth is not None
        self._smooth = smooth or [Factors(None, None, None)] * len(network.layers)
        self._size = network.dim // network.heads
        self._shape = self.add("Shape", "input_ids")
        self._length = self.add("Shape", "input_ids", start=1, end=2)
        self._by_head = self.add("Concat", self._shape, self.integers(network.heads, self._size), axis=0)
        self._flat = self.integers(-1, network.dim)
        if self._is_int8:
            self._zero = self.constant(_ZERO, np.uint8)
            self._one = self.number(1)

    def hidden(self) -> str:
        network = self._network
        ids = self.add("Reshape", "input_ids", self.integers(-1))
        if self._is_int8:
            numbers, scales = quantized(network.words[:])
            found = self.add("Cast", self.add("Gather", self.constant(numbers), ids), to=TensorProto.FLOAT)
            words = self.add("Mul", found, self.add("Gather", self.constant(scales[:, None]), ids))
        else:
            words = self.add("Gather", self.constant(network.words[:]), ids)
        positions = self.add("Slice", self.constant(network.positions), self.integers(0), self._length)
        whole = self.add("Concat", self._shape, self.integers(network.dim), axis=0)
        placed = self.add("Add", self.add("Reshape", words, whole), positions)
        x = self._norm(network.norm, self.add("Reshape", placed, self._flat))
        bias = self._bias()
        for layer, smooth in zip(network.layers, self._smooth, strict=True):
            x = self._layer(layer, smooth, x, bias)
        return self.add("Reshape", x, whole, output=HIDDEN)

    def pooled(self, hidden: str, pooling: str, mask_token: int) -> None:
        counted = self._counted(pooling, mask_token)
        weights = self.add("Cast", counted, to=TensorProto.FLOAT)
        share = self.add("Div", weights, self.add("ReduceSum", weights, self.integers(1), keepdims=1))
        row = self.add("Unsqueeze", share, self.integers(1))
        self.add("Squeeze", self.add("MatMul", row, hidden), self.integers(1), output=VECTORS)

    def _counted(self, pooling: str, mask_token: int) -> str:
        """Which tokens count, as in `relvec.pooling`."""
        is_token = self.add("Cast", "attention_mask", to=TensorProto.BOOL)
        if pooling == "average":
            return is_token
        if pooling == "last":
            places = self.add("CumSum", "attention_mask", self.constant(1, np.int64))
            count = self.add("ReduceSum", "attention_mask", self.integers(1), keepdims=1)
            return self.add("And", is_token, self.add("Equal", places, count))
        is_mask = self.add("Equal", "input_ids", self.constant(mask_token, np.int64))
        wanted = is_mask if pooling == "mask" else self.add("Not", is_mask)
        return self.add("And", is_token, wanted)

    def _bias(self) -> str:
        """What is added to the attention, [pairs or 1, heads or 1, to token or 1, from token]."""
        is_token = self.add("Cast", "attention_mask", to=TensorProto.FLOAT)
        is_padding = self.add("Sub", self.number(1), is_token)
        bias = self.add("Unsqueeze", self.add("Mul", is_padding, self.number(_NOT_A_TOKEN)), self.integers(1, 2))
        if self._network.nearness is None:
            return bias
        most = self._network.max_tokens - 1
        of_distance = self._network.nearness[position_bucket(np.arange(-most, most + 1))]
        length = self.add("Squeeze", self._length)
        places = self.add("Range", self.constant(0, np.int64), length, self.constant(1, np.int64))
        to, since = (self.add("Unsqueeze", places, self.integers(axis)) for axis in (0, 1))
        distance = self.add("Add", self.add("Sub", to, since), self.constant(most, np.int64))
        nearness = self.add("Gather", self.constant(of_distance), distance)
        return self.add("Add", bias, self.add("Transpose", nearness, perm=[2, 0, 1]))

    def _layer(self, layer: Layer, smooth: Factors, x: str, bias: str) -> str:
        attended = self._linear(self._attended(layer, smooth, x, bias), None, layer.result)
        x = self._norm(layer.attention_norm, self.add("Add", x, attended))
        wide = self.add("Gelu", self._linear(x, smooth.wide, layer.wide))
        return self._norm(layer.output_norm, self.add("Add", x, self._linear(wide, smooth.narrow, layer.narrow)))

    def _attended(self, layer: Layer, smooth: Factors, x: str, bias: str) -> str:
        """softmax(Q K^T / sqrt(d) + bias) V for each head of each pair."""
        parts = self._linear(x, smooth.attention, layer.query, layer.key, layer.value)
        query, key, value = (f"{name}_{len(self.nodes)}" for name in ("query", "key", "value"))
        self.nodes.append(helper.make_node("Split", [parts], [query, key, value], axis=1, num_outputs=3))
        query, value = (self._split_heads(part, [0, 2, 1, 3]) for part in (query, value))
        scores = self.add("MatMul", query, self._split_heads(key, [0, 2, 3, 1]))
        scores = self.add("Add", self.add("Mul", scores, self.number(self._size**-0.5)), bias)
        attended = self.add("MatMul", self.add("Softmax", scores, axis=-1), value)
        return self.add("Reshape", self.add("Transpose", attended, perm=[0, 2, 1, 3]), self._flat)

    def _split_heads(self, part: str, order: list[int]) -> str:
        return self.add("Transpose", self.add("Reshape", part, self._by_head), perm=order)

    def _norm(self, norm: Norm, x: str) -> str:
        scale, shift = self.constant(norm.scale), self.constant(norm.shift)
        return self.add("LayerNormalization", x, scale, shift, axis=-1, epsilon=norm.epsilon)

    def _linear(self, x: str, smooth: Matrix | None, *linears: Linear) -> str:
        """x W^T + b of layers that read the same input, their results side by side."""
        weight = np.concatenate([linear.merged for linear in linears])
        bias = self.constant(np.concatenate([linear.bias for linear in linears]))
        if not self._is_int8:
            return self.add("Gemm", x, self.constant(weight), bias, transB=1)
        if smooth is not None:
            weight, x = weight * smooth, self.add("Mul", x, self.constant(1 / smooth))
        numbers, scales = quantized(weight)
        largest = self.add("ReduceMax", self.add("Abs", x), self.integers(1), keepdims=1)
        scale = self.add("Mul", self.add("Max", largest, self.number(1e-9)), self.number(1 / LARGEST))
        rows = self.add("Squeeze", scale, self.integers(1))
        zeros = self.add("Expand", self._zero, self.add("Shape", rows))
        tokens = self.add("QuantizeLinear", x, rows, zeros, axis=0)
        product = self.add(
            "MatMulIntegerToFloat",
            tokens,
            self.constant(numbers.T),
            self._one,
            self.constant(scales),
            self._zero,
            domain=MICROSOFT,
        )
        return self.add("Add", self.add("Mul", product, scale), bias)


def products_of_bytes() -> tuple[bytes, float]:
    """A graph that adds the largest products of bytes, and the largest number that it should give."""
    count = 64
    graph = Graph()
    largest = (
        graph.constant(np.full((1, count), 255), np.uint8),
        graph.constant(np.full((count, count), LARGEST), np.int8),
    )
    graph.add("MatMulIntegerToFloat", *largest, graph.number(1), graph.number(1), domain=MICROSOFT, output="sums")
    sums = helper.make_tensor_value_info("sums", TensorProto.FLOAT, [1, count])
    return _serialized(graph, [], [sums]), 255.0 * LARGEST * count
