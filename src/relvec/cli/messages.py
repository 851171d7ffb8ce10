"""What a command says on stderr, one line each: a usage error, and the warnings of a run."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from relvec.errors import LeftOutWarning, UnknownWordsWarning

UsageError: Any = typer.BadParameter.__bases__[0]  # it has no public name, and typer has its own or click's


def usage_sentence(error: Any) -> str:
    """What was wrong with the words of a command, and where to look; empty if its help has been printed instead.

    >>> usage_sentence(typer.BadParameter("Input should be a valid integer, unable to parse string", param_hint="'-k'"))
    "Invalid value for '-k': it should be a valid integer; see relvec --help."
    """
    said = " ".join(error.format_message().split())
    if not said:
        return ""
    said = re.sub(r"Input (should be [^,]*).*", r"it \1", said)
    said = said.replace(". Did you mean", ", did you mean").rstrip(".?")
    return f"{said}; see {error.ctx.command_path if error.ctx else 'relvec'} --help."


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Each warning is one line; pairs with unknown words make one at the end, however many steps they took."""
    found: list[UnknownWordsWarning] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", UnknownWordsWarning)
        show = warnings.showwarning

        def gather(message: Warning | str, *details: Any, **more: Any) -> None:
            if isinstance(message, UnknownWordsWarning):
                found.append(message)
            elif isinstance(message, LeftOutWarning):
                _say(message)
            else:
                show(message, *details, **more)

        warnings.showwarning = gather
        try:
            yield
        finally:
            if found:
                _say(_together(found))


def _say(warning: Warning) -> None:
    typer.secho(f"relvec: warning: {warning}", fg="yellow", err=True)


def _together(found: list[UnknownWordsWarning]) -> UnknownWordsWarning:
    if len(found) == 1:
        return found[0]
    return UnknownWordsWarning(list(dict.fromkeys(pair for each in found for pair in each.pairs)), found[0].word)
