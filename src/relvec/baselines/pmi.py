"""Point-wise mutual information: how much more often two words co-occur than chance would have it (section 4.3)."""

import hashlib
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from relvec.baselines.baseline import FACTS, Baseline, Context, always
from relvec.baselines.cooccurrence import CooccurrenceCounter, PairCounts, TermPair, terms_of
from relvec.data.benchmarks.analogy import Question
from relvec.evaluation.systems import Scores, System, told
from relvec.io.files import checksum, expanded, unpacked
from relvec.pairs import Pair
from relvec.progress import progress_bar
from relvec.settings import Settings
from relvec.storage.cache import Cache

WINDOW = 10
BLOCKS_PER_SAVE = 64
_BLOCK_LETTERS = 1 << 20


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
        show_progress: bool | None = None,
    ) -> None:
        self.name = name
        self._corpus = expanded(corpus)
        self._window = window
        self._pairs = list(pairs)
        self._show_progress = show_progress
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
        with progress_bar(self._size, f"Counting in {self._corpus.name}", unit="B", show=self._show_progress) as bar:
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

    corpus: Annotated[str, Field(description="a text file, .gz or not")]
    window: Annotated[int, Field(ge=1, description="how many tokens apart the words may be")] = WINDOW


def _build(settings: PMISettings, context: Context) -> System:
    window = settings.window
    name = context.name or told("PMI", f"window {window}" if window != WINDOW else "")
    return System(name, always(PMI(settings.corpus, window, pairs=context.pairs, name=name)), facts=FACTS)


BASELINE = Baseline("pmi", "the choice whose words co-occur most in a corpus, whatever the stem", _build, PMISettings)
