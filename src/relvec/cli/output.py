"""The one place where commands print: tables on a terminal, tab-separated lines when piped, JSON for machines."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import typer

from relvec.pairs import Pair


class Table(NamedTuple):
    """Rows under their columns; a cell that is None is printed as a dash."""

    columns: Sequence[str]
    rows: Iterable[Iterable[Any]]
    title: str | None = None

    def texts(self) -> list[list[str]]:
        return [["-" if cell is None else str(cell) for cell in row] for row in self.rows]


def facts_table(
    facts: Mapping[str, Any], columns: Sequence[str] = ("what", "value"), title: str | None = None
) -> Table:
    """Names and values, one row each.

    >>> facts_table({"train_pairs": 12}).texts()
    [['train pairs', '12']]
    """
    return Table(columns, [[name.replace("_", " "), value] for name, value in facts.items()], title)


def plan_table(plan: Mapping[str, float]) -> Table:
    """The size of a run.

    >>> plan_table({"train_pairs": 1264, "seconds": 71.3}).texts()
    [['train pairs', '1,264'], ['seconds', '71']]
    """
    return facts_table({name: f"{round(value):,}" for name, value in plan.items()}, ("what", "how much"))


def message(text: str) -> None:
    """Say on stderr what was done; stdout has results alone."""
    typer.echo(text, err=True)


def warn(text: str) -> None:
    """A warning, in one line on stderr."""
    typer.secho(f"relvec: warning: {text}", fg="yellow", err=True)


def show(as_json: bool, value: Any, *tables: Table, note: str = "") -> None:
    """Print `value` as JSON where it was asked for; else the tables, and the note on stderr."""
    if as_json:
        typer.echo(json.dumps(value, ensure_ascii=False, indent=2))
        return
    for table in tables:
        _print(table)
    if note:
        message(note)


def _print(table: Table) -> None:
    """A table for people, with columns of numbers to the right; plain tab-separated lines when the output is piped."""
    from rich import table as rich
    from rich.console import Console

    rows = table.texts()
    console = Console(markup=False, emoji=False, highlight=False)  # a user's word is no markup
    if not console.is_terminal:
        typer.echo("\n".join("\t".join(row) for row in [table.columns, *rows]))
        return
    printed = rich.Table(title=table.title, title_justify="left")
    for place, column in enumerate(table.columns):
        justify: Any = "right" if _is_numeric([row[place] for row in rows]) else "left"
        printed.add_column(column, justify=justify, overflow="fold")  # no word is cut off
    for row in rows:
        printed.add_row(*row)
    console.print(printed)


def pair_json(pair: Pair) -> dict[str, Any]:
    """A pair as people write it, and its words, which may have a colon themselves."""
    return {"pair": ":".join(pair), "head": pair[0], "tail": pair[1]}


def _is_numeric(cells: Sequence[str]) -> bool:
    """
    >>> _is_numeric(["0.91", "-", "1,204 M"]), _is_numeric(["3 words", "two"]), _is_numeric(["", "-"])
    (True, False, False)
    """
    filled = [cell for cell in cells if cell not in ("", "-")]
    return bool(filled) and all(cell.lstrip("+-")[:1].isdigit() for cell in filled)
