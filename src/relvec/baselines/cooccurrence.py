"""How often terms occur in a text, and how often two of them occur within a window of tokens."""

import math
import re
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from relvec.pairs import Pair

NEVER_TOGETHER = -1000.0  # below any PMI that a corpus can give, and yet a score

Term = tuple[str, ...]
TermPair = tuple[Term, Term]

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
        self._look(tokens, cut)
        self._held = tokens[cut:]

    def finished(self) -> dict[TermPair, PairCounts]:
        """The counts of every pair, once all text is in."""
        self._look(self._held, len(self._held))
        self._held = []
        occurrences = dict(zip(self._terms, self._occurrences, strict=True))
        return {
            (first, second): PairCounts(self._tokens, occurrences[first], occurrences[second], together)
            for (first, second), together in zip(self._pairs, self._together, strict=True)
        }

    def state(self) -> dict[str, Any]:
        """All that counting changes, for `restore` of another counter of the same pairs and window."""
        return {
            "occurrences": self._occurrences,
            "together": self._together,
            "tokens": self._tokens,
            "position": self._position,
            "held": self._held,
            "recent": list(self._recent),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a saved state."""
        self._occurrences, self._together = state["occurrences"], state["together"]
        self._tokens, self._position, self._held = state["tokens"], state["position"], state["held"]
        self._recent = deque((end, term) for end, term in state["recent"])

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
