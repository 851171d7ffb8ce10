"""How a word may be written as a key of a file of vectors."""

import re

_BETWEEN_PARTS = re.compile(r"[\s_-]+")


def parts_of(word: str) -> list[str]:
    """
    >>> parts_of("ice cream"), parts_of("brass_instrument"), parts_of("self-made")
    (['ice', 'cream'], ['brass', 'instrument'], ['self', 'made'])
    """
    return [part for part in _BETWEEN_PARTS.split(word) if part]


def spellings(word: str) -> list[str]:
    """The keys under which a word may stand in a file, in the order in which they are tried.

    >>> spellings("Ice cream")
    ['Ice cream', 'ice cream', 'Ice_cream', 'ice_cream', 'Ice-cream', 'ice-cream']
    """
    parts = parts_of(word)
    written = [word, "_".join(parts), "-".join(parts)] if len(parts) > 1 else [word]
    return list(dict.fromkeys(spelling for form in written for spelling in (form, form.lower())))
