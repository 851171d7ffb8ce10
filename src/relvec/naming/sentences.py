"""A pair said as a sentence: the two words in the place of X and Y."""

import re

from relvec.errors import RelvecError
from relvec.pairs import Pair

_SLOT = re.compile(r"\b(?:(a|the) )?([XY])\b")
_AN = re.compile(r"(?!eu|one|uni|us[eu]|uti)[aeiou]|heir|honest|honor|hour")
_NO_PLURAL = ("ss", "us", "is")


def as_definition(text: str) -> str:
    """Check that a relation is said in words, with an X and a Y for the two that it relates.

    >>> as_definition(" Y is a  tool of X ")
    'Y is a tool of X'
    """
    definition = " ".join(text.split())
    if not {"X", "Y"} <= set(re.findall(r"\w+", definition)):
        problem = f"{definition!r} does not say which words are related"
        raise RelvecError(f'{problem}; write X and Y in it, as in "Y is a tool of X".')
    return definition


def filled(sentence: str, pair: Pair) -> str:
    """The sentence with head and tail for X and Y.

    An article before X or Y becomes "an" before a vowel, and is left out before a name; "a" also before a plural.

    >>> filled("a X uses the Y", ("electrician", "pliers")), filled("a X uses the Y", ("scissors", "Paris"))
    ('an electrician uses the pliers', 'scissors uses Paris')
    """
    words = dict(zip("XY", pair, strict=True))
    return _SLOT.sub(lambda slot: _with_article(slot[1], words[slot[2]]), sentence)


def with_slots_swapped(sentence: str) -> str:
    """The sentence with X for Y and Y for X.

    >>> with_slots_swapped("the Y is a place for keeping X")
    'the X is a place for keeping Y'
    """
    return re.sub(r"\b[XY]\b", lambda slot: "Y" if slot[0] == "X" else "X", sentence)


def _with_article(article: str | None, word: str) -> str:
    if article is None or word[0].isupper() or word.startswith("the "):
        return word
    if article == "the":
        return f"the {word}"
    if word.endswith("s") and not word.endswith(_NO_PLURAL):
        return word
    return f"an {word}" if _AN.match(word) else f"a {word}"
