"""The command-line application and how it fails."""

import os
import sys
from typing import Annotated

import typer

from relvec import __version__
from relvec.cli import (
    analyse,
    baselines,
    complete,
    data,
    distill,
    embed,
    evaluate,
    fetch,
    index,
    merge,
    models,
    neighbours,
    prompt,
    report,
    similarity,
    solve,
    train,
)
from relvec.cli.messages import UsageError, usage_sentence, warnings_in_one_line
from relvec.errors import RelvecError, needed_for

_STOPPED = 130  # the exit code of Ctrl-C

app = typer.Typer(
    name="relvec",
    help="How are two words related? Turn word pairs into relation vectors and compare them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    similarity.similarity,
    solve.solve,
    neighbours.neighbours,
    complete.complete,
    embed.embed,
    train.train,
    merge.merge,
    distill.distill,
    baselines.baselines,
    report.report,
    models.models,
    fetch.fetch,
):
    app.command()(command)
app.add_typer(prompt.app, name="prompt")
app.add_typer(index.app, name="index")
app.add_typer(evaluate.app, name="evaluate")
app.add_typer(analyse.app, name="analyse")
app.add_typer(data.app, name="data")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"relvec {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command; bad input is one line on stderr and exit code 2, Ctrl-C is exit code 130."""
    try:
        with warnings_in_one_line(), needed_for("This command"):
            code = app(prog_name="relvec", standalone_mode=False)
        if code == _STOPPED:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code)
    except (RelvecError, UsageError) as error:
        sentence = str(error) if isinstance(error, RelvecError) else usage_sentence(error)
        if sentence:
            typer.secho(f"relvec: {sentence}", fg="red", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("relvec: stopped.", err=True)
        sys.exit(_STOPPED)
    except BrokenPipeError:
        # The reader of our output has gone; keep the interpreter from complaining when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
