"""The command-line application and how it fails."""

import errno
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer

from relvec import __version__
from relvec.cli.output import warn
from relvec.errors import LeftOutWarning, RelvecError, UnknownWordsWarning, needed_for

_STOPPED = 130  # the exit code of Ctrl-C
# So say torch, CUDA, FAISS and Python.
_OUT_OF_MEMORY = ("allocate memory", "out of memory", "bad_alloc", "bad allocation", "can't start new thread")
_FIXES = {errno.ENAMETOOLONG: "shorten the name", errno.ENOSPC: "free space, or choose another place"}
_UsageError: Any = typer.BadParameter.__bases__[0]  # it has no public name, and typer has its own or click's

_LONGEST_TEXT = 280
# What a user typed stands in quotes, or is one word; no sentence of ours has so long a word or quotation.
_TYPED = re.compile(rf"""'[^']{{{_LONGEST_TEXT},}}'|"[^"]{{{_LONGEST_TEXT},}}"|\S{{{_LONGEST_TEXT + 1},}}""")

COMMANDS = {
    "explain": "explain",
    "relations": "explain",
    "find": "explain",
    "similarity": "similarity",
    "solve": "similarity",
    "neighbours": "neighbours",
    "complete": "neighbours",
    "embed": "embed",
    "serve": "serve",
    "train": "train",
    "merge": "models",
    "export": "models",
    "distill": "distill",
    "baselines": "baselines",
    "report": "report",
    "reproduce": "reproduce",
    "models": "models",
    "fetch": "models",
    "prompt": "prompt",
    "index": "index",
    "evaluate": "evaluate",
    "analyse": "analyse",
    "data": "data",
    "cache": "cache",
    "verify": "verify",
}
"""The modules of the commands; each has a function of the command's name, or an `app` of several commands."""


def make_app(commands: Iterable[str] = COMMANDS) -> typer.Typer:
    """The application with some of its commands, whose modules are imported here.

    >>> [command.callback.__name__ for command in make_app(["similarity"]).registered_commands]
    ['similarity']
    """
    app = typer.Typer(
        name="relvec",
        help="How are two words related? Turn word pairs into relation vectors and compare them.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # its tables cut long options off
    )
    app.callback()(_options)
    for name in commands:
        module = import_module(f"relvec.cli.{COMMANDS[name]}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command()(getattr(module, name))
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"relvec {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command; bad input is one line on stderr for each fault and exit code 2, Ctrl-C is exit code 130."""
    try:
        with _warnings_in_one_line(), needed_for("This command"):
            first = sys.argv[1] if len(sys.argv) > 1 else ""
            app = make_app([first] if first in COMMANDS else COMMANDS)  # a command does not wait for the others
            code = app(prog_name="relvec", standalone_mode=False)
        if code == _STOPPED:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code)
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("relvec: stopped.", err=True)
        sys.exit(_STOPPED)
    except BrokenPipeError:
        # The reader of our output has gone; keep the interpreter from complaining when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        sentence = _sentence(error)
        if sentence is None:
            raise
        for line in sentence.splitlines():
            typer.secho(f"relvec: {shortened(line)}", fg="red", err=True)
        sys.exit(2)


def _sentence(error: Exception) -> str | None:
    """What went wrong, in a sentence with the fix; empty if help has been printed instead, None for a bug.

    >>> _sentence(OSError(36, "File name too long", "x" * 300))[:40]
    'File name too long: xxxxxxxxxxxxxxxxxxxx'
    """
    if isinstance(error, RelvecError):
        return str(error)
    if isinstance(error, _UsageError):
        return _usage_sentence(error)
    if isinstance(error, MemoryError) or any(sign in str(error) for sign in _OUT_OF_MEMORY):
        return "There is not enough memory; use smaller settings or a smaller model, or end other programs."
    if isinstance(error, OSError):  # of a place: where the code could say more, it has
        place = f": {error.filename}" if error.filename else ""
        return f"{error.strerror or error}{place}; {_FIXES.get(error.errno or 0, 'choose another place')}."
    return None


def _usage_sentence(error: Any) -> str:
    """What was wrong with the words of a command, and where to look; empty if its help has been printed instead.

    >>> _usage_sentence(typer.BadParameter("Input should be a valid integer, unable to parse", param_hint="'-k'"))
    "Invalid value for '-k': it should be a valid integer; see relvec --help."
    """
    if error.ctx and error.format_message() == error.ctx.get_help():  # a group was given without a command
        typer.echo(error.format_message())
        return ""
    said = " ".join(error.format_message().split())
    said = re.sub(r"Input (should be [^,]*).*", r"it \1", said)
    said = said.replace(". Did you mean", ", did you mean").rstrip(".?")
    return f"{said}; see {error.ctx.command_path if error.ctx else 'relvec'} --help."


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Each warning is one line; pairs with unknown words make one at the end, however many steps they took."""
    found: list[UnknownWordsWarning] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", UnknownWordsWarning)
        show = warnings.showwarning

        def gather(message: Warning | str, *details: Any, **more: Any) -> None:
            if isinstance(message, UnknownWordsWarning):
                found.append(message)
            elif isinstance(message, LeftOutWarning):
                warn(str(message))
            else:
                show(message, *details, **more)

        warnings.showwarning = gather
        try:
            yield
        finally:
            if found:
                warn(str(_merged(found)))


def _merged(found: list[UnknownWordsWarning]) -> UnknownWordsWarning:
    if len(found) == 1:
        return found[0]
    return UnknownWordsWarning(list(dict.fromkeys(pair for each in found for pair in each.pairs)), found[0].word)


def shortened(sentence: str) -> str:
    """A sentence with the middle left out of what a user typed, where that is longer than a screen.

    >>> len(shortened("a" * 10_000_000 + " is no pair.")), len(shortened(f"Unknown table {'a b ' * 1000!r}."))
    (292, 295)
    >>> shortened("no file; " * 1000) == "no file; " * 1000
    True
    """
    half = _LONGEST_TEXT // 2
    return _TYPED.sub(lambda found: f"{found[0][: half - 3]} ... {found[0][2 - half :]}", sentence)
