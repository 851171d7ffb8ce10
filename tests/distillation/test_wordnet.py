from pathlib import Path

import pytest

from relvec import RelvecError
from relvec.distillation.wordnet import read_wordnet

LICENCE = "  1 This software and database is provided as it comes.\n"
NOUNS = """\
00000100 20 n 02 oak 0 oak_tree 0 003 @ 00000200 n 0000 %p 00000300 n 0000 ~ 00000400 n 0000 | a tree with acorns
00000200 20 n 01 tree 0 002 ~ 00000100 n 0000 + 00000900 v 0202 | a tall plant
00000300 20 n 01 acorn 0 001 #p 00000100 n 0000 | the fruit of an oak
00000400 20 n 02 white_American_oak 0 white_oak 1 001 @ 00000100 n 0000 | a kind of oak
00000500 20 n 01 one_two_three 0 001 @ 00000200 n 0000 | too long a term
00000600 15 n 01 Paris 0 002 @i 00000700 n 0000 @ 00099999 n 0000 | a city, and a pointer to nowhere
00000700 15 n 0a city 0 b 0 c 0 d 0 e 0 f 0 g 0 h 0 i 0 j 0 000 | ten words: their number is hexadecimal
"""
VERBS = """\
00000900 30 v 02 run 0 branch 0 002 * 00000910 v 0000 > 00000910 v 0000 01 + 02 00 | with a sentence frame | and a bar
00000910 30 v 01 move 0 000 01 + 02 00 | change place
"""
ADJECTIVES = """\
00001000 00 a 01 hot(p) 0 002 ! 00001100 a 0101 & 00001200 s 0000 | of high temperature
00001100 00 a 01 cold 0 001 ! 00001000 a 0101 | of low temperature
00001200 00 s 01 Hot 1 001 & 00001000 a 0000 | a namesake
"""


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    for name, lines in (("noun", NOUNS), ("verb", VERBS), ("adj", ADJECTIVES)):
        (tmp_path / f"data.{name}").write_text(LICENCE + lines)
    return tmp_path


def test_pointers_become_pairs_of_words(wordnet: Path) -> None:
    assert read_wordnet(wordnet) == [
        ("oak", "tree"),
        ("oak", "acorn"),
        ("white oak", "oak"),  # the first word of the synset has three parts
        ("Paris", "city"),
        ("run", "move"),
        ("hot", "cold"),
        ("cold", "hot"),
    ]


def test_a_pointer_between_words_joins_those_words(wordnet: Path) -> None:
    (wordnet / "data.noun").write_text(NOUNS.replace("v 0202", "v 0102"))
    assert ("tree", "branch") in read_wordnet(wordnet)


def test_a_folder_without_wordnet_is_named(tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match=r"holds no file of WordNet; give the folder with its data\.noun"):
        read_wordnet(tmp_path)


@pytest.mark.parametrize("line", ["00000100 20 n zz oak 0 000 | no number", "00000100 20 n 01 oak 0 002 @ 0000020"])
def test_a_broken_line_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "data.noun").write_text(LICENCE + line)
    with pytest.raises(RelvecError, match=r"data\.noun, line 2: not a synset"):
        read_wordnet(tmp_path)
