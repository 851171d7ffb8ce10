r"""Pairs as keys `head__tail` of word2vec files, as the authors published theirs.

A blank within a word is written `_`, a true underscore `\_`, a backslash `\\`. So (ice cream, snake_case) has the key
`ice_cream__snake\_case`. Files of others, which know no backslash, read as they always did.
"""

import re

from relvec.baselines.pair_vectors import BETWEEN_WORDS
from relvec.errors import RelvecError
from relvec.pairs import Pair, as_word

_PART = re.compile(r"\\(.)|(__)|(_)", re.DOTALL)


def key_of(pair: Pair) -> str:
    r"""
    >>> key_of(("ice cream", "summer")), key_of(("snake_case", "C\\D"))
    ('ice_cream__summer', 'snake\\_case__C\\\\D')
    """
    return BETWEEN_WORDS.join(word.replace("\\", "\\\\").replace("_", "\\_").replace(" ", "_") for word in pair)


def pair_of(key: str, where: str = "") -> Pair:
    r"""
    >>> pair_of("ice_cream__summer"), pair_of("snake\\_case__C\\\\D")
    (('ice cream', 'summer'), ('snake_case', 'C\\D'))
    """
    words = _PART.sub(lambda part: part[1] or ("\n" if part[2] else " "), key).split("\n")
    if len(words) != 2:
        raise RelvecError(f"{where}the key {key!r} is no pair; write it as head{BETWEEN_WORDS}tail.")
    return as_word(words[0], f"{where}in {key!r} "), as_word(words[1], f"{where}in {key!r} ")
