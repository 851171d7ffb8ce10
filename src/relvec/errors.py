"""The one error that users see: what was wrong, where, and how to mend it."""

import difflib
from collections.abc import Iterable


class RelvecError(ValueError):
    """Bad input, a missing model or a broken file; the message is one sentence that ends in the fix."""


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The end of a message about an unknown name: the known one that it comes close to, else other advice.

    >>> did_you_mean("tripelt", ["triplet", "infonce"], otherwise="see the list")
    "did you mean 'triplet'"
    """
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]!r}" if close else otherwise
