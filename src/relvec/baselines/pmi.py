"""Point-wise mutual information: how much more often two words meet than chance would have it (section 4.3)."""

import hashlib
import io
import json
import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from filelock import FileLock

from relvec.baselines.input_file import checksum, unpacked
from relvec.encoders.cache import cache_folder
from relvec.errors import RelvecError
from relvec.evaluation.analogy import Scores
from relvec.evaluation.questions import Question
from relvec.files import written_whole
from relvec.pairs import Pair
from relvec.progress import progress_bar

WINDOW = 10
NEVER_TOGETHER = -1000.0  # below any PMI that a corpus can give, and yet a score

Term = tuple[str, ...]

_TOKEN = re.compile(r"\n|[^\W_]+(?:['’][^\W_]+)*")
_BLOCK_LETTERS = 1 << 20


def term_of(word: str) -> Term:
    """The tokens of a word: lower-cased runs of letters and digits, so that a hyphen parts words as a blank does.

    >>> term_of("Ice-cream"), term_of("o'clock")
    (('ice', 'cream'), ("o'clock",))
    """
    return tuple(token for token in _TOKEN.findall(word.lower()) if token != "\n")


def meeting(pair: Pair) -> tuple[Term, Term]:
    """The two terms of a pair in an order of their own: meeting has no direction."""
    first, second = sorted(term_of(word) for word in pair)
    return first, second


@dataclass
class Counts:
    """How many tokens a corpus has, how often terms occur, and how often two of them meet within the window."""

    tokens: int = 0
    terms: dict[Term, int] = field(default_factory=dict)
    meetings: dict[tuple[Term, Term], int] = field(default_factory=dict)

    def pmi(self, pair: Pair) -> float:
        """log2 (N c(a, b) / (c(a) c(b))); nan if one of the words never occurs."""
        first, second = meeting(pair)
        one, other = self.terms.get(first, 0), self.terms.get(second, 0)
        if not one or not other:
            return math.nan
        together = self.meetings.get((first, second), 0)
        return math.log2(self.tokens * together / (one * other)) if together else NEVER_TOGETHER


class PMI:
    """The choice whose two words have the highest PMI in a corpus wins; the stem is ignored, as in the paper.

        PMI(a, b) = log2 (N c(a, b) / (c(a) c(b)))

    with N the tokens of the corpus, c(a) how often a occurs, and c(a, b) how often a and b, in either order, are at
    most `window` tokens apart in one line. The corpus is UTF-8 text, perhaps gzipped, with a sentence, a paragraph
    or a document a line. A term of several tokens is counted wherever they follow each other (and they are still
    counted by themselves); terms that overlap do not meet. What has been counted is kept on disk for good; `pairs`
    are counted along with the first questions, so that one pass over the corpus serves several datasets.

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
        show_progress: bool | None = None,
    ) -> None:
        if window < 1:
            raise RelvecError(f"The window is {window}; words that meet are at least 1 token apart.")
        self.name = name
        self._corpus = Path(corpus).expanduser()
        self._window = window
        self._pairs = list(pairs)
        self._show_progress = show_progress
        self.fingerprint = hashlib.sha256(f"{checksum(self._corpus)} {window}".encode()).hexdigest()
        self._size = self._corpus.stat().st_size
        folder = Path(cache_folder) if cache_folder is not None else _default_folder()
        self._cache = _CountCache(folder / f"{self.fingerprint[:16]}.json")

    def scores(self, questions: Sequence[Question]) -> list[Scores]:
        asked = [choice for question in questions for choice in question.choices]
        counts = self._cache.read()
        wanted = {meeting(pair) for pair in (*asked, *self._pairs)}
        missing = {pair for pair in wanted - counts.meetings.keys() if all(pair)}  # a word may have no token
        if missing:
            counts = self._cache.add(self._count(missing))
        return [np.array([counts.pmi(choice) for choice in question.choices]) for question in questions]

    def _count(self, meetings: Iterable[tuple[Term, Term]]) -> Counts:
        counter = MeetingCounter(meetings, self._window)
        with progress_bar(self._size, f"Counting in {self._corpus.name}", unit="B", show=self._show_progress) as bar:
            for block, position in _blocks(self._corpus):
                counter.add(block)
                bar.update(position - bar.n)
        return counter.finished()


def _default_folder() -> Path:
    return cache_folder() / "pmi"


class MeetingCounter:
    """Counts terms and meetings in text that comes in blocks; only the terms that are asked for cost time."""

    def __init__(self, meetings: Iterable[tuple[Term, Term]], window: int) -> None:
        self._meetings = list(dict.fromkeys(meetings))
        self._window = window
        self._terms = list(dict.fromkeys(term for pair in self._meetings for term in pair))
        number = {term: place for place, term in enumerate(self._terms)}
        # For each term those that it may meet, and where that is counted.
        self._slots: list[dict[int, int]] = [{} for _ in self._terms]
        for slot, (first, second) in enumerate(self._meetings):
            self._slots[number[first]][number[second]] = slot
            self._slots[number[second]][number[first]] = slot
        # Terms by their first token; the end of a line is a token that no term has.
        self._starts: dict[str, list[tuple[int, list[str]]]] = {"\n": []}
        for term, place in number.items():
            self._starts.setdefault(term[0], []).append((place, list(term)))
        self._longest = max(map(len, self._terms), default=1)
        self._occurrences = [0] * len(self._terms)
        self._together = [0] * len(self._meetings)
        self._tokens = 0
        self._position = 0
        self._held: list[str] = []  # the end of the last block, where a long term may begin
        self._recent: deque[tuple[int, int]] = deque()  # where a term ended, and which

    def add(self, block: str) -> None:
        """Go on with more text; a block ends where a token does."""
        tokens = self._held + _TOKEN.findall(block.lower())
        cut = max(len(tokens) - self._longest + 1, 0)
        self._look(tokens, cut)
        self._held = tokens[cut:]

    def finished(self) -> Counts:
        """The counts, once all text is in."""
        self._look(self._held, len(self._held))
        self._held = []
        return Counts(
            self._tokens,
            dict(zip(self._terms, self._occurrences, strict=True)),
            dict(zip(self._meetings, self._together, strict=True)),
        )

    def _look(self, tokens: list[str], cut: int) -> None:
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


class _CountCache:
    """One JSON file for each corpus and window, which grows with every pass."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:  # before hours of counting, not after
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RelvecError(f"Cannot make {path.parent}: {error.strerror}; set RELVEC_CACHE.") from error

    def read(self) -> Counts:
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            terms = {tuple(text.split()): count for text, count in kept["terms"].items()}
            meetings = {(tuple(one.split()), tuple(other.split())): n for one, other, n in kept["meetings"]}
            return Counts(kept["tokens"], terms, meetings)
        except FileNotFoundError:
            return Counts()
        except (ValueError, KeyError, TypeError) as error:
            raise RelvecError(f"{self._path} holds no counts ({error}); remove it.") from error

    def add(self, new: Counts) -> Counts:
        """Keep further counts; return all."""
        try:
            with FileLock(self._path.with_suffix(".lock")):
                kept = self.read()
                counts = Counts(new.tokens, {**kept.terms, **new.terms}, {**kept.meetings, **new.meetings})
                data = {
                    "tokens": counts.tokens,
                    "terms": {" ".join(term): count for term, count in counts.terms.items()},
                    "meetings": [[" ".join(one), " ".join(two), n] for (one, two), n in counts.meetings.items()],
                }
                with written_whole(self._path) as partial:
                    partial.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
        except OSError as error:
            raise RelvecError(f"Cannot write {self._path}: {error.strerror}; set RELVEC_CACHE.") from error
        return counts


def _blocks(corpus: Path) -> Iterator[tuple[str, int]]:
    """The text in blocks that end at a blank, however long its lines are, and how many bytes have been read.

    A byte that is not UTF-8 only parts tokens: one among billions should not end an hour of counting.
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
