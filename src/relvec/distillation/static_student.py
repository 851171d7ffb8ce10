"""A static student: word vectors and a small network over them learn the vectors of a teacher."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from torch import Tensor
from torch.nn.functional import embedding_bag, linear, relu

from relvec.distillation.pool import Pool
from relvec.distillation.settings import StaticSettings
from relvec.distillation.student_training import StudentTraining
from relvec.distillation.targets import FITTED_PAIRS, Targets, reduction
from relvec.errors import RelvecError
from relvec.io.word2vec import VectorTable, read_vectors
from relvec.model.cached_vectors import ModelVectors
from relvec.model.static_model import LAYERS, TABLE, UNKNOWN, StaticRelBERT, WordTable
from relvec.pairs import Pair
from relvec.progress import progress_bar
from relvec.similarity import Vectors, normalized

ROWS_PER_STEP = 8192
COMPARED_IN_STEP = 512  # pairs of a batch; to compare all with all would take longer than the network
LONGEST = 6  # letters in a piece
SPREAD = 0.3  # of the numbers in a row at the start

Numbers = NDArray[np.int64]


class StaticDistiller(StudentTraining):
    """Trains the word vectors and the network of a `StaticRelBERT` to give the vectors of a teacher.

    Now and then a word is read as the mean of its pieces, so that the pieces learn to stand for words unseen.
    """

    settings: StaticSettings

    def __init__(
        self,
        teacher: ModelVectors,
        pool: Pool,
        settings: StaticSettings,
        output: str | Path,
        *,
        word_vectors: str | Path | None = None,
        data: str,
    ) -> None:
        base = Path(word_vectors).name if word_vectors else "random word vectors"
        self.terms = Terms(pool, settings)
        known = read_vectors(word_vectors, self.terms.vocabulary) if word_vectors else None
        torch.manual_seed(settings.seed)
        table = torch.from_numpy(first_rows(self.terms, known, settings))
        hidden = torch.nn.Linear(4 * settings.word_dim, settings.hidden)
        last = torch.nn.Linear(settings.hidden, settings.dim)
        layers = (*hidden.parameters(), *last.parameters())
        self.train_terms = self.terms.numbers(pool.train)
        self._epoch, self._order = -1, np.empty(0, dtype=np.int64)
        self.steps_per_epoch = math.ceil(len(pool.train) / settings.batch_size)
        weights = [(TABLE, torch.nn.Parameter(table)), *zip(LAYERS, layers, strict=True)]
        decisive = (known.checksum if known else base, self.terms.vocabulary)
        super().__init__(
            teacher, pool, settings, output, weights, self.steps_per_epoch, *decisive, base=base, data=data
        )

    def trained_model(self) -> StaticRelBERT:
        table, *layers = (self.weights[name].detach().numpy() for name in (TABLE, *LAYERS))
        return StaticRelBERT(WordTable(self.terms.vocabulary, table), layers)

    def fit_targets(self, show_progress: bool | None) -> Targets:
        """The teacher's vectors in the student's dimension: those to learn from in float16, to save memory."""
        train, rows = self.pool.train, self.teacher.rows(self.pool.train)
        sample = np.random.default_rng(self.settings.seed).permutation(len(train))[:FITTED_PAIRS]
        targets = Targets(self.teacher, reduction(normalized(rows[sample]), self.settings.dim))
        self.train_targets = np.empty((len(train), self.settings.dim), dtype=np.float16)
        with progress_bar(len(train), "Reading vectors", show=show_progress) as bar:
            for start in range(0, len(train), ROWS_PER_STEP):
                step = slice(start, start + ROWS_PER_STEP)
                self.train_targets[step] = normalized(normalized(rows[step]) @ targets.projection)
                bar.update(len(self.train_targets[step]))
        return targets

    def step_vectors(self, step: int) -> Tensor:
        rows = self._rows(step)
        draw = np.random.default_rng([self.settings.seed, *divmod(step - 1, self.steps_per_epoch)])
        return self._vectors(self.train_terms[rows], draw.random((len(rows), 2)) < self.settings.piece_share)

    def step_targets(self, step: int) -> tuple[Tensor, Tensor]:
        target = torch.from_numpy(self.train_targets[self._rows(step)].astype(np.float32))
        return target, target[:COMPARED_IN_STEP]

    def held_out_vectors(self) -> Vectors:
        numbers = self.terms.numbers(self.pool.held_out)
        with torch.no_grad():
            found: Vectors = self._vectors(numbers, np.zeros(numbers.shape, dtype=bool)).numpy()
        return found

    @property
    def sizes(self) -> dict[str, int]:
        return {"student_dim": self.settings.dim, "words_and_pieces": len(self.terms.vocabulary)}

    def _rows(self, step: int) -> Numbers:
        """The pairs of a step: a function of seed and step alone."""
        epoch, place = divmod(step - 1, self.steps_per_epoch)
        if epoch != self._epoch:
            self._order = np.random.default_rng([self.settings.seed, epoch]).permutation(len(self.pool.train))
            self._epoch = epoch
        return self._order[place * self.settings.batch_size : (place + 1) * self.settings.batch_size]

    def _vectors(self, numbers: Numbers, in_pieces: NDArray[np.bool_]) -> Tensor:
        """The network of `StaticRelBERT` in torch: numbers of terms [batch, 2] to vectors [batch, dim]."""
        table, weight, bias, output_weight, output_bias = (self.weights[name] for name in (TABLE, *LAYERS))
        bags = (map(torch.from_numpy, self.terms.bags(numbers[:, side], in_pieces[:, side])) for side in (0, 1))
        heads, tails = (embedding_bag(rows, table, starts, mode="mean") for rows, starts in bags)
        features = torch.cat([heads, tails, heads * tails, (heads - tails).abs()], dim=1)
        return linear(relu(linear(features, weight, bias)), output_weight, output_bias)


class Terms:
    """The vocabulary of a student, and its rows for each word of a pool: its own row, and the pieces it is made of.

    The words that the training pairs have most often get rows of their own.
    """

    def __init__(self, pool: Pool, settings: StaticSettings) -> None:
        counts = Counter(word for pair in pool.train for word in pair)
        spell = BertNormalizer().normalize_str
        spelled: Counter[str] = Counter()
        for word, count in counts.items():
            spelled[spell(word)] += count
        own = [word for word, _ in spelled.most_common(settings.words)]
        self.vocabulary = list(dict.fromkeys([UNKNOWN, *own, *common_pieces(spelled, settings.pieces)]))
        row_of = {text: row for row, text in enumerate(self.vocabulary)}
        words = list(dict.fromkeys(word for pair in (*pool.train, *pool.held_out) for word in pair))
        self._number = {word: number for number, word in enumerate(words)}
        whole = WordTable(self.vocabulary, np.empty(0, dtype=np.float32)).row_numbers(words)
        self.lists = [*whole, *(_in_pieces(spell(word), row_of) for word in words)]
        self._lengths = np.array(list(map(len, self.lists)))
        self._starts = np.cumsum(self._lengths) - self._lengths
        self._rows = np.array([row for rows in self.lists for row in rows])

    def numbers(self, pairs: Sequence[Pair]) -> Numbers:
        """The numbers of the two words of each pair: [pairs, 2]."""
        return np.array([[self._number[head], self._number[tail]] for head, tail in pairs])

    def bags(self, numbers: Numbers, in_pieces: NDArray[np.bool_]) -> tuple[Numbers, Numbers]:
        """The rows of some words one after another, whole or in pieces, and where those of each word start."""
        lists = numbers + in_pieces * len(self._number)
        lengths = self._lengths[lists]
        starts = np.cumsum(lengths) - lengths
        places = np.repeat(self._starts[lists] - starts, lengths) + np.arange(lengths.sum())
        return self._rows[places], starts


def common_pieces(words: Iterable[str], count: int) -> list[str]:
    """Every letter, and the pieces that spare most letters if words are written in them; ## marks those within a word.

    >>> common_pieces(["teacup", "teapot", "teas"], 17)[-1]
    'tea'
    """
    counts: Counter[str] = Counter()
    for word in words:
        for part, _ in BertPreTokenizer().pre_tokenize_str(word):
            for start in range(len(part)):
                mark = "##" if start else ""
                counts.update(
                    f"{mark}{part[start:end]}" for end in range(start + 1, min(start + LONGEST, len(part)) + 1)
                )
    letters = sorted({letter for piece in counts for letter in piece.removeprefix("##")})
    spared = {piece: number * (len(piece.removeprefix("##")) - 1) for piece, number in counts.items()}
    common = sorted((piece for piece in spared if spared[piece]), key=lambda piece: (-spared[piece], piece))
    return [*letters, *(f"##{letter}" for letter in letters), *common][: max(count, 2 * len(letters))]


def _in_pieces(word: str, row_of: dict[str, int]) -> list[int]:
    """The rows that stand for a word without a row of its own: of its parts, or of its longest known pieces."""
    parts = [part for part, _ in BertPreTokenizer().pre_tokenize_str(word)]
    if len(parts) > 1:
        return [row for part in parts for row in ([row_of[part]] if part in row_of else _in_pieces(part, row_of))]
    found, start = [], 0
    while start < len(word):
        ends = range(len(word) - (start == 0), start, -1)
        pieces = ((end, f"{'##' if start else ''}{word[start:end]}") for end in ends)
        end, row = next(((end, row_of[piece]) for end, piece in pieces if piece in row_of), (0, 0))
        if not end:
            return [0]
        found.append(row)
        start = end
    return found or [0]


def first_rows(terms: Terms, known: VectorTable | None, settings: StaticSettings) -> Vectors:
    """The table before training: known word vectors, in no more than its dimensions, or random numbers.

    What is not known is the mean of its pieces, and a piece the mean of the words that have it.
    """
    draw = np.random.default_rng(settings.seed)
    rows = draw.normal(0, SPREAD, (len(terms.vocabulary), settings.word_dim)).astype(np.float32)
    if known is None:
        return rows
    found = [row for row, word in enumerate(terms.vocabulary) if word in known.rows]
    if len(found) < 2:
        known_words = f"The word vectors know {len(found)} of the {len(rows)} words to learn"
        raise RelvecError(f"{known_words}; give a file of their language and spelling.")
    vectors = known.matrix[[known.rows[terms.vocabulary[row]] for row in found]]
    vectors = normalized(vectors - vectors.mean(axis=0))
    vectors = vectors @ reduction(vectors, min(settings.word_dim, known.dim))
    vectors *= SPREAD / vectors.std()
    filled = np.zeros((len(rows), vectors.shape[1]), dtype=np.float32)
    filled[found] = vectors
    half = len(terms.lists) // 2
    is_known = np.isin(np.arange(len(rows)), found)
    of_words = list(zip(terms.lists[:half], terms.lists[half:], strict=True))
    sums, counts = np.zeros_like(filled), np.zeros(len(rows), dtype=np.float32)
    for whole, pieces in of_words:
        if len(whole) == 1 and is_known[whole[0]]:
            sums[pieces] += filled[whole[0]]
            counts[pieces] += 1
    filled[~is_known] = (sums / np.maximum(counts, 1)[:, None])[~is_known]
    for whole, pieces in of_words:
        if len(whole) == 1 and not is_known[whole[0]]:
            filled[whole[0]] = filled[pieces].mean(axis=0)
    rows[:, : vectors.shape[1]] = filled
    rows[:, vectors.shape[1] :] /= 10
    return rows
