"""QuickModel: a relation model whose network is computed by numpy."""

import hashlib
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np

from relvec.errors import RelvecError
from relvec.hub.models import adapters_and_base
from relvec.model.numpy_backend import NotQuickError
from relvec.model.numpy_backend.network import Network
from relvec.model.numpy_backend.tokenizer import QuickTokenizer
from relvec.model.numpy_backend.weights import Weights
from relvec.model.relation_model import RelationModel
from relvec.pooling import POOLINGS
from relvec.prompts import DEFAULT_TEMPLATE, Template
from relvec.similarity import Vectors

PAIRS_PER_THREAD = 8  # with fewer, reading the weights takes most of the time


class QuickModel(RelationModel):
    """Gives the vectors that `relvec.RelBERT` gives; those of a few pairs in less time than torch takes to load.

    It cannot be trained or saved. Its fingerprint is another than RelBERT's, which sees adapters merged.
    """

    def __init__(
        self,
        network: Network,
        tokenizer: QuickTokenizer,
        template: int | str | Template,
        pooling: str,
        *,
        name: str,
        weights: Weights,
        config: dict[str, Any],
    ) -> None:
        max_tokens = min(network.max_tokens, tokenizer.model_max_length)
        super().__init__(tokenizer, template, pooling, name=name, max_tokens=max_tokens)
        self._network = network
        self._tokenizer = tokenizer
        self._weights = weights
        self._config = config

    @classmethod
    def from_folder(cls, folder: Path, *, name: str) -> Self:
        """Open a model's folder, or raise `NotQuickError`: for another architecture, and for whatever is broken."""
        try:
            return cls._opened(folder, name)
        except RelvecError:
            raise
        except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
            raise NotQuickError(str(error)) from error

    @classmethod
    def _opened(cls, folder: Path, name: str) -> Self:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        adapters, base = adapters_and_base(folder)
        weights, tokenizer = Weights(base, adapters), QuickTokenizer(base)
        network = Network(config, weights, tokenizer.pad_token_id)
        settings = config.get("relbert_config") or {}
        template = Template.from_config(settings) if "template" in settings else DEFAULT_TEMPLATE
        pooling = settings.get("aggregation_mode", "average")
        return cls(network, tokenizer, template, pooling, name=name, weights=weights, config=config)

    @property
    def dim(self) -> int:
        return self._network.dim

    @property
    def fingerprint(self) -> str:
        decisive = self._beside_the_weights(self._tokenizer.get_vocab(), self._config)
        return hashlib.sha256(f"{decisive} {self._weights.checksum()}".encode()).hexdigest()

    def _vectors_of_batch(self, token_ids: Sequence[Sequence[int]]) -> Vectors:
        """Threads share the pairs, not each matrix product: on a busy machine they would wait for each other there."""
        threads = min(os.cpu_count() or 1, len(token_ids) // PAIRS_PER_THREAD)
        if threads < 2:
            return self._vectors_of_share(token_ids)
        vectors = np.empty((len(token_ids), self.dim), dtype=np.float32)
        with ThreadPoolExecutor(threads) as pool:
            shares = [token_ids[first::threads] for first in range(threads)]
            for first, share in enumerate(pool.map(self._vectors_of_share, shares)):
                vectors[first::threads] = share
        return vectors

    def _vectors_of_share(self, token_ids: Sequence[Sequence[int]]) -> Vectors:
        vectors = np.empty((len(token_ids), self.dim), dtype=np.float32)
        of_length: dict[int, list[int]] = {}
        for row, tokens in enumerate(token_ids):
            of_length.setdefault(len(tokens), []).append(row)
        groups = [np.array([token_ids[row] for row in rows]) for rows in of_length.values()]
        for rows, ids, output in zip(of_length.values(), groups, self._network(groups), strict=True):
            counted = POOLINGS[self.pooling](np.ones(ids.shape, dtype=bool), ids == self._tokenizer.mask_token_id)
            weights = counted / counted.sum(axis=1, keepdims=True, dtype=np.float32)
            vectors[rows] = (weights[:, None] @ output)[:, 0]
        return vectors
