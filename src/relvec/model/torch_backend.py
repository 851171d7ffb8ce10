"""RelBERT: prompt template + language model + pooling = one relation vector for each pair of words."""

import copy
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from relvec.hub.catalogue import DEFAULT_MODEL
from relvec.hub.models import adapters_and_base, resolve
from relvec.io.files import folder_written_whole
from relvec.model.adapter import merge_adapter
from relvec.model.card import model_card
from relvec.model.loading import (
    load_config,
    load_tokenizer,
    load_weights,
    pick_device,
    pick_dtype,
    relbert_config,
    token_limit,
)
from relvec.model.parallel_batches import side_by_side
from relvec.model.relation_model import BATCH_SIZE, RelationModel, batches_by_length
from relvec.model.saving import CONFIGS, MODEL_FILES, check_output, save_encoder
from relvec.pooling import pool
from relvec.prompts import DEFAULT_TEMPLATE, Template
from relvec.similarity import Vectors

__all__ = ["BATCH_SIZE", "RelBERT", "batches_by_length"]


class RelBERT(RelationModel):
    """Turns pairs of words into vectors of their relation.

    >>> model = RelBERT.from_pretrained(tiny_model)
    >>> model.encode(("Paris", "France")).shape
    (16,)
    >>> model
    RelBERT(roberta, 16 dimensions, pooling='average', template='[h] is the <mask> of [t]')
    """

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
        super().__init__(tokenizer, template, pooling, name=name, max_tokens=token_limit(encoder, tokenizer))
        self.encoder = encoder
        self.tokenizer = tokenizer
        self.training_record = training_record or {}

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path = DEFAULT_MODEL,
        *,
        template: int | str | Template | None = None,
        pooling: str | None = None,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype = "float32",
        revision: str | None = None,
        show_progress: bool | None = None,
    ) -> Self:
        """Load a model by name (`relvec models` lists them), folder or hub id.

        A plain encoder that was never tuned on relations gets the paper's template 4 and `average` pooling
        unless told otherwise. Whatever the weights' own type, they are held as `dtype`.

        >>> RelBERT.from_pretrained(tiny_model, pooling="mask").pooling
        'mask'
        """
        chosen_device, chosen_dtype = pick_device(device), pick_dtype(dtype)
        folder = resolve(model, revision, show_progress)
        config = load_config(folder)
        settings = relbert_config(config, folder)
        encoder, tokenizer = _load(folder, config, show_progress)
        if template is None:
            template = Template.from_config(settings) if "template" in settings else DEFAULT_TEMPLATE
        torch.nn.Module.to(encoder, chosen_device, chosen_dtype)
        return cls(
            encoder,
            tokenizer,
            template,
            pooling or settings.get("aggregation_mode", "average"),
            name=Path(model).name,
            training_record=settings.get("training"),
        )

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the published format: a plain encoder folder with `relbert_config` in config.json, and a card."""
        target = Path(folder)
        check_output(target)
        self.encoder.config.relbert_config = self._relbert_config()
        with folder_written_whole(target, stale=MODEL_FILES, first=CONFIGS) as partial:
            save_encoder(self.encoder, self.tokenizer, partial)
            (partial / "README.md").write_text(model_card(self), encoding="utf-8")

    def push_to_hub(self, repository: str, *, private: bool = False, token: str | None = None) -> str:
        """Upload the saved form of this model to the hub and return its address."""
        from huggingface_hub import HfApi

        api = HfApi(token=token)
        api.create_repo(repository, private=private, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            return str(
                api.upload_folder(repo_id=repository, folder_path=folder, commit_message="Upload relation model")
            )

    def full_config(self) -> dict[str, Any]:
        """The encoder's configuration with the prompt and pooling in it, as config.json holds it."""
        config = self.encoder.config.to_dict()
        config.pop("_name_or_path", None)  # where the base lay on this machine is nobody's business
        return {**config, "relbert_config": self._relbert_config()}

    def _relbert_config(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"aggregation_mode": self.pooling, **self.template.to_config()}
        return {**settings, "training": copy.deepcopy(self.training_record)} if self.training_record else settings

    @property
    def language_model(self) -> str:
        """What all training started from, also of a model trained from another; empty where nobody wrote it down."""
        return str(self.training_record.get("language_model") or self.training_record.get("base", ""))

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

    def vectors_of_batches(self, batches: Sequence[Sequence[Sequence[int]]]) -> Iterable[Vectors]:
        if self.device.type == "cpu":
            return side_by_side(self._vectors_of_batch, batches)
        return super().vectors_of_batches(batches)

    @torch.inference_mode()
    def _vectors_of_batch(self, token_ids: Sequence[Sequence[int]]) -> Vectors:
        return self.vectors_of_tokens(token_ids).float().cpu().numpy()

    def vectors_of_tokens(self, token_ids: Sequence[Sequence[int]]) -> torch.Tensor:
        """One batch through language model and pooling: [batch, dim], differentiable outside inference mode."""
        ids, is_token = self._padded(token_ids)
        is_full = len({len(tokens) for tokens in token_ids}) == 1  # then no mask need be added in every layer
        output = self.encoder(input_ids=ids, attention_mask=None if is_full else is_token.long()).last_hidden_state
        return pool(self.pooling, output, is_token, ids == self.tokenizer.mask_token_id)

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

    def __sklearn_clone__(self) -> Self:
        return self  # weights are never changed by scikit-learn, so clones share them

    def __repr__(self) -> str:
        kind = self.encoder.config.model_type
        return f"RelBERT({kind}, {self.dim} dimensions, pooling={self.pooling!r}, template={self.template.text!r})"


def _load(
    folder: Path, config: PretrainedConfig, show_progress: bool | None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Encoder and tokenizer of a folder; an adapter is merged onto its base, which may be one itself."""
    adapters, base = adapters_and_base(folder, show_progress)
    encoder, tokenizer = load_weights(base, config), load_tokenizer(base)
    for adapter in reversed(adapters):
        merge_adapter(encoder, adapter)
    return encoder, tokenizer
