"""The onnx backend: the numpy backend with its network in ONNX Runtime."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from relvec.errors import RelvecError
from relvec.io.files import atomic_write, checksum
from relvec.model.numpy_backend.model import NumpyRelBERT
from relvec.model.numpy_backend.transformer import TokenArray
from relvec.model.onnx_backend.graph import HIDDEN, INPUTS, onnx_model, products_of_bytes
from relvec.model.onnx_backend.smoothing import SAMPLE, smoothing
from relvec.model.stored import StoredModel
from relvec.prompts import Template
from relvec.similarity import Vectors
from relvec.storage.cache import cache_folder
from relvec.storage.lock import output_lock

GRAPH_VERSION = 2  # another graph of the same weights has other last digits


class OnnxRelBERT(NumpyRelBERT):
    """A RelBERT on ONNX Runtime; the graph of a model is made once and kept in the cache."""

    backend = "onnx"
    dtypes = ("float32", "int8")

    def __init__(self, stored: StoredModel, template: int | str | Template, pooling: str, dtype: str) -> None:
        super().__init__(stored, template, pooling, dtype)
        if dtype == "int8" and not multiplies_bytes_exactly():
            raise RelvecError("This processor rounds sums of int8 products (it has no VNNI); use float32 or bfloat16.")
        self.stored, self.dtype = stored, dtype
        self.graph = self._kept_graph()
        self._session = _session(str(self.graph))
        self._outputs = self._outputs_of_session

    @property
    def fingerprint(self) -> str:
        return f"{super().fingerprint}-onnx-{GRAPH_VERSION}-{self.dtype}"

    def _kept_graph(self) -> Path:
        """The graph in the cache; one that is damaged, or was never finished, is made again."""
        path = cache_folder() / "onnx" / f"{self.fingerprint}.onnx"
        note = path.with_suffix(".sha256")
        if not (path.is_file() and note.is_file() and note.read_text() == checksum(path)):
            with output_lock(path, wait=True):
                with atomic_write(path) as partial:
                    partial.write_bytes(self._made_graph())
                    written = checksum(partial)
                with atomic_write(note) as partial:
                    partial.write_text(written)
        return path

    def _made_graph(self) -> bytes:
        tokens = [np.array([ids]) for ids in self.token_ids(SAMPLE)]
        smooth = smoothing(self._network, tokens) if self.dtype == "int8" else None
        return onnx_model(self._network, self.pooling, self.tokenizer.mask_token_id, smooth)

    def _outputs_of_session(self, groups: Sequence[TokenArray]) -> list[Vectors]:
        """Output vectors [pairs, length, dim] for the tokens [pairs, length] of each group of pairs of one length."""
        inputs = [dict(zip(INPUTS, (ids, np.ones_like(ids)), strict=True)) for ids in groups]
        return [self._session.run([HIDDEN], each)[0] for each in inputs]


def multiplies_bytes_exactly() -> bool:
    """Whether this processor adds products of bytes without loss, which on x86 those without VNNI do not.

    >>> isinstance(multiplies_bytes_exactly(), bool)
    True
    """
    model, expected = products_of_bytes()
    return bool(_session(model).run(None, {})[0].max() == expected)


def _session(model: str | bytes) -> Any:
    """A graph ready to run, with one thread a run: the threads of the numpy backend have a batch each."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
