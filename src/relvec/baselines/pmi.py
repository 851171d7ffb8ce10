"""Point-wise mutual information: how much more often two words meet than chance would have it (section 4.3)."""

import hashlib
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from relvec.baselines.cooccurrence import Counts, MeetingCounter, Term, meeting
from relvec.baselines.count_cache import CountCache
from relvec.data.benchmarks.analogy import Question
from relvec.errors import RelvecError
from relvec.evaluation.analogy import Scores
from relvec.io.paths import expanded
from relvec.io.streams import checksum, unpacked
from relvec.pairs import Pair
from relvec.progress import progress_bar
from relvec.storage.cache import cache_folder

WINDOW = 10
BLOCKS_PER_SAVE = 64
_BLOCK_LETTERS = 1 << 20


class PMI:
    """The choice whose two words have the highest PMI in a corpus wins; the stem is ignored, as in the paper.

        PMI(a, b) = log2 (N c(a, b) / (c(a) c(b)))

    with N the tokens of the corpus, c(a) how often a occurs, and c(a, b) how often a and b, in either order, are at
    most `window` tokens apart in one line. The corpus is UTF-8 text, perhaps gzipped, with a sentence, a paragraph
    or a document a line. A term of several tokens is counted wherever they follow each other (and they are still
    counted by themselves); terms that overlap do not meet. What has been counted is kept on disk for good, and that
    of a killed pass up to its last 64 MB or so; `pairs` are counted along with the first questions, so that one pass
    over the corpus serves several datasets.

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
        self._corpus = expanded(corpus)
        self._window = window
        self._pairs = list(pairs)
        self._show_progress = show_progress
        self.fingerprint = hashlib.sha256(f"{checksum(self._corpus)} {window}".encode()).hexdigest()
        self._size = self._corpus.stat().st_size
        folder = Path(cache_folder) if cache_folder is not None else _default_folder()
        self._cache = CountCache(folder / f"{self.fingerprint[:16]}.json")

    def scores(self, questions: Sequence[Question]) -> list[Scores]:
        asked = [choice for question in questions for choice in question.choices]
        counts = self._cache.read()
        wanted = {meeting(pair) for pair in (*asked, *self._pairs)}
        missing = sorted(pair for pair in wanted - counts.meetings.keys() if all(pair))  # a word may have no token
        if missing:
            counts = self._counted(missing)
        return [np.array([counts.pmi(choice) for choice in question.choices]) for question in questions]

    def _counted(self, meetings: Sequence[tuple[Term, Term]]) -> Counts:
        """Count in the whole corpus; a pass that was killed goes on from where it was saved last."""
        counter, unfinished = MeetingCounter(meetings, self._window), self._cache.unfinished(meetings)
        done = unfinished.restore(counter)
        with progress_bar(self._size, f"Counting in {self._corpus.name}", unit="B", show=self._show_progress) as bar:
            for number, (block, position) in enumerate(_blocks(self._corpus), start=1):
                if number > done:  # reading what is done already takes little time
                    counter.add(block)
                    if number % BLOCKS_PER_SAVE == 0:
                        unfinished.save(counter, number)
                bar.update(position - bar.n)
        counts = self._cache.add(counter.finished())
        unfinished.remove()
        return counts


def _default_folder() -> Path:
    return cache_folder() / "pmi"


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
