"""Likelihoods of texts under a local language model, causal or masked."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from relvec.baselines.baseline import Likelihood
from relvec.baselines.tree_likelihoods import tree_log_probabilities
from relvec.errors import RelvecError
from relvec.hub.models import resolve
from relvec.io.files import expanded
from relvec.model.loading import load_config, pick_device, token_limit
from relvec.model.relation_model import TOKENIZER_PROBES
from relvec.model.token_tree import TOKENS_PER_TREE, token_trees
from relvec.model.torch_backend import in_parallel_threads
from relvec.progress import progress_bar, quiet_transformers
from relvec.storage.cache import Cache

ModelKind = Literal["causal", "masked"]

TOKENS_PER_BATCH = 1024
TEXTS_PER_STEP = 1024
PROBE_TEXTS = 100

# Settings of a config that change no likelihood.
NOT_DECISIVE = ("_name_or_path", "transformers_version", "architectures", "dtype")


@dataclass(frozen=True)
class _Row:
    """One input of the model: the number of its text, its tokens, the positions to predict, and their tokens."""

    text: int
    tokens: list[int]
    places: list[int]
    targets: list[int]


class LanguageModel:
    """A language model that says how likely texts are.

    A causal model gives log P(x) = sum_t log P(x_t | x_<t). Without a start token the first token is not scored. A
    masked model gives the pseudo-log-likelihood sum_t log P(x_t | x without x_t), each token masked in turn. Values are
    kept in the cache, so each distinct text is scored once.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str,
        is_causal: bool,
        cache_folder: str | Path | None = None,
    ) -> None:
        self.name = name
        self.is_causal = is_causal
        self._model = model.eval()
        self._tokenizer = tokenizer
        encoder: Any = model.base_model
        self._max_tokens = token_limit(encoder, tokenizer)
        self._cache = Cache(f"likelihoods {self.fingerprint}", about=name, folder=cache_folder)

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path,
        *,
        kind: ModelKind | None = None,
        device: str | torch.device | None = None,
        dtype: str = "float32",
        cache_folder: str | Path | None = None,
    ) -> Self:
        """Load a folder, a hub id or a GGUF file. BERT and its like are masked models unless `kind` is causal."""
        path = expanded(model)
        options = {**_LOCAL, "dtype": getattr(torch, dtype)}
        if path.suffix.lower() == ".gguf":
            if kind == "masked":
                raise RelvecError(f"{path} cannot be read as a masked language model; give a folder or a hub id.")
            is_causal = True
            network: PreTrainedModel
            tokenizer: PreTrainedTokenizerBase
            from transformers import GgufConfig

            with _loading(path):
                # Packed weights would compute in float32 whatever the dtype.
                unpacked = {"gguf_file": path.name, "quantization_config": GgufConfig(dequantize=True)}
                network = AutoModelForCausalLM.from_pretrained(path.parent, **unpacked, **options)
                tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name, **_LOCAL)
        else:
            network, tokenizer, is_causal = _load_folder(resolve(model), kind, options)
        torch.nn.Module.to(network, pick_device(device))
        name = path.name.removesuffix(".gguf")
        return cls(network, tokenizer, name=name, is_causal=is_causal, cache_folder=cache_folder)

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of all that decides the likelihoods: kind, tokens, network and weights."""
        tokens = sorted(self._tokenizer.get_vocab().items()), self._rows(["\n".join(pair) for pair in TOKENIZER_PROBES])
        config = self._model.config.to_diff_dict()
        network = [(name, config[name]) for name in sorted(config) if name not in NOT_DECISIVE]
        digest = hashlib.sha256(repr((self.is_causal, tokens, network)).encode())
        for name, weight in sorted(self._model.state_dict().items()):
            digest.update(name.encode())
            digest.update(weight.detach().cpu().contiguous().view(torch.uint8).numpy())
        return digest.hexdigest()

    def likelihoods(self, texts: Sequence[str]) -> list[Likelihood]:
        """One likelihood a text. What the cache lacks is computed and kept step by step, so a killed run resumes."""
        found = self._cache.get_json(texts)
        missing = sorted({text for text in texts if text not in found})  # what begins alike is read together
        with progress_bar(len(missing), f"Reading with {self.name}", unit="text") as bar:
            for start in range(0, len(missing), TEXTS_PER_STEP):
                step = missing[start : start + TEXTS_PER_STEP]
                computed = dict(zip(step, self._computed(step), strict=True))
                self._cache.add_json(computed)
                found |= computed
                bar.update(len(step))
        return [Likelihood(*found[text]) for text in texts]

    def _computed(self, texts: list[str]) -> list[Likelihood]:
        rows = self._rows(texts)
        # Some networks look back at the nearest tokens only, which the mask of a tree does not.
        window = getattr(self._model.config, "sliding_window", None) or TOKENS_PER_TREE
        are_short = all(0 < len(row.tokens) <= min(window, TOKENS_PER_TREE) for row in rows)
        return self._by_trees(rows) if are_short and self._reads_trees else self._by_batches(rows, len(texts))

    @cached_property
    def _reads_trees(self) -> bool:
        """Whether the network takes a position and a mask for each token, and says the same as without."""
        if not self.is_causal:
            return False
        head, tail = TOKENIZER_PROBES[0]  # as many texts as fill a tree: a network may not see far back in one
        rows = self._rows([f"{head} is to {tail} as {number} is to" for number in range(PROBE_TEXTS)])
        try:
            by_trees = self._by_trees(rows)
        except (TypeError, ValueError, RuntimeError):
            return False
        tolerance = 1e-3 if self._model.dtype == torch.float32 else 1e-2
        pairs = zip(by_trees, self._by_batches(rows, len(rows)), strict=True)
        return all(math.isclose(one[0], two[0], rel_tol=tolerance) for one, two in pairs)

    def _by_trees(self, rows: list[_Row]) -> list[Likelihood]:
        trees = list(token_trees([row.tokens for row in rows]))
        read = partial(tree_log_probabilities, self._model)
        by_tree = in_parallel_threads(read, trees) if self._model.device.type == "cpu" else map(read, trees)
        sums = {number: found for each in by_tree for number, found in each.items()}
        return [Likelihood(sums[number], len(row.targets)) for number, row in enumerate(rows)]

    @torch.inference_mode()
    def _by_batches(self, rows: list[_Row], count: int) -> list[Likelihood]:
        sums, counts = np.zeros(count), np.zeros(count, dtype=int)
        for batch in _batches(rows):
            for row, log_probabilities in zip(batch, self._predicted(batch), strict=True):
                sums[row.text] += log_probabilities.sum()
                counts[row.text] += len(row.targets)
        return [Likelihood(float(total), int(each)) for total, each in zip(sums, counts, strict=True)]

    def _rows(self, texts: list[str]) -> list[_Row]:
        return self._causal_rows(texts) if self.is_causal else self._masked_rows(texts)

    def _causal_rows(self, texts: list[str]) -> list[_Row]:
        start = [] if self._tokenizer.bos_token_id is None else [self._tokenizer.bos_token_id]
        encoded = self._tokenizer(texts, add_special_tokens=False).input_ids
        rows = []
        for number, (text, ids) in enumerate(zip(texts, encoded, strict=True)):
            tokens = self._checked(text, start + ids)
            rows.append(_Row(number, tokens, list(range(len(tokens) - 1)), tokens[1:]))
        return rows

    def _masked_rows(self, texts: list[str]) -> list[_Row]:
        encoded = self._tokenizer(texts, return_special_tokens_mask=True)
        rows = []
        special_masks = encoded["special_tokens_mask"]
        for number, (text, ids, is_special) in enumerate(zip(texts, encoded.input_ids, special_masks, strict=True)):
            tokens = self._checked(text, ids)
            for place in (place for place in range(len(tokens)) if not is_special[place]):
                masked = [*tokens[:place], self._tokenizer.mask_token_id, *tokens[place + 1 :]]
                rows.append(_Row(number, masked, [place], [tokens[place]]))
        return rows

    def _checked(self, text: str, tokens: list[int]) -> list[int]:
        if len(tokens) > self._max_tokens:
            raise RelvecError(
                f"The text {text[:40]!r}... makes {len(tokens)} tokens where {self.name} takes {self._max_tokens}; "
                "shorten it, or give fewer examples."
            )
        return tokens

    def _predicted(self, batch: list[_Row]) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
        """The log-probabilities of each row's targets."""
        longest = max(len(row.tokens) for row in batch)
        padding = self._tokenizer.pad_token_id or 0
        ids = np.full((len(batch), longest), padding, dtype=np.int64)
        is_token = np.zeros(ids.shape, dtype=np.int64)
        for number, row in enumerate(batch):
            ids[number, : len(row.tokens)] = row.tokens
            is_token[number, : len(row.tokens)] = 1
        device = self._model.device
        logits = self._model(
            input_ids=torch.from_numpy(ids).to(device), attention_mask=torch.from_numpy(is_token).to(device)
        ).logits
        lengths = [len(row.places) for row in batch]
        numbers = torch.arange(len(batch), device=device).repeat_interleave(torch.tensor(lengths, device=device))
        places = torch.tensor([place for row in batch for place in row.places], dtype=torch.long, device=device)
        targets = torch.tensor([target for row in batch for target in row.targets], dtype=torch.long, device=device)
        # Only where a token is predicted: the other logits need no normalising.
        log_probabilities = torch.log_softmax(logits[numbers, places].float(), dim=-1)
        found = log_probabilities.gather(1, targets[:, None])[:, 0].double().cpu().numpy()
        return np.split(found, np.cumsum(lengths)[:-1])


def _batches(rows: list[_Row]) -> Iterator[list[_Row]]:
    """Rows of similar length, as many as the padded batch may hold tokens, at least one."""
    batch: list[_Row] = []
    for row in sorted(rows, key=lambda row: -len(row.tokens)):
        if batch and (len(batch) + 1) * len(batch[0].tokens) > TOKENS_PER_BATCH:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _load_folder(
    folder: Path, kind: ModelKind | None, options: dict[str, Any]
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, bool]:
    config = load_config(folder)
    is_causal = kind == "causal" or (kind is None and config.model_type not in MODEL_FOR_MASKED_LM_MAPPING_NAMES)
    if is_causal and config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        config.is_decoder = True  # else it would look at what comes after a token
    auto: Any = AutoModelForCausalLM if is_causal else AutoModelForMaskedLM
    with _loading(folder):
        model, report = auto.from_pretrained(
            folder, config=config, use_safetensors=True, output_loading_info=True, **options
        )
        tokenizer = AutoTokenizer.from_pretrained(folder, **_LOCAL)
    if report["missing_keys"]:
        missing = min(report["missing_keys"])
        raise RelvecError(f"The weights in {folder} lack {missing}, so it predicts no words; use a language model.")
    return model, tokenizer, is_causal


_LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}


@contextmanager
def _loading(path: Path) -> Iterator[None]:
    try:
        with quiet_transformers():
            yield
    except Exception as error:  # safetensors, torch and tokenizers each have their own errors for a broken file
        reason = " ".join(str(error).split()) or type(error).__name__
        raise RelvecError(f"{path} cannot be loaded as a language model ({reason}); check its files.") from error
