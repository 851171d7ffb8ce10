"""Static relation models: the vectors of two words from a table, and a small network over both. They need no torch."""

import hashlib
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from relvec.errors import RelvecError, UnknownWordsWarning, errors_as, needed_for
from relvec.model.backends import STATIC_KIND
from relvec.model.numpy_backend.weights import TensorFile
from relvec.model.quantization import quantized
from relvec.model.relation_model import RelBERT
from relvec.model.stored import StoredModel
from relvec.model.threads import one_blas_thread, thread_count
from relvec.pairs import Pair
from relvec.progress import progress_bar
from relvec.similarity import Vectors

PAIRS_PER_THREAD = 2048
UNKNOWN = "[UNK]"
TABLE, SCALES = "words", "scales"
LAYERS = ("hidden.weight", "hidden.bias", "output.weight", "output.bias")


def word_pieces(vocabulary: Sequence[str]) -> Tokenizer:
    """Splits a text at spaces and punctuation, and each part into the longest known pieces; case and accents go.

    >>> pieces = word_pieces(["[UNK]", "tea", "pot", "##pot"])
    >>> pieces.encode("Teapot pot").ids
    [1, 3, 2]
    """
    number = {text: row for row, text in enumerate(vocabulary)}
    tokenizer = Tokenizer(WordPiece(number, unk_token=UNKNOWN))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer


class WordTable:
    """A row of numbers for each entry of a vocabulary: words, terms such as ice cream, and pieces of words.

    A word without a row of its own is the mean of its pieces.
    """

    def __init__(self, vocabulary: list[str], rows: Vectors) -> None:
        self.vocabulary, self.rows = vocabulary, rows
        self._row_of = {word: row for row, word in enumerate(vocabulary)}

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return word_pieces(self.vocabulary)

    def row_numbers(self, words: Sequence[str]) -> list[list[int]]:
        """The rows of each word: its own, or those of its pieces."""
        found = [[row] if (row := self._row_of.get(word.lower())) else [] for word in words]
        others = [place for place, rows in enumerate(found) if not rows]
        if others:
            for place, pieces in zip(others, self._tokenizer.encode_batch([words[at] for at in others]), strict=True):
                found[place] = pieces.ids or [0]
        return found

    def vectors(self, rows: Sequence[Sequence[int]]) -> Vectors:
        """The mean of the rows of each word: [words, dim]."""
        lengths = np.array([len(numbers) for numbers in rows])
        flat = np.fromiter((row for numbers in rows for row in numbers), dtype=np.int64, count=int(lengths.sum()))
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        return (np.add.reduceat(self.rows[flat], starts, axis=0) / lengths[:, None]).astype(np.float32)


class StaticRelBERT(RelBERT):
    """A relation vector from the vectors h and t of the two words: W2 relu(W1 [h, t, h*t, |h-t|] + b1) + b2.

    There is no language model, so millions of pairs take a minute. `relvec distill --student static` makes one.
    """

    backend = "numpy"
    is_cached = False

    def __init__(
        self,
        words: WordTable,
        layers: Sequence[Vectors],
        *,
        name: str = "relvec-static",
        training_record: dict[str, Any] | None = None,
    ) -> None:
        super().__init__("[h] [t]", "average", name=name, kind=STATIC_KIND, training_record=training_record)
        self.words, self.layers = words, layers

    @classmethod
    def open(
        cls, stored: StoredModel, *, template: Any = None, pooling: str | None = None, device: Any, dtype: Any
    ) -> Self:
        if template or pooling or str(device or "cpu") != "cpu" or dtype != "float32":
            facts = "has no prompt, and is float32 on the CPU"
            raise RelvecError(f"{stored.name} is static: it {facts}; leave out template, pooling, device and dtype.")
        problem = f"The static model in {stored.folder} cannot be read"
        with errors_as(problem, "get it again", OSError, KeyError, ValueError):
            file = TensorFile(stored.folder / "model.safetensors")
            vocabulary = (stored.folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
            table = file.tensor(TABLE) * file.tensor(SCALES)[:, None]
            layers = [file.tensor(name) for name in LAYERS]
        return cls(WordTable(vocabulary, table), layers, name=stored.name, training_record=stored.training_record)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write config.json, a vocabulary, the table in bytes, the network in float16, and a card."""
        with needed_for("Saving a model"):
            from safetensors.numpy import save_file
        from relvec.model.card import model_card
        from relvec.model.saving import atomic_model_folder

        table, scales = quantized(self.words.rows, np.float16)
        network = {name: layer.astype(np.float16) for name, layer in zip(LAYERS, self.layers, strict=True)}
        prompt = {"template": self.template.text, "aggregation_mode": self.pooling, "training": self.training_record}
        config = {"model_type": STATIC_KIND, "hidden_size": self.dim, "relbert_config": prompt}
        with atomic_model_folder(folder, model_card(self), config) as partial:
            (partial / "vocab.txt").write_text("\n".join(self.words.vocabulary) + "\n", encoding="utf-8")
            save_file({TABLE: table, SCALES: scales, **network}, partial / "model.safetensors")

    @property
    def dim(self) -> int:
        return int(self.layers[-1].shape[0])

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256("\n".join(self.words.vocabulary).encode())
        for numbers in (self.words.rows, *self.layers):
            digest.update(np.ascontiguousarray(numbers).data)
        return digest.hexdigest()

    def token_ids(self, pairs: Sequence[Pair], truncate: bool = False) -> list[list[int]]:
        """The rows of the table that a pair takes; no pair is too long."""
        rows = self.words.row_numbers([word for pair in pairs for word in pair])
        return [head + tail for head, tail in zip(rows[::2], rows[1::2], strict=True)]

    def _encode_distinct(
        self, pairs: list[Pair], batch_size: int, truncate: bool, show_progress: bool | None
    ) -> Vectors:
        number: dict[str, int] = {}
        heads = np.array([number.setdefault(head, len(number)) for head, _ in pairs])
        tails = np.array([number.setdefault(tail, len(number)) for _, tail in pairs])
        if not pairs:
            return np.empty((0, self.dim), dtype=np.float32)
        distinct = list(number)
        rows = self.words.row_numbers(distinct)
        self._warn(pairs, {word for word, numbers in zip(distinct, rows, strict=True) if 0 in numbers})
        words = self.words.vectors(rows)
        vectors = np.empty((len(pairs), self.dim), dtype=np.float32)

        def fill(start: int) -> int:
            step = slice(start, start + PAIRS_PER_THREAD)
            vectors[step] = self._network(words[heads[step]], words[tails[step]])
            return len(vectors[step])

        starts = range(0, len(pairs), PAIRS_PER_THREAD)
        with (
            progress_bar(len(pairs), "Encoding", show=show_progress) as bar,
            one_blas_thread,
            ThreadPoolExecutor(thread_count()) as pool,
        ):
            for done in pool.map(fill, starts):
                bar.update(done)
        return vectors

    def _network(self, heads: Vectors, tails: Vectors) -> Vectors:
        weight, bias, output_weight, output_bias = self.layers
        features = np.concatenate([heads, tails, heads * tails, np.abs(heads - tails)], axis=1)
        hidden = features @ weight.T + bias
        found: Vectors = np.maximum(hidden, 0, out=hidden) @ output_weight.T + output_bias
        return found

    def _warn(self, pairs: Sequence[Pair], unknown: set[str]) -> None:
        if unknown:
            without = [pair for pair in pairs if not unknown.isdisjoint(pair)]
            word = next(word for word in without[0] if word in unknown)
            warnings.warn(UnknownWordsWarning(without, word, len(pairs)), stacklevel=4)
