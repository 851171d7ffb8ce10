import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relvec.baselines import pmi as module
from relvec.baselines.pmi import NEVER_TOGETHER, PMI, CooccurrenceCounter, Term, term_of, terms_of
from relvec.data.benchmarks.analogy import Question
from relvec.errors import RelvecError
from relvec.pairs import Pair
from relvec.storage.cache import cache_info

TEXT = "A cup of tea.\nThe barista makes coffee, coffee and Ice-Cream; a cup!\nTea is far from here\ncup\n"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT)
    return path


def asking(*choices: Pair, stem: Pair = ("a", "b")) -> Question:
    return Question(stem, choices, answer=0)


def naive(lines: list[list[str]], first: Term, second: Term, window: int) -> int:
    """Every place of one term against every place of the other."""

    def places(line: list[str], term: Term) -> list[tuple[int, int]]:
        size = len(term)
        return [(at, at + size - 1) for at in range(len(line)) if tuple(line[at : at + size]) == term]

    count = 0
    for line in lines:
        for start, end in places(line, first):
            for other_start, other_end in places(line, second):
                is_before, is_after = 0 < other_start - end <= window, 0 < start - other_end <= window
                count += is_before or (is_after and first != second)
    return count


@given(
    st.lists(st.lists(st.sampled_from("abcx"), max_size=12), max_size=5),
    st.integers(1, 4),
    st.integers(1, 9),
)
def test_counts_are_those_of_a_naive_count_however_the_text_is_cut(
    lines: list[list[str]], window: int, block_tokens: int
) -> None:
    terms: list[Term] = [("a",), ("b",), ("a", "b"), ("b", "b"), ("c", "a", "b")]
    pairs = [terms_of((" ".join(one), " ".join(other))) for one in terms for other in terms]
    counter = CooccurrenceCounter(pairs, window)
    pieces = [token for line in lines for token in (*line, "\n")]
    for start in range(0, len(pieces), block_tokens):
        counter.add(" ".join(pieces[start : start + block_tokens]))
    counts = counter.finished()
    for first, second in pairs:
        assert counts[first, second].tokens == sum(map(len, lines))
        assert counts[first, second].together == naive(lines, first, second, window)


def test_pmi_is_the_logarithm_of_how_often_over_how_often_by_chance(corpus: Path, tmp_path: Path) -> None:
    (scores,) = PMI(corpus, cache_folder=tmp_path).scores([asking(("tea", "cup"), ("coffee", "barista"))])
    tokens = 4 + 10 + 5 + 1
    assert scores == pytest.approx([math.log2(tokens * 1 / (2 * 3)), math.log2(tokens * 2 / (2 * 1))])


def test_neither_the_stem_nor_the_direction_matters(corpus: Path, tmp_path: Path) -> None:
    pmi = PMI(corpus, cache_folder=tmp_path)
    one, other = pmi.scores([asking(("tea", "cup")), asking(("cup", "TEA"), stem=("x", "y"))])
    assert one == other


def test_an_unseen_word_has_no_score_but_one_that_is_never_met_has(corpus: Path, tmp_path: Path) -> None:
    (scores,) = PMI(corpus, cache_folder=tmp_path).scores([asking(("tea", "wine"), ("tea", "coffee"), ("tea", "?!"))])
    assert np.isnan(scores).tolist() == [True, False, True]
    assert scores[1] == NEVER_TOGETHER


def test_words_co_occur_within_the_window_and_the_line_only(corpus: Path, tmp_path: Path) -> None:
    question = asking(("barista", "coffee"), ("here", "cup"))
    (near,) = PMI(corpus, window=1, cache_folder=tmp_path).scores([question])
    assert near.tolist() == [NEVER_TOGETHER, NEVER_TOGETHER]
    (far,) = PMI(corpus, window=2, cache_folder=tmp_path).scores([question])
    assert far[0] > NEVER_TOGETHER == far[1]


def test_a_term_of_several_tokens_is_their_sequence(corpus: Path, tmp_path: Path) -> None:
    assert term_of("ice_cream") == term_of("Ice cream") == term_of("ice-cream") == ("ice", "cream")
    question = asking(("ice cream", "barista"), ("cream", "ice cream"))
    (scores,) = PMI(corpus, cache_folder=tmp_path).scores([question])
    assert scores == pytest.approx([math.log2(20), NEVER_TOGETHER])


def test_a_packed_corpus_counts_the_same(corpus: Path, tmp_path: Path) -> None:
    packed = tmp_path / "corpus.gz"
    packed.write_bytes(gzip.compress(TEXT.encode()))
    question = asking(("tea", "cup"), ("coffee", "barista"))
    plain, unpacked = (PMI(path, cache_folder=tmp_path).scores([question])[0] for path in (corpus, packed))
    assert plain.tolist() == unpacked.tolist()


def test_a_line_longer_than_a_block_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("tea " + "x " * 700_000 + "tea cup" + " ö" * 700_000 + " wine cup")
    question = asking(("tea", "cup"), ("wine", "cup"))
    (scores,) = PMI(tmp_path / "long.txt", cache_folder=tmp_path).scores([question])
    assert (scores > NEVER_TOGETHER).all()
    assert scores[0] == pytest.approx(scores[1] - 1)  # tea occurs twice, wine once


def test_what_was_counted_is_never_counted_again(corpus: Path) -> None:
    question = asking(("tea", "cup"), ("tea", "wine"), ("tea", "?!"))
    (first,) = PMI(corpus, pairs=[("coffee", "barista")]).scores([question])
    later = PMI(corpus)
    corpus.unlink()  # whoever read it again would fail
    (second,) = later.scores([question])
    assert np.array_equal(first, second, equal_nan=True)
    assert later.scores([asking(("barista", "coffee"))])[0] > 0
    with pytest.raises(RelvecError, match=r"Cannot read .*corpus\.txt"):
        later.scores([asking(("tea", "coffee"))])


def test_a_pass_that_was_killed_resumes_to_the_same_counts(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK_LETTERS", 8)
    monkeypatch.setattr(module, "BLOCKS_PER_SAVE", 3)
    question = asking(("tea", "cup"), ("barista", "ice cream"), ("coffee", "cup"))
    (expected,) = PMI(corpus, cache_folder=tmp_path / "other").scores([question])
    add = CooccurrenceCounter.add
    counted: list[str] = []
    most = 5

    def killed(counter: CooccurrenceCounter, block: str) -> None:
        if len(counted) == most:
            raise KeyboardInterrupt
        counted.append(block)
        add(counter, block)

    monkeypatch.setattr(CooccurrenceCounter, "add", killed)
    with pytest.raises(KeyboardInterrupt):
        PMI(corpus, cache_folder=tmp_path / "counts").scores([question])
    lost = counted[3:]
    counted, most = [], 99
    (found,) = PMI(corpus, cache_folder=tmp_path / "counts").scores([question])
    assert counted[:2] == lost
    assert found.tolist() == expected.tolist()
    assert [space.entries for space in cache_info(tmp_path / "counts")] == [3]  # the pass itself is forgotten


def test_a_further_pass_keeps_the_counts_of_the_first(corpus: Path, tmp_path: Path) -> None:
    pmi = PMI(corpus, cache_folder=tmp_path)
    (before,) = pmi.scores([asking(("tea", "cup"))])
    pmi.scores([asking(("coffee", "cup"))])
    assert pmi.scores([asking(("tea", "cup"), ("coffee", "cup"))])[0][0] == before[0]


def test_the_fingerprint_depends_on_text_and_window_only(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text(TEXT + "more")
    made = [PMI(corpus), PMI(corpus, pairs=[("a", "b")]), PMI(corpus, window=5), PMI(tmp_path / "other.txt")]
    assert len({pmi.fingerprint for pmi in made}) == 3


def test_bytes_that_are_not_text_only_separate_tokens(tmp_path: Path) -> None:
    (tmp_path / "mixed.txt").write_bytes(b"tea\xff cup")
    assert PMI(tmp_path / "mixed.txt", cache_folder=tmp_path).scores([asking(("tea", "cup"))])[0] == [1.0]


def test_a_corpus_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match=r"Cannot read .*none\.txt"):
        PMI(tmp_path / "none.txt")
    (tmp_path / "broken.gz").write_bytes(gzip.compress(TEXT.encode())[:-9])
    with pytest.raises(RelvecError, match=r"broken\.gz is not a complete gzip file"):
        PMI(tmp_path / "broken.gz", cache_folder=tmp_path).scores([asking(("tea", "cup"))])
