"""Word pairs: what counts as one, and lists, arrays and tables of them."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from relvec.errors import RelvecError

Pair = tuple[str, str]

HEAD_COLUMNS = ("head", "h", "subj", "subject", "source", "from", "word1")
MOST_CHARACTERS = 10_000
TAIL_COLUMNS = ("tail", "t", "obj", "object", "target", "to", "word2")

_BETWEEN_PARTS = re.compile(r"[\s_-]+")


@dataclass(frozen=True)
class Prototype:
    """The relation that several example pairs share; it stands wherever a pair can stand.

    Its vector is the mean of the vectors of its pairs.

    >>> Prototype([("barista", "coffee"), ("baker", "bread")]).reversed().pairs
    (('coffee', 'barista'), ('bread', 'baker'))
    """

    pairs: tuple[Pair, ...]

    def __init__(self, pairs: Iterable[Sequence[str]]) -> None:
        object.__setattr__(self, "pairs", tuple(as_pair(pair) for pair in pairs))
        if not self.pairs:
            raise RelvecError("A prototype needs at least one example pair; give it some.")

    def reversed(self) -> "Prototype":
        return Prototype((tail, head) for head, tail in self.pairs)


Relation = Pair | Prototype


def reversed_relation(relation: Relation) -> Relation:
    """The relation from tail to head.

    >>> reversed_relation(("Paris", "France"))
    ('France', 'Paris')
    """
    return relation.reversed() if isinstance(relation, Prototype) else (relation[1], relation[0])


def as_word(word: Any, where: str = "") -> str:
    """The word without outer whitespace, and with single spaces inside.

    >>> as_word("  ice   cream ")
    'ice cream'
    """
    if not isinstance(word, str):
        raise RelvecError(f"{where}{word!r} is not a word; give two strings for each pair.")
    cleaned = " ".join(word.split())
    problem = ""
    if not cleaned:
        problem = "a word of the pair is empty; give both words"
    elif len(cleaned) > MOST_CHARACTERS:  # to cut it into tokens would take minutes
        problem = f"a word has {len(cleaned):,} characters; give at most {MOST_CHARACTERS:,}"
    elif not cleaned.isascii() and any("\ud800" <= letter <= "\udfff" for letter in cleaned):
        problem = f"{cleaned!a} is not UTF-8 text; give it as UTF-8"  # from a terminal, or JSON
    if problem:
        raise RelvecError(f"{where}{problem}.")
    return cleaned


def parts_of(word: str) -> list[str]:
    """The parts of a word that is written with spaces, hyphens or underscores.

    >>> parts_of("ice cream"), parts_of("brass_instrument"), parts_of("self-made")
    (['ice', 'cream'], ['brass', 'instrument'], ['self', 'made'])
    """
    return [part for part in _BETWEEN_PARTS.split(word) if part]


def as_pair(pair: Any, where: str = "") -> Pair:
    """Check that something is a pair of words.

    >>> as_pair(["Paris", "France "])
    ('Paris', 'France')
    """
    if not isinstance(pair, tuple | list) and hasattr(pair, "columns"):
        fix = "for the relation that its rows share, give RelBERT.prototype(table)"
        raise RelvecError(f"{where}a table of pairs stands where one pair is expected; {fix}.")
    has_order = isinstance(pair, Iterable) and not isinstance(pair, str | dict | set | frozenset)
    words = tuple(pair) if has_order else ()
    if len(words) != 2:
        raise RelvecError(f'{where}expected a pair of words such as ("Paris", "France"); give exactly two strings.')
    return as_word(words[0], where), as_word(words[1], where)


def as_relation(item: Any, where: str = "") -> Relation:
    return item if isinstance(item, Prototype) else as_pair(item, where)


def is_single(items: Any) -> bool:
    """Whether this is one pair (or prototype) rather than a collection of them."""
    if isinstance(items, Prototype):
        return True
    return isinstance(items, tuple | list) and len(items) == 2 and all(isinstance(word, str) for word in items)


def as_relations(items: Any) -> list[Relation]:
    """Relations from a list, a generator, an array or a table (columns head and tail, or its only two).

    >>> as_relations(pair for pair in [("a", "b"), ("c", "d")])
    [('a', 'b'), ('c', 'd')]
    """
    return [as_relation(item, where=f"Pair {number}: ") for number, item in enumerate(_rows_of(items), start=1)]


def as_pairs(items: Any) -> list[Pair]:
    """Like `as_relations`, for pairs only.

    >>> as_pairs([["a", "b"], ("c", "d")])
    [('a', 'b'), ('c', 'd')]
    """
    return [as_pair(item, where=f"Pair {number}: ") for number, item in enumerate(_rows_of(items), start=1)]


def _rows_of(items: Any) -> Iterable[Any]:
    if isinstance(items, str):
        raise RelvecError(f'{items!r} is not a pair; write ("head", "tail"), or a list of such pairs.')
    columns = table_columns(items)
    if columns is None:
        return items
    found = pair_columns(columns)
    if found is None:
        raise RelvecError(f"The table has columns {', '.join(columns)}; name the two word columns head and tail.")
    return zip(*(column_values(columns[name]) for name in found), strict=True)


def table_columns(table: Any) -> dict[str, Any] | None:
    """The columns of a table of pandas, polars, pyarrow or datasets by lower-cased name; None for what is no table."""
    names = getattr(table, "column_names", getattr(table, "columns", None))
    if names is None:
        return None
    names = list(names)
    lowered = column_names([str(name) for name in names], "The table: ")
    return dict(zip(lowered, (table[name] for name in names), strict=True))


def column_values(column: Any) -> Iterable[Any]:
    return column.to_pylist() if hasattr(column, "to_pylist") else column


def plain_values(column: Any) -> list[Any]:
    """The values of a column or list as plain Python has them, "" where one is missing.

    >>> import numpy as np
    >>> plain_values(np.array([1.5, np.nan])), plain_values(["a", None])
    ([1.5, ''], ['a', ''])
    """
    values = column.tolist() if hasattr(column, "tolist") else column_values(column)
    return ["" if is_missing(value) else value for value in values]


def is_missing(value: Any) -> bool:
    """Whether this is None, a missing value of pandas or numpy, or a number that is none."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # the NA of pandas is neither equal nor unequal to anything
        return True


def column_names(header: Sequence[str], where: str = "") -> list[str]:
    """Lower-cased names; the only two become head and tail if they say nothing.

    >>> column_names(["Subject", "Object", "Score "]), column_names(["0", "1"])
    (['subject', 'object', 'score'], ['head', 'tail'])
    """
    names = [name.strip().lower() for name in header]
    if repeated := [name for name in names if name and names.count(name) > 1]:
        raise RelvecError(f"{where}there are several columns {repeated[0]}; keep one of them.")
    return ["head", "tail"] if len(names) == 2 and pair_columns(names) is None else names


def pair_columns(names: Collection[str]) -> Pair | None:
    """The names of the head and the tail column, if there are such.

    >>> pair_columns(["relation", "subject", "object"])
    ('subject', 'object')
    """
    for head, tail in zip(HEAD_COLUMNS, TAIL_COLUMNS, strict=True):
        if head in names and tail in names:
            return head, tail
    return None


def parse_pair(text: str, where: str = "") -> Pair:
    """Read `head:tail`.

    >>> parse_pair("ice cream:summer")
    ('ice cream', 'summer')
    """
    words = text.split(":")
    if len(words) != 2:
        problem = "has no colon; write head:tail"
        if len(words) > 2:
            problem = "has more than one colon; write head:tail, and words with a colon in a .tsv or .csv file"
        raise RelvecError(f"{where}{text!r} {problem}.")
    return as_word(words[0], f"{where}in {text!r} "), as_word(words[1], f"{where}in {text!r} ")
