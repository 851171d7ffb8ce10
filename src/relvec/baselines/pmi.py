"""Point-wise mutual information: how much more often two words co-occur than chance would have it (section 4.3)."""

import hashlib
import io
import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from relvec.baselines.baseline import FACTS, Baseline, Context, always
from relvec.data.benchmarks.analogy import Question
from relvec.evaluation.systems import Scores, System, name_with_settings
from relvec.io.files import checksum, expanded, unpacked
from relvec.pairs import Pair
from relvec.progress import progress_bar
from relvec.settings import Settings, setting
from relvec.storage.cache import Cache

WINDOW = 10
BLOCKS_PER_SAVE = 64
_BLOCK_LETTERS = 1 << 20
NEVER_TOGETHER = -1000.0  # below any PMI that a corpus can give, and yet a score

Term = tuple[str, ...]
TermPair = tuple[Term, Term]

_COUNTED = ("occurrences", "together", "tokens", "position", "held")
_TOKEN = re.compile(r"\n|[^\W_]+(?:['’][^\W_]+)*")


def term_of(word: str) -> Term:
    """The tokens of a word: lower-cased runs of letters and digits, so that a hyphen separates words as a space does.

    >>> term_of("Ice-cream"), term_of("o'clock")
    (('ice', 'cream'), ("o'clock",))
    """
    return tuple(token for token in _TOKEN.findall(word.lower()) if token != "\n")


def terms_of(pair: Pair) -> TermPair:
    """The two terms of a pair, sorted: co-occurrence has no direction."""
    first, second = sorted(term_of(word) for word in pair)
    return first, second


class PairCounts(NamedTuple):
    """The tokens of a corpus, how often each of two terms occurs, and how often they co-occur."""

    tokens: int
    first: int
    second: int
    together: int

    @property
    def pmi(self) -> float:
        """log2 (N c(a, b) / (c(a) c(b))); nan if one of the terms never occurs."""
        if not self.first or not self.second:
            return math.nan
        if not self.together:
            return NEVER_TOGETHER
        return math.log2(self.tokens * self.together / (self.first * self.second))


class CooccurrenceCounter:
    """Counts pairs of terms in text that comes in blocks; only the terms that are asked for cost time."""

    def __init__(self, pairs: Iterable[TermPair], window: int) -> None:
        self._pairs = list(dict.fromkeys(pairs))
        self._window = window
        self._terms = list(dict.fromkeys(term for pair in self._pairs for term in pair))
        number = {term: place for place, term in enumerate(self._terms)}
        # For each term those that it is counted with, and where.
        self._slots: list[dict[int, int]] = [{} for _ in self._terms]
        for slot, (first, second) in enumerate(self._pairs):
            self._slots[number[first]][number[second]] = slot
            self._slots[number[second]][number[first]] = slot
        # Terms by their first token; the end of a line is a token that no term has.
        self._starts: dict[str, list[tuple[int, list[str]]]] = {"\n": []}
        for term, place in number.items():
            self._starts.setdefault(term[0], []).append((place, list(term)))
        self._longest = max(map(len, self._terms), default=1)
        self._occurrences = [0] * len(self._terms)
        self._together = [0] * len(self._pairs)
        self._tokens = 0
        self._position = 0
        self._held: list[str] = []  # the end of the last block, where a long term may begin
        self._recent: deque[tuple[int, int]] = deque()  # where a term ended, and which

    def add(self, block: str) -> None:
        """Count in more text; a block ends where a token does."""
        tokens = self._held + _TOKEN.findall(block.lower())
        cut = max(len(tokens) - self._longest + 1, 0)
        self._count_terms(tokens, cut)
        self._held = tokens[cut:]

    def finished(self) -> dict[TermPair, PairCounts]:
        """The counts of every pair, once all text is in."""
        self._count_terms(self._held, len(self._held))
        self._held = []
        occurrences = dict(zip(self._terms, self._occurrences, strict=True))
        return {
            (first, second): PairCounts(self._tokens, occurrences[first], occurrences[second], together)
            for (first, second), together in zip(self._pairs, self._together, strict=True)
        }

    def state(self) -> dict[str, Any]:
        """All that counting changes, for `restore` of another counter of the same pairs and window."""
        return {name: getattr(self, f"_{name}") for name in _COUNTED} | {"recent": list(self._recent)}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a saved state."""
        for name in _COUNTED:
            setattr(self, f"_{name}", state[name])
        self._recent = deque((end, term) for end, term in state["recent"])

    def _count_terms(self, tokens: list[str], cut: int) -> None:
        """Count the terms that begin before `cut`."""
        window, recent, together = self._window, self._recent, self._together
        position = self._position
        found = [
            (place, starts)
            for place, starts in enumerate(map(self._starts.get, tokens[:cut]), position)
            if starts is not None
        ]
        line_ends = 0
        for start, starts in found:
            if not starts:
                recent.clear()
                line_ends += 1
                continue
            while recent and recent[0][0] < start - window:
                recent.popleft()
            for term, sequence in starts:
                length = len(sequence)
                if length > 1 and tokens[start - position : start - position + length] != sequence:
                    continue
                self._occurrences[term] += 1
                slots = self._slots[term]
                for end, other in recent:
                    if other in slots and 0 < start - end <= window:
                        together[slots[other]] += 1
                recent.append((start + length - 1, term))
        self._position += cut
        self._tokens += cut - line_ends


class PMI:
    """The choice whose two words have the highest PMI in a corpus wins; the stem is ignored, as in the paper.

        PMI(a, b) = log2 (N c(a, b) / (c(a) c(b)))

    N is the number of tokens in the corpus, c(a) how often a occurs, and c(a, b) how often a and b are at most `window`
    tokens apart in one line, in either order. The corpus is UTF-8 text, perhaps gzipped: a sentence, paragraph or
    document a line. A term of several tokens is counted wherever they follow each other. Terms that overlap do not
    co-occur. `pairs` are counted with the first questions, so one pass over the corpus serves several datasets. Counts
    are kept in the cache, and a killed pass resumes from its last save (every 64 MB).

    >>> _ = Path("corpus.txt").write_text("A cup of tea, please.\\nThe cup is on the table.\\n")
    >>> pmi = PMI("corpus.txt", cache_folder="counts")
    >>> pmi.scores([Question(("a", "b"), (("tea", "cup"), ("tea", "table"), ("tea", "wine")), answer=0)])[0].round(2)
    array([    2.46, -1000.  ,      nan])
    """

    def __init__(
        self,
        corpus: str | Path,
        window: int = WINDOW,
        *,
        pairs: Iterable[Pair] = (),
        name: str = "PMI",
        cache_folder: str | Path | None = None,
    ) -> None:
        self.name = name
        self._corpus = expanded(corpus)
        self._window = window
        self._pairs = list(pairs)
        self.fingerprint = hashlib.sha256(f"{checksum(self._corpus)} {window}".encode()).hexdigest()
        self._size = self._corpus.stat().st_size
        self._cache = Cache(f"co-occurrence {self.fingerprint}", about=self._corpus.name, folder=cache_folder)

    def scores(self, questions: Sequence[Question]) -> list[Scores]:
        asked = [choice for question in questions for choice in question.choices]
        wanted = sorted({terms_of(pair) for pair in (*asked, *self._pairs)})
        found = self._cache.get_json(map(_key, wanted))
        missing = [pair for pair in wanted if all(pair) and _key(pair) not in found]  # a word may have no token
        if missing:
            found |= self._counted(missing)

        def score(choice: Pair) -> float:
            counts = found.get(_key(terms_of(choice)))
            return PairCounts(*counts).pmi if counts else np.nan

        return [np.array([score(choice) for choice in question.choices]) for question in questions]

    def _counted(self, pairs: Sequence[TermPair]) -> dict[str, PairCounts]:
        """Count in the whole corpus; a pass that was killed resumes from where it was saved last."""
        counter = CooccurrenceCounter(pairs, self._window)
        this_pass = "pass " + hashlib.sha256(repr(pairs).encode()).hexdigest()
        done = 0
        if saved := self._cache.get_json([this_pass]).get(this_pass):
            done = saved["blocks"]
            counter.restore(saved["counter"])
        with progress_bar(self._size, f"Counting in {self._corpus.name}", unit="B") as bar:
            for number, (block, position) in enumerate(_blocks(self._corpus), start=1):
                if number > done:  # reading what is done already takes little time
                    counter.add(block)
                    if number % BLOCKS_PER_SAVE == 0:
                        self._cache.add_json({this_pass: {"blocks": number, "counter": counter.state()}})
                bar.update(position - bar.n)
        counts = {_key(pair): count for pair, count in counter.finished().items()}
        self._cache.add_json(counts)
        self._cache.remove([this_pass])
        return counts


def _key(pair: TermPair) -> str:
    return "\t".join(" ".join(term) for term in pair)


def _blocks(corpus: Path) -> Iterator[tuple[str, int]]:
    """The text in blocks that end at a space, however long its lines are, and how many bytes have been read.

    A byte that is not UTF-8 only separates tokens: one among billions should not end an hour of counting.
    """
    with unpacked(corpus) as (stream, file):
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace")
        rest = ""
        while read := text.read(_BLOCK_LETTERS):
            block = rest + read
            cut = max(block.rfind(" "), block.rfind("\n")) + 1 or len(block)
            rest = block[cut:]
            yield block[:cut], file.tell()
        yield rest, file.tell()


class PMISettings(Settings):
    """The corpus and what counts as a co-occurrence."""

    corpus: str = setting(..., "a text file, .gz or not")
    window: int = setting(WINDOW, "how many tokens apart the words may be", ge=1)


def _build(settings: PMISettings, context: Context) -> System:
    window = settings.window
    name = context.name or name_with_settings("PMI", f"window {window}" if window != WINDOW else "")
    return System(name, always(PMI(settings.corpus, window, pairs=context.pairs, name=name)), facts=FACTS)


BASELINE = Baseline("pmi", "the choice whose words co-occur most in a corpus, whatever the stem", _build, PMISettings)
