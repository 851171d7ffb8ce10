"""The one place where commands print: a table on a terminal, tab-separated lines when piped, JSON for machines."""

import json
from collections.abc import Sequence
from typing import Any

import typer

from relvec.pairs import Pair


def show(
    as_json: bool, value: Any, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None
) -> None:
    """Print `value` as JSON where it was asked for, else the rows under their columns."""
    if as_json:
        print_json(value)
    else:
        print_table(columns, rows, title)


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> None:
    """A table for people, with columns of numbers to the right; plain tab-separated lines when the output is piped."""
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, emoji=False, highlight=False)  # a user's word is no markup
    if not console.is_terminal:
        typer.echo("\n".join("\t".join(row) for row in [columns, *rows]))
        return
    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if _is_numeric([row[place] for row in rows]) else "left")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def pair_json(pair: Pair) -> dict[str, Any]:
    """A pair as people write it, and its words, which may have a colon themselves."""
    return {"pair": ":".join(pair), "head": pair[0], "tail": pair[1]}


def _is_numeric(cells: Sequence[str]) -> bool:
    """
    >>> _is_numeric(["0.91", "-", "1,204 M"]), _is_numeric(["3 words", "two"]), _is_numeric(["", "-"])
    (True, False, False)
    """
    told = [cell for cell in cells if cell not in ("", "-")]
    return bool(told) and all(cell.lstrip("+-")[:1].isdigit() for cell in told)
