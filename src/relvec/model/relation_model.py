"""RelBERT: prompt template + language model + pooling = one relation vector for each pair of words."""

import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from relvec.errors import RelvecError, UnknownWordsWarning, one_of
from relvec.hub.catalogue import DEFAULT_MODEL
from relvec.model.backends import DTYPES, UnsupportedModelError, Workload, candidates
from relvec.model.threads import thread_count
from relvec.pairs import Pair, Prototype, Relation, as_relation, as_relations, as_word, is_single, reversed_relation
from relvec.pooling import check_pooling
from relvec.progress import progress_bar
from relvec.prompts import Template, TokenizedTemplate
from relvec.prompts.tokenized import PromptTokenizer
from relvec.similarity import Ranked, Scoring, Solution, Vectors, check_scoring, check_top, cosine, normalized, ranked

if TYPE_CHECKING:
    from relvec.model.stored import StoredModel
    from relvec.naming.catalogue import Catalogue, Explanation

BATCH_SIZE = 64

# What else decides the vectors: how words are cut to tokens, and what of the network the weights do not show.
TOKENIZER_PROBES = (("Zürich", "ICE cream"), ("don't", "café-bar 24/7"), ("ﬁre", "東京"))
NOT_IN_WEIGHTS = ("hidden_act", "activation", "num_attention_heads", "n_heads", "layer_norm_eps")


class RelBERT(ABC):
    """Turns pairs of words into vectors of their relation.

    `RelBERT.from_pretrained` gives the subclass of a backend.

    >>> model = RelBERT.from_pretrained(tiny_model)
    >>> model.encode(("Paris", "France")).shape
    (16,)
    >>> model
    RelBERT(roberta, 16 dimensions, pooling='average', template='[h] is the <mask> of [t]')
    """

    backend: str = ""
    max_tokens: int | None = None
    """The most tokens of a prompt with its pair; None where there is no limit."""
    is_cached = True
    """Whether its vectors are worth keeping on disk: those of a static model are made more quickly than read."""

    def __init__(
        self,
        template: int | str | Template,
        pooling: str,
        *,
        name: str,
        kind: str,
        training_record: dict[str, Any] | None = None,
    ) -> None:
        self.template = Template.of(template)
        self.pooling = check_pooling(pooling)
        self.name = name
        self.kind = kind
        self.training_record = training_record or {}
        self._catalogue: tuple[Any, Catalogue | None] | None = None

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path = DEFAULT_MODEL,
        *,
        backend: str = "auto",
        workload: Workload = "batch",
        template: int | str | Template | None = None,
        pooling: str | None = None,
        layers: int = 0,
        device: Any = None,
        dtype: Any = "float32",
        revision: str | None = None,
        show_progress: bool | None = None,
    ) -> Self:
        """Load a model by name (`relvec models` lists them), folder or hub id.

        The backend `auto` is torch where it is installed, else numpy. For a `quick` workload it is numpy where numpy
        knows the model: torch takes longer to import than a few pairs take to encode. To `serve` without a GPU, it is
        onnx where that is installed, else numpy, where they know the model. A `device` or another `dtype` still asks
        for torch, and int8 for onnx. A plain encoder that was never tuned on relations gets the paper's template 4 and
        `average` pooling unless told otherwise. Of its layers, the lowest `layers` are kept, or all. Whatever the type
        of the weights on disk, they are held as `dtype`.

        >>> RelBERT.from_pretrained(tiny_model, pooling="mask").pooling
        'mask'
        """
        from relvec.model.stored import StoredModel

        if isinstance(dtype, str):
            one_of("dtype", dtype, DTYPES)
        stored = StoredModel.find(model, revision, show_progress, layers)
        reason = ""
        is_free = device is None and dtype == "float32"
        for candidate in candidates(cls.backend or backend, workload if is_free else "batch", stored.kind, dtype):
            kind = candidate.load()
            if not issubclass(kind, cls):
                raise no_encoder(stored.name)
            try:
                return kind.open(stored, template=template, pooling=pooling, device=device, dtype=dtype)
            except UnsupportedModelError as error:
                reason = str(error)
        fix = "use the torch backend (pip install 'relvec[torch]')"
        raise RelvecError(f"The {candidate.name} backend cannot open {stored.name} ({reason}); {fix}.")

    @classmethod
    def open(
        cls, stored: "StoredModel", *, template: Any = None, pooling: str | None = None, device: Any, dtype: Any
    ) -> Self:
        """The model of a folder, or `UnsupportedModelError` where this backend does not know it."""
        raise UnsupportedModelError(stored.kind)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the published format: a plain encoder folder with `relbert_config` in config.json, and a card."""
        raise RelvecError(
            f"The {self.backend} backend only encodes; to save {self.name}, load it with backend='torch'."
        )

    def push_to_hub(self, repository: str, *, private: bool = False, token: str | None = None) -> str:
        """Upload the saved form of this model to the hub and return its address."""
        from huggingface_hub import HfApi

        api = HfApi(token=token)
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            api.create_repo(repository, private=private, exist_ok=True)
            return str(
                api.upload_folder(repo_id=repository, folder_path=folder, commit_message="Upload relation model")
            )

    @property
    def language_model(self) -> str:
        """What all training started from, also of a model trained from another; empty where nobody wrote it down."""
        return str(self.training_record.get("language_model") or self.training_record.get("base", ""))

    @property
    @abstractmethod
    def dim(self) -> int:
        """The length of a relation vector."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A checksum of all that decides the vectors: prompt, pooling, tokens, network and weights."""

    @property
    def workers(self) -> int:
        """How many threads may each encode a batch of their own at once, if the model starts no threads itself."""
        return thread_count()

    def encoding_order(self, pairs: Sequence[Pair]) -> list[int]:
        """The rows of pairs such that neighbours are encoded fast together: of similar length, with little padding."""
        return sorted(range(len(pairs)), key=lambda row: len(pairs[row][0]) + len(pairs[row][1]))

    @abstractmethod
    def token_ids(self, pairs: Sequence[Pair], truncate: bool = False) -> list[list[int]]:
        """The tokens of each pair; one too long for the model is an error unless `truncate` cuts it."""

    def refused(self, pairs: Sequence[Pair], truncate: bool = False) -> dict[Pair, str]:
        """The pairs that cannot be encoded, and why; with `truncate`, none is too long.

        >>> len(RelBERT.from_pretrained(tiny_model).refused([("cup", "tea"), ("cup " * 600, "tea")]))
        1
        """
        try:
            self.token_ids(pairs, truncate)
        except RelvecError as error:
            if len(pairs) == 1:
                return {pairs[0]: str(error)}
            return {pair: why for each in dict.fromkeys(pairs) for pair, why in self.refused([each], truncate).items()}
        return {}

    @abstractmethod
    def _encode_distinct(
        self, pairs: list[Pair], batch_size: int, truncate: bool, show_progress: bool | None
    ) -> Vectors:
        """One row for each of distinct pairs: [pairs, dim]."""

    def state(self) -> Any:
        """What changes when the model does; quick, unlike a look at the weights."""
        return self.pooling

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
        pair is encoded once. A pair too long for the model is an error unless `truncate` cuts it; an emoji, or another
        word that the model has no tokens for, gives an `UnknownWordsWarning`.

        >>> model = RelBERT.from_pretrained(tiny_model)
        >>> model.encode([("Paris", "France"), ("Tokyo", "Japan")], normalize=True).shape
        (2, 16)
        """
        if batch_size < 1:
            raise RelvecError(f"A batch of {batch_size} pairs is impossible; use 1 or more.")
        relations = _as_list(pairs)
        distinct = list(dict.fromkeys(pair for relation in relations for pair in _pairs_of(relation)))
        encoded = self._encode_distinct(distinct, batch_size, truncate, show_progress)
        if not np.isfinite(encoded).all():
            problem = f"{self.name} gives vectors that are not finite: its weights are damaged, or its numbers overflow"
            raise RelvecError(f"{problem}; check it with `relvec verify`, or use float32.")
        row_of = {pair: row for row, pair in enumerate(distinct)}
        if any(isinstance(relation, Prototype) for relation in relations):
            rows = [[row_of[pair] for pair in _pairs_of(relation)] for relation in relations]
            vectors = np.stack([encoded[of_relation].mean(axis=0) for of_relation in rows])
        else:
            vectors = encoded[[row_of[pair] for relation in relations for pair in _pairs_of(relation)]]
        if normalize:
            vectors = normalized(vectors)
        return vectors[0] if is_single(pairs) else vectors

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
        if isinstance(candidates, str):
            raise RelvecError(f"{candidates!r} is one word; give a list of candidates.")
        words = list(dict.fromkeys(as_word(word) for word in candidates))
        scores = self._scores(as_relation((a, b)), [(as_word(c), word) for word in words], scoring)
        return ranked(words, scores, top)

    def explain(self, query: Any, *, top: int = 5, truncate: bool = False) -> "list[Explanation]":
        """The relations in which a pair may stand, or which several pairs have in common, best first.

        Each has a name, a sentence with the pair in it, a probability and examples. What is left to a sum of 1 is the
        probability of other relations of the catalogue, and of none.
        """
        check_top(top)
        pairs = [as_relation(query)] if is_single(query) else as_relations(query)
        if len(pairs) > 1:
            return self.catalogue.in_common(self.encode(pairs, truncate=truncate), top)
        if not pairs:
            raise RelvecError("There is no pair to explain; give at least one.")
        (relation,) = pairs
        said = None if isinstance(relation, Prototype) else relation
        return next(self.catalogue.explain([said], self.encode([relation], truncate=truncate), top))

    def relatedness(self, pairs: Any, *, truncate: bool = False) -> Any:
        """The probability that a pair stands in any relation at all: a float for one pair, an array for several.

        It is that of a pair which is as likely to be related as not, before anything is known of it.
        """
        found = self.catalogue.related(self.encode(_as_list(pairs), truncate=truncate))
        return float(found[0]) if is_single(pairs) else found

    @property
    def catalogue(self) -> "Catalogue":
        """The relations that this model can name; made once for a model that brings none."""
        from relvec.model.catalogues import own_catalogue

        found = self.existing_catalogue
        if found is None:
            self.catalogue = found = own_catalogue(self)
        return found

    @catalogue.setter
    def catalogue(self, catalogue: "Catalogue") -> None:
        self._catalogue = self.state(), catalogue

    @property
    def existing_catalogue(self) -> "Catalogue | None":
        """The catalogue that was set, is shipped with this model or was made before; None if it must be made first."""
        from relvec.model.catalogues import existing_catalogue

        if self._catalogue is None or self._catalogue[0] != self.state():
            self._catalogue = self.state(), existing_catalogue(self)
        return self._catalogue[1]

    @staticmethod
    def prototype(pairs: Any) -> Prototype:
        """The relation of several examples at once, usable wherever a pair is.

        >>> model = RelBERT.from_pretrained(tiny_model)
        >>> capital = model.prototype([("Paris", "France"), ("Tokyo", "Japan")])
        >>> model.encode(capital).shape
        (16,)
        """
        return Prototype(pair for relation in as_relations(pairs) for pair in _pairs_of(relation))

    @property
    def device(self) -> Any:
        """Where the model computes."""
        return "cpu"

    def __sklearn_clone__(self) -> Self:
        return self  # weights are never changed by scikit-learn, so clones share them

    def __repr__(self) -> str:
        template = self.template.text
        return f"RelBERT({self.kind}, {self.dim} dimensions, pooling={self.pooling!r}, template={template!r})"

    def _scores(self, query: Relation, options: Sequence[Relation], scoring: str) -> NDArray[np.float32]:
        wanted = check_scoring(scoring)
        relations = [query, *options]
        if wanted != "forward":
            relations += [reversed_relation(relation) for relation in relations]
        vectors = self.encode(relations)
        size = len(options) + 1
        directions = [vectors[start : start + size] for start in range(0, len(vectors), size)]
        scores = [cosine(direction[:1], direction[1:])[0] for direction in directions]
        return scores[-1] if wanted == "reverse" else np.mean(scores, axis=0)


def no_encoder(name: str) -> RelvecError:
    """What to say of a static model where an encoder is needed."""
    return RelvecError(f"{name} is a static model, with no encoder to train, merge or export; take another model.")


class PromptedRelBERT(RelBERT):
    """A RelBERT with a prompt: a backend puts the tokens of a batch through its network."""

    max_tokens: int

    def __init__(
        self,
        tokenizer: PromptTokenizer,
        template: int | str | Template,
        pooling: str,
        *,
        max_tokens: int,
        **about: Any,
    ) -> None:
        super().__init__(template, pooling, **about)
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        if self.pooling == "mask" and not self.template.has_mask:
            raise RelvecError(f"Mask pooling needs a <mask> in the template {self.template.text!r}; write one in it.")
        self._prompt = TokenizedTemplate(self.template, tokenizer)

    def _beside_the_weights(self, vocabulary: Mapping[str, int], config: Mapping[str, Any]) -> str:
        prompt = self.template.to_config(), self.pooling
        tokens = sorted(vocabulary.items()), self._prompt(TOKENIZER_PROBES)
        return repr((prompt, tokens, [config.get(name) for name in NOT_IN_WEIGHTS]))

    @abstractmethod
    def _vectors_of_batch(self, token_ids: Sequence[Sequence[int]]) -> Vectors:
        """One batch through language model and pooling: [batch, dim]."""

    def vectors_of_batches(self, batches: Sequence[Sequence[Sequence[int]]]) -> Iterable[Vectors]:
        """The vectors of each batch of tokens, in order: [batch, dim]."""
        return map(self._vectors_of_batch, batches)

    def _batches(self, token_ids: Sequence[Sequence[int]], batch_size: int) -> list[list[int]]:
        """The rows of each batch."""
        return list(batches_by_length([len(tokens) for tokens in token_ids], batch_size))

    def _encoding(self) -> AbstractContextManager[Any]:
        """What must hold while batches are encoded."""
        return nullcontext()

    def _encode_distinct(
        self, pairs: list[Pair], batch_size: int, truncate: bool, show_progress: bool | None
    ) -> Vectors:
        vectors = np.empty((len(pairs), self.dim), dtype=np.float32)
        token_ids = self.token_ids(pairs, truncate)
        unknown = [pairs[row] for row in self._prompt.unknown_rows(token_ids)]
        if unknown:
            word = _short(self._prompt.unknown_word(unknown[0]))
            warnings.warn(UnknownWordsWarning(unknown, word, len(pairs)), stacklevel=3)
        with progress_bar(len(pairs), "Encoding", show=show_progress) as bar, self._encoding():
            groups = self._batches(token_ids, batch_size)
            batches = [[token_ids[row] for row in rows] for rows in groups]
            for rows, batch in zip(groups, self.vectors_of_batches(batches), strict=True):
                vectors[rows] = batch
                bar.update(len(rows))
        return vectors

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
                    f"{self.max_tokens}; shorten it, or let encode (truncate=True) or relvec embed (--truncate) cut it."
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
