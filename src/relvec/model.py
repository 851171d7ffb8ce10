"""RelBERT: prompt template + language model + pooling = one relation vector for each pair of words."""

import copy
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from relvec.card import model_card
from relvec.encoders.adapter import adapter_config, is_adapter, merge_adapter
from relvec.encoders.catalog import DEFAULT_MODEL
from relvec.encoders.loading import (
    load_config,
    load_tokenizer,
    load_weights,
    pick_device,
    pick_dtype,
    relbert_config,
    token_limit,
)
from relvec.encoders.resolve import resolve
from relvec.encoders.saving import MODEL_FILES, save_encoder
from relvec.errors import RelvecError
from relvec.files import folder_written_whole
from relvec.pairs import Pair, Prototype, Relation, as_relation, as_relations, as_word, is_single, turned
from relvec.pooling import check_pooling, pool
from relvec.progress import progress_bar
from relvec.prompts import DEFAULT_TEMPLATE, Template, TokenizedTemplate
from relvec.similarity import Ranked, Scoring, Solution, Vectors, check_scoring, cosine, normalized, ranked

BATCH_SIZE = 64


class RelBERT:
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
        self.encoder = encoder
        self.tokenizer = tokenizer
        self.template = Template.of(template)
        self.pooling = check_pooling(pooling)
        self.name = name
        self.training_record = training_record or {}
        if self.pooling == "mask" and not self.template.has_mask:
            raise RelvecError(f"Mask pooling needs a <mask> in the template {self.template.text!r}; write one in it.")
        self._prompt = TokenizedTemplate(self.template, tokenizer)
        self.max_tokens = token_limit(encoder, tokenizer)

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
        if target.is_file():
            raise RelvecError(f"{target} is a file; choose a folder to save the model in.")
        self.encoder.config.relbert_config = self._relbert_config()
        with folder_written_whole(target, stale=MODEL_FILES) as partial:
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
    def dim(self) -> int:
        """The length of a relation vector."""
        return int(self.encoder.config.hidden_size)

    @property
    def device(self) -> torch.device:
        return self.encoder.device

    @property
    def dtype(self) -> torch.dtype:
        return self.encoder.dtype

    @property
    def fingerprint(self) -> str:
        """A checksum of all that decides the vectors: prompt, pooling, vocabulary and weights."""
        vocabulary = sorted(self.tokenizer.get_vocab().items())
        digest = hashlib.sha256(repr((self.template.to_config(), self.pooling, vocabulary)).encode())
        for name, weight in sorted(self.encoder.state_dict().items()):
            digest.update(name.encode())
            digest.update(weight.detach().cpu().contiguous().view(torch.uint8).numpy())
        return digest.hexdigest()

    def encode(
        self,
        pairs: Any,
        *,
        batch_size: int = BATCH_SIZE,
        normalize: bool = False,
        truncate: bool = False,
        show_progress: bool | None = False,
    ) -> Vectors:
        """Relation vectors of pairs: float32, one row a pair in the given order; a lone pair gives a 1-d vector.

        `pairs` may be a list, a generator, an array, a data frame, or prototypes among pairs. Each distinct
        pair is encoded once. A pair too long for the model is an error unless `truncate` cuts it.

        >>> model = RelBERT.from_pretrained(tiny_model)
        >>> model.encode([("Paris", "France"), ("Tokyo", "Japan")], normalize=True).shape
        (2, 16)
        """
        if batch_size < 1:
            raise RelvecError(f"A batch of {batch_size} pairs is impossible; use 1 or more.")
        single = is_single(pairs)
        relations = [as_relation(pairs)] if single else as_relations(pairs)
        distinct = list(dict.fromkeys(pair for relation in relations for pair in _pairs_of(relation)))
        encoded = self._encode_distinct(distinct, batch_size, truncate, show_progress)
        row_of = {pair: row for row, pair in enumerate(distinct)}
        if any(isinstance(relation, Prototype) for relation in relations):
            rows = [encoded[[row_of[pair] for pair in _pairs_of(relation)]].mean(axis=0) for relation in relations]
            vectors = np.stack(rows)
        else:
            vectors = encoded[[row_of[pair] for relation in relations for pair in _pairs_of(relation)]]
        if normalize:
            vectors = normalized(vectors)
        return vectors[0] if single else vectors

    def _encode_distinct(
        self, pairs: list[Pair], batch_size: int, truncate: bool, show_progress: bool | None
    ) -> Vectors:
        vectors = np.empty((len(pairs), self.dim), dtype=np.float32)
        token_ids = self.token_ids(pairs, truncate)
        lengths = [len(tokens) for tokens in token_ids]
        was_training = self.encoder.training
        self.encoder.eval()
        try:
            with progress_bar(len(pairs), "Encoding", show=show_progress) as bar, torch.inference_mode():
                for rows in batches_by_length(lengths, batch_size):
                    batch = self.vectors_of_tokens([token_ids[row] for row in rows])
                    vectors[rows] = batch.float().cpu().numpy()
                    bar.update(len(rows))
        finally:
            self.encoder.train(was_training)
        return vectors

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

    def token_ids(self, pairs: Sequence[Pair], truncate: bool = False) -> list[list[int]]:
        """The tokens of each pair in its prompt, special tokens included."""
        token_ids = self._prompt(pairs)
        for row, tokens in enumerate(token_ids):
            if len(tokens) <= self.max_tokens:
                continue
            if not truncate:
                head, tail = pairs[row]
                raise RelvecError(
                    f"The pair {_short(head)}:{_short(tail)} makes {len(tokens)} tokens where the model takes "
                    f"{self.max_tokens}; shorten it, or pass truncate=True (--truncate)."
                )
            token_ids[row] = self._truncated(pairs[row])
        return token_ids

    def _truncated(self, pair: Pair) -> list[int]:
        """The prompt with both words cut to the longest length that fits; the prompt itself stays whole."""
        fits, too_long = 0, max(map(len, pair))
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            if len(self._prompt([_cut(pair, middle)])[0]) <= self.max_tokens:
                fits = middle
            else:
                too_long = middle
        if fits == 0:
            raise RelvecError(f"The template alone is longer than {self.max_tokens} tokens; use a shorter template.")
        return self._prompt([_cut(pair, fits)])[0]

    def similarity(self, left: Any, right: Any) -> Any:
        """Cosine of relation vectors: a float for two pairs, a row for a pair and a list, a matrix for two lists.

        >>> model = RelBERT.from_pretrained(tiny_model)
        >>> round(model.similarity(("Paris", "France"), ("Paris", "France")), 3)
        1.0
        >>> model.similarity([("a", "b"), ("c", "d")], [("e", "f")]).shape
        (2, 1)
        """
        lefts, rights = _as_list(left), _as_list(right)
        vectors = self.encode([*lefts, *rights])
        scores = cosine(vectors[: len(lefts)], vectors[len(lefts) :])
        if is_single(left):
            return float(scores[0, 0]) if is_single(right) else scores[0]
        return scores[:, 0] if is_single(right) else scores

    def rank(
        self, query: Any, candidates: Any, *, top: int | None = None, scoring: Scoring = "forward"
    ) -> list[Ranked[Relation]]:
        """Candidates by falling relational similarity to the query.

        >>> model = RelBERT.from_pretrained(tiny_model)
        >>> model.rank(("Paris", "France"), [("cup", "tea"), ("Paris", "France")])[0].item
        ('Paris', 'France')
        """
        options = as_relations(candidates)
        return ranked(options, self._scores(as_relation(query), options, scoring), top)

    def solve(self, stem: Any, choices: Any, *, scoring: Scoring = "forward") -> Solution:
        """Answer an analogy question: which choice is related as the stem is?

        `forward` compares (a, b) with (c, d), as the paper does; `reverse` compares (b, a) with (d, c);
        `bidirectional` takes the mean of both.

        >>> model = RelBERT.from_pretrained(tiny_model)
        >>> model.solve(("Paris", "France"), [("cup", "tea"), ("Paris", "France")], scoring="bidirectional").answer
        1
        """
        options = as_relations(choices)
        if not options:
            raise RelvecError("There is no choice to choose from; give at least one.")
        scores = self._scores(as_relation(stem), options, scoring)
        best = int(np.argmax(scores))
        return Solution(best, options[best], tuple(map(float, scores)))  # type: ignore[arg-type]

    def complete(
        self, a: str, b: str, c: str, candidates: Iterable[str], *, top: int | None = None, scoring: Scoring = "forward"
    ) -> list[Ranked[str]]:
        """Fill a : b :: c : ? from candidate words, best first.

        >>> model = RelBERT.from_pretrained(tiny_model)
        >>> [word for word, _ in model.complete("Paris", "France", "Paris", ["tea", "France"], top=1)]
        ['France']
        """
        words = list(dict.fromkeys(as_word(word) for word in candidates))
        scores = self._scores(as_relation((a, b)), [(as_word(c), word) for word in words], scoring)
        return ranked(words, scores, top)

    @staticmethod
    def prototype(pairs: Any) -> Prototype:
        """The relation of several examples at once, usable wherever a pair is.

        >>> model = RelBERT.from_pretrained(tiny_model)
        >>> capital = model.prototype([("Paris", "France"), ("Tokyo", "Japan")])
        >>> model.encode(capital).shape
        (16,)
        """
        return Prototype(pair for relation in as_relations(pairs) for pair in _pairs_of(relation))

    def _scores(self, query: Relation, options: Sequence[Relation], scoring: str) -> NDArray[np.float32]:
        wanted = check_scoring(scoring)
        relations = [query, *options]
        if wanted != "forward":
            relations += [turned(relation) for relation in relations]
        vectors = self.encode(relations)
        size = len(options) + 1
        directions = [vectors[start : start + size] for start in range(0, len(vectors), size)]
        scores = [cosine(direction[:1], direction[1:])[0] for direction in directions]
        return scores[-1] if wanted == "reverse" else np.mean(scores, axis=0)

    def __sklearn_clone__(self) -> Self:
        return self  # weights are never changed by scikit-learn, so clones share them

    def __repr__(self) -> str:
        kind = self.encoder.config.model_type
        return f"RelBERT({kind}, {self.dim} dimensions, pooling={self.pooling!r}, template={self.template.text!r})"


def _load(
    folder: Path, config: PretrainedConfig, show_progress: bool | None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Encoder and tokenizer of a folder; an adapter is merged onto its base, which may be one itself."""
    if not is_adapter(folder):
        return load_weights(folder, config), load_tokenizer(folder)
    base = resolve(adapter_config(folder)["base_model_name_or_path"], show_progress=show_progress)
    encoder, tokenizer = _load(base, config, show_progress)
    merge_adapter(encoder, folder)
    return encoder, tokenizer


def _pairs_of(relation: Relation) -> tuple[Pair, ...]:
    return relation.pairs if isinstance(relation, Prototype) else (relation,)


def _as_list(items: Any) -> list[Relation]:
    return [as_relation(items)] if is_single(items) else as_relations(items)


def batches_by_length(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """Rows of similar length, the longest first, so that a batch too large for the memory fails at once.

    A batch that is half full ends where the length changes: padding costs more than a smaller batch.
    """
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if len(batch) == size or (2 * len(batch) >= size and lengths[row] != lengths[batch[-1]]):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _cut(pair: Pair, characters: int) -> Pair:
    return pair[0][:characters].rstrip(), pair[1][:characters].rstrip()


def _short(word: str) -> str:
    return word if len(word) <= 40 else f"{word[:40]}..."
