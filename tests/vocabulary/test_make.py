"""The script that makes the pair vocabulary, run on a WordNet and a GloVe of a few words."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relvec.io.tables import read_related_pairs
from relvec.pairs import Pair

SCRIPT = Path(__file__).parents[2] / "vocabulary" / "make.py"

NOUNS = """\
00000100 05 n 01 pelican 0 001 @ 00000200 n 0000 | a large bird with a pouch for fish; "a pelican of metal"
00000200 05 n 01 seabird 0 001 @ 00000300 n 0000 | a bird of the sea
00000300 05 n 01 bird 0 002 @ 00000400 n 0000 %p 00000500 n 0000 | a creature that flies
00000400 03 n 01 entity 0 000 | all that is
00000500 05 n 01 wing 0 000 | what it flies with
00000600 15 n 01 Paris 0 001 @i 00000700 n 0000 | the capital of France
00000700 15 n 01 city 0 000 | a large place
00000800 05 n 01 wolf 0 000 | a wild animal
00000900 05 n 01 fish 0 000 | what swims
00001000 18 n 01 Smith 0 001 @i 00000300 n 0000 | a surname
"""
BIRDS = ["pelican", "seabird", "bird", "wing", "fish", "heron", "gull", "tern", "duck", "goose", "swan", "hawk", "owl"]
OFTEN_SAID = "; ".join(4 * ["tall", "short", "city"])  # so that two birds do not meet by chance
EXAMPLES = {
    "hawk": "a hawk saw an owl",
    "owl": "an owl, a tall wolf, a hawk",
    "duck": "a goose, a tall wolf",
}
NOUNS += "".join(
    f"{number:08} 05 n 01 {bird} 0 000 | a kind; {OFTEN_SAID}; {EXAMPLES.get(bird, '')}\n"
    for number, bird in enumerate(BIRDS[5:], start=3000)
)
ADJECTIVES = """\
00002000 00 a 01 tall 0 001 ! 00002100 a 0101 | of great height
00002100 00 a 01 short 0 001 ! 00002000 a 0101 | of little height
"""
INDEX_OF_NOUNS = "".join(f"{line.split()[4].lower()} n 1 1 @ 1 1 {line.split()[0]}\n" for line in NOUNS.splitlines())
INDEX_OF_ADJECTIVES = "tall a 1 1 ! 1 1 00002000\nshort a 1 1 ! 1 1 00002100\n"
OTHERS = ["wolf", "wolves", "tall", "taller", "tallest", "short", "paris", "city", "smith", "pelicans"]


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    for name, text in {
        "data.noun": NOUNS,
        "data.adj": ADJECTIVES,
        "index.noun": "  1 a licence\n" + INDEX_OF_NOUNS,
        "index.adj": INDEX_OF_ADJECTIVES,
        "noun.exc": "wolves wolf\n",
    }.items():
        (tmp_path / name).write_text(text)
    filler = [f"word{number}" for number in range(120)]  # the most frequent words are associated with none
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(len(filler) + len(BIRDS) + len(OTHERS), 50)).astype(np.float32)
    vectors[len(filler) : len(filler) + len(BIRDS)] += 2
    vectors[-3:-1] = vectors[-3]
    np.savez(tmp_path / "glove.npz", words=np.array([*filler, *BIRDS, *OTHERS]), vectors=vectors)
    return tmp_path


def run(inputs: Path, *more: str) -> subprocess.CompletedProcess[str]:
    arguments = ["--wordnet", str(inputs), "--glove", str(inputs / "glove.npz"), "-o", str(inputs / "pairs.tsv")]
    return subprocess.run([sys.executable, str(SCRIPT), *arguments, *more], capture_output=True, text=True, check=False)


@pytest.fixture
def made(inputs: Path) -> dict[Pair, str]:
    done = run(inputs)
    assert done.returncode == 0, done.stderr
    return dict(read_related_pairs(inputs / "pairs.tsv"))


def test_each_source_gives_its_pairs_with_their_relation(made: dict[Pair, str]) -> None:
    expected = {
        ("swan", "cygnet"): "animal-to-young",
        ("barista", "coffee"): "",
        ("wolf", "wolves"): "plural",
        ("tall", "taller"): "comparative",
        ("tall", "short"): "antonym",
        ("short", "tall"): "antonym",
        ("pelican", "seabird"): "hypernym",
        ("bird", "wing"): "part meronym",
        ("pelican", "wing"): "part meronym",
        ("pelican", "fish"): "has in its definition",
        ("fish", "pelican"): "in the definition of",
        ("heron", "gull"): "",
    }
    assert {pair: made.get(pair) for pair in expected} == expected


def test_words_that_meet_more_than_once_are_a_pair_if_they_are_similar(inputs: Path) -> None:
    counts = run(inputs).stderr
    assert " 2 WordNet: met together" in counts  # hawk and owl, and back; not wolf and tall, nor goose and wolf


def test_words_that_say_nothing_and_surnames_are_left_out(made: dict[Pair, str]) -> None:
    words = {word for pair in made for word in pair}
    assert "Smith" not in words
    assert ("bird", "entity") not in made


def test_no_pair_occurs_twice_in_another_case(made: dict[Pair, str]) -> None:
    assert len({(head.lower(), tail.lower()) for head, tail in made}) == len(made)


def test_the_same_input_gives_the_same_sorted_file_of_at_most_the_size(inputs: Path) -> None:
    assert "50 pairs" in run(inputs, "--size", "50").stderr
    first = (inputs / "pairs.tsv").read_text()
    run(inputs, "--size", "50")
    rows = [tuple(line.split("\t")) for line in first.splitlines()[1:]]
    assert (inputs / "pairs.tsv").read_text() == first
    assert rows == sorted(rows)
    assert len(rows) == 50


def test_a_broken_line_of_the_index_is_named(inputs: Path) -> None:
    (inputs / "index.adj").write_text("tall a one\n")
    done = run(inputs)
    assert done.returncode == 1
    assert "index.adj, line 1: not a word of WordNet's index" in done.stderr
