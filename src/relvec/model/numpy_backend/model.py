"""The numpy backend: relation vectors without torch and transformers."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any, Self

import numpy as np

from relvec.errors import RelvecError
from relvec.model.backends import UnsupportedModelError
from relvec.model.numpy_backend.tokenizer import NumpyTokenizer
from relvec.model.numpy_backend.transformer import ARCHITECTURES, Network, TokenArray
from relvec.model.numpy_backend.weights import Weights
from relvec.model.relation_model import PromptedRelBERT
from relvec.model.stored import StoredModel
from relvec.model.threads import one_blas_thread, thread_count
from relvec.pooling import POOLINGS
from relvec.prompts import Template
from relvec.similarity import Vectors

PAIRS_PER_THREAD = 8  # with fewer, reading the weights takes most of the time


class NumpyRelBERT(PromptedRelBERT):
    """A RelBERT that gives the vectors of the torch backend; those of a few pairs before torch would be imported.

    It cannot be trained or saved. Its fingerprint is not that of the torch backend, which sees adapters merged.
    """

    backend = "numpy"
    dtypes: tuple[str, ...] = ("float32",)

    def __init__(self, stored: StoredModel, template: int | str | Template, pooling: str, dtype: str) -> None:
        self.tokenizer: NumpyTokenizer = NumpyTokenizer(stored.base)
        self._weights = Weights(stored.base, stored.adapters)
        self._network = Network(stored.config, self._weights, self.tokenizer.pad_token_id)
        self._outputs: Callable[[Sequence[TokenArray]], list[Vectors]] = self._network
        self._config = stored.config
        super().__init__(
            self.tokenizer,
            template,
            pooling,
            name=stored.name,
            kind=stored.kind,
            max_tokens=min(self._network.max_tokens, self.tokenizer.model_max_length),
            training_record=stored.training_record,
        )

    @classmethod
    def open(
        cls, stored: StoredModel, *, template: Any = None, pooling: str | None = None, device: Any, dtype: Any
    ) -> Self:
        if str(device or "cpu") != "cpu" or dtype not in cls.dtypes:
            has = f"{' and '.join(cls.dtypes)} on the CPU only, not {dtype} on {device or 'the CPU'}"
            remedy = "use int8 with the onnx backend, else the torch backend (pip install 'relvec[torch]')"
            raise RelvecError(f"The {cls.backend} backend has {has}; {remedy}.")
        if stored.kind not in ARCHITECTURES:
            raise UnsupportedModelError(f"it knows {' and '.join(ARCHITECTURES)}, not {stored.kind}")
        try:
            return cls(stored, stored.template if template is None else template, pooling or stored.pooling, dtype)
        except RelvecError:
            raise
        except Exception as error:  # torch may read the folder, or say what is wrong with it
            raise UnsupportedModelError(f"its files cannot be used: {error}") from error

    @property
    def dim(self) -> int:
        return self._network.dim

    @property
    def fingerprint(self) -> str:
        decisive = self._beside_the_weights(self.tokenizer.get_vocab(), self._config)
        layers = len(self._network.layers)
        unused = f" {layers} layers" if self._weights.has_layer(layers) else ""
        return hashlib.sha256(f"{decisive} {self._weights.checksum()}{unused}".encode()).hexdigest()

    def _encoding(self) -> AbstractContextManager[Any]:
        return one_blas_thread

    def vectors_of_batches(self, batches: Sequence[Sequence[Sequence[int]]]) -> Iterable[Vectors]:
        """Threads have a batch each, or a share of one."""
        threads = thread_count()
        if threads < 2 or len(batches) < threads:
            return map(self._vectors_of_batch, batches)
        return self._in_threads(threads, batches)

    def _in_threads(self, threads: int, batches: Sequence[Sequence[Sequence[int]]]) -> Iterator[Vectors]:
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(self._vectors_of_share, batches)

    def _vectors_of_batch(self, token_ids: Sequence[Sequence[int]]) -> Vectors:
        threads = min(thread_count(), len(token_ids) // PAIRS_PER_THREAD)
        if threads < 2:
            return self._vectors_of_share(token_ids)
        vectors = np.empty((len(token_ids), self.dim), dtype=np.float32)
        shares = [token_ids[first::threads] for first in range(threads)]
        for first, share in enumerate(self._in_threads(threads, shares)):
            vectors[first::threads] = share
        return vectors

    def _vectors_of_share(self, token_ids: Sequence[Sequence[int]]) -> Vectors:
        vectors = np.empty((len(token_ids), self.dim), dtype=np.float32)
        of_length: dict[int, list[int]] = {}
        for row, tokens in enumerate(token_ids):
            of_length.setdefault(len(tokens), []).append(row)
        groups = [np.array([token_ids[row] for row in rows]) for rows in of_length.values()]
        for rows, ids, output in zip(of_length.values(), groups, self._outputs(groups), strict=True):
            counted = POOLINGS[self.pooling].counts(np.ones(ids.shape, dtype=bool), ids == self.tokenizer.mask_token_id)
            weights = counted / counted.sum(axis=1, keepdims=True, dtype=np.float32)
            vectors[rows] = (weights[:, None] @ output)[:, 0]
        return vectors
