"""The torch backend: every encoder and decoder of transformers, on any device, trainable."""

import copy
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from threading import Barrier
from typing import Any, Self, TypeVar

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from relvec.errors import RelvecError
from relvec.model.backends import STATIC_KIND
from relvec.model.card import model_card
from relvec.model.loading import load_config, load_tokenizer, load_weights, pick_device, token_limit
from relvec.model.merging import merge_adapter
from relvec.model.quantization import INT8_WEIGHTS, quantized_tensors
from relvec.model.relation_model import BATCH_SIZE, PromptedRelBERT, RelBERT, batches_by_length, no_encoder
from relvec.model.saving import atomic_model_folder, check_finite, save_encoder, save_tokenizer
from relvec.model.stored import StoredModel
from relvec.model.token_tree import token_trees, tree_inputs
from relvec.pairs import Pair
from relvec.pooling import pool
from relvec.prompts import DEFAULT_TEMPLATE, Template
from relvec.similarity import Vectors

# Decoders that take a position and a mask for each token, and in which every token sees all before it.
READ_AS_TREES = frozenset(("gemma", "llama", "mistral", "phi3", "qwen2", "qwen3"))

Tokens = TypeVar("Tokens")
Result = TypeVar("Result")


class TorchRelBERT(PromptedRelBERT):
    """A RelBERT made of an encoder and a tokenizer of transformers.

    >>> model = TorchRelBERT.from_pretrained(tiny_model)
    >>> other = TorchRelBERT(model.encoder, model.tokenizer, template=4, pooling="average_no_mask")
    >>> other.encode(("Paris", "France")).shape
    (16,)
    """

    backend = "torch"

    def __init__(
        self,
        encoder: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        template: int | str | Template = DEFAULT_TEMPLATE,
        pooling: str = "average",
        *,
        name: str = "relvec-model",
        training_record: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            tokenizer,
            template,
            pooling,
            name=name,
            kind=encoder.config.model_type,
            max_tokens=token_limit(encoder, tokenizer),
            training_record=training_record,
        )
        self.encoder = encoder
        self.tokenizer: PreTrainedTokenizerBase = tokenizer
        self._mask_token = -1 if tokenizer.mask_token_id is None else tokenizer.mask_token_id
        # A decoder would keep what only the writing of further text reads.
        self._options = {"use_cache": False} if "use_cache" in signature(encoder.forward).parameters else {}

    @classmethod
    def open(
        cls, stored: StoredModel, *, template: Any = None, pooling: str | None = None, device: Any, dtype: Any
    ) -> Self:
        if dtype == "int8":
            raise RelvecError("The torch backend has no int8; use the onnx backend, or bfloat16.")
        chosen_device = pick_device(device)
        chosen_dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
        config = load_config(stored.folder, **stored.changes)
        encoder, tokenizer = load_weights(stored.base, config), load_tokenizer(stored.base)
        for adapter in reversed(stored.adapters):
            merge_adapter(encoder, adapter)
        torch.nn.Module.to(encoder, chosen_device, chosen_dtype)
        return cls(
            encoder,
            tokenizer,
            stored.template if template is None else template,
            pooling or stored.pooling,
            name=stored.name,
            training_record=stored.training_record,
        )

    @classmethod
    def of(cls, model: RelBERT) -> "TorchRelBERT":
        """The model itself, if its weights are torch's and can be trained."""
        if model.kind == STATIC_KIND:
            raise no_encoder(model.name)
        if not isinstance(model, TorchRelBERT):
            raise RelvecError(f"The {model.backend} backend only encodes; load {model.name} with backend='torch'.")
        return model

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the published format: a plain encoder folder with `relbert_config` in config.json, and a card."""
        self.encoder.config.relbert_config = self._relbert_config()
        with atomic_model_folder(folder, model_card(self)) as partial:
            save_encoder(self.encoder, self.tokenizer, partial)

    def save_int8(self, folder: str | Path) -> None:
        """Write the whole model with weights of one byte: a quarter of the size, for relvec alone."""
        from safetensors.numpy import save_file

        check_finite(self.encoder.state_dict())
        weights = {name: weight.detach().float().cpu().numpy() for name, weight in self.encoder.named_parameters()}
        with atomic_model_folder(folder, model_card(self), self.full_config()) as partial:
            save_file(quantized_tensors(weights), partial / INT8_WEIGHTS)
            save_tokenizer(self.tokenizer, partial)

    def full_config(self) -> dict[str, Any]:
        """The encoder's configuration with the prompt and pooling in it, as config.json holds it."""
        config = self.encoder.config.to_dict()
        config.pop("_name_or_path", None)  # where the base lay on this machine is nobody's business
        return {**config, "relbert_config": self._relbert_config()}

    def _relbert_config(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"aggregation_mode": self.pooling, **self.template.to_config()}
        return {**settings, "training": copy.deepcopy(self.training_record)} if self.training_record else settings

    @property
    def dim(self) -> int:
        return int(self.encoder.config.hidden_size)

    @property
    def device(self) -> torch.device:
        return self.encoder.device

    @property
    def dtype(self) -> torch.dtype:
        return self.encoder.dtype

    @property
    def workers(self) -> int:
        return 1  # torch has threads of its own, which also share a single pair

    @property
    def fingerprint(self) -> str:
        decisive = self._beside_the_weights(self.tokenizer.get_vocab(), self.encoder.config.to_dict())
        digest = hashlib.sha256(decisive.encode())
        for name, weight in sorted(self.encoder.state_dict().items()):
            digest.update(name.encode())
            digest.update(weight.detach().cpu().contiguous().view(torch.uint8).numpy())
        return digest.hexdigest()

    def state(self) -> Any:
        weights = self.encoder.parameters()
        changes = [(weight.data_ptr(), 0 if weight.is_inference() else weight._version) for weight in weights]
        return self.pooling, changes

    @contextmanager
    def _encoding(self) -> Iterator[None]:
        """Without dropout."""
        was_training = self.encoder.training
        self.encoder.eval()
        try:
            yield
        finally:
            self.encoder.train(was_training)

    def encoding_order(self, pairs: Sequence[Pair]) -> list[int]:
        if not self.shares_prefixes:
            return super().encoding_order(pairs)
        token_ids = self.token_ids(pairs, truncate=True)
        return sorted(range(len(pairs)), key=lambda row: token_ids[row])

    @property
    def shares_prefixes(self) -> bool:
        """Whether what several pairs begin with, such as a common head, is read once."""
        config = self.encoder.config
        sees_all = not getattr(config, "sliding_window", None) and config.model_type in READ_AS_TREES
        return self.pooling == "last" and sees_all and self.device.type == "cpu"

    def _batches(self, token_ids: Sequence[Sequence[int]], batch_size: int) -> list[list[int]]:
        if not self.shares_prefixes:
            return super()._batches(token_ids, batch_size)
        return [list(tree.ends) for tree in token_trees(token_ids)]

    def vectors_of_batches(self, batches: Sequence[Sequence[Sequence[int]]]) -> Iterable[Vectors]:
        if self.device.type == "cpu":
            return in_parallel_threads(self._vectors_of_batch, batches)
        return super().vectors_of_batches(batches)

    @torch.inference_mode()
    def _vectors_of_batch(self, token_ids: Sequence[Sequence[int]]) -> Vectors:
        read = self._vectors_of_tree if self.shares_prefixes else self.vectors_of_tokens
        return read(token_ids).float().cpu().numpy()

    def _vectors_of_tree(self, token_ids: Sequence[Sequence[int]]) -> torch.Tensor:
        """One batch through a decoder as one tree of tokens, each text read at its last token: [batch, dim]."""
        (tree,) = token_trees(token_ids, most_tokens=sum(map(len, token_ids)))
        output = self.encoder(**tree_inputs(tree, range(len(tree.tokens)), self.device, self.dtype)).last_hidden_state
        return output[0, [tree.ends[row] for row in range(len(token_ids))]]

    def vectors_of_tokens(self, token_ids: Sequence[Sequence[int]]) -> torch.Tensor:
        """One batch through language model and pooling: [batch, dim], differentiable outside inference mode."""
        ids, is_token = self._padded(token_ids)
        is_full = len({len(tokens) for tokens in token_ids}) == 1  # then no mask need be added in every layer
        mask = None if is_full else is_token.long()
        output = self.encoder(input_ids=ids, attention_mask=mask, **self._options).last_hidden_state
        return pool(self.pooling, output, is_token, ids == self._mask_token)

    def vectors_by_length(self, token_ids: Sequence[Sequence[int]]) -> torch.Tensor:
        """As `vectors_of_tokens`, but pairs of like length go together: one long pair then pads only a few."""
        groups = list(batches_by_length([len(tokens) for tokens in token_ids], BATCH_SIZE))
        vectors = torch.cat([self.vectors_of_tokens([token_ids[row] for row in rows]) for rows in groups])
        order = torch.tensor([row for rows in groups for row in rows], device=vectors.device)
        return vectors[order.argsort()]

    def _padded(self, token_ids: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        longest = max(map(len, token_ids))
        ids = np.full((len(token_ids), longest), self.tokenizer.pad_token_id, dtype=np.int64)
        is_token = np.zeros(ids.shape, dtype=bool)
        for row, tokens in enumerate(token_ids):
            ids[row, : len(tokens)] = tokens
            is_token[row, : len(tokens)] = True
        return torch.from_numpy(ids).to(self.device), torch.from_numpy(is_token).to(self.device)


def in_parallel_threads(encode: Callable[[Tokens], Result], batches: Sequence[Tokens]) -> Iterator[Result]:
    """The result of each batch, in order; each thread has a batch, which is faster than all threads in every product.

    With fewer batches than threads, torch shares out each product as it would.

    >>> list(in_parallel_threads(len, ["a", "bc"]))
    [1, 2]
    """
    threads = torch.get_num_threads()
    if threads < 2 or len(batches) < threads or torch.is_autocast_enabled("cpu"):  # which threads do not take over
        yield from map(encode, batches)
        return
    all_started = Barrier(threads + 1)

    def start() -> None:
        torch.get_num_threads()  # a thread that has not asked yet would later begin with what all begin with
        torch.set_num_threads(1)
        all_started.wait()

    with ThreadPoolExecutor(threads, initializer=start) as threads_of_one:
        results = threads_of_one.map(encode, batches)
        all_started.wait()
        torch.set_num_threads(threads)  # what a thread sets for itself is also what threads to come begin with
        yield from results
