"""Options that several commands share, and how they print."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

Model = Annotated[str, typer.Option("--model", "-m", help="A model name, a folder or a hub id.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, mps; by default the fastest there is.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
ScoringOption = Annotated[str, typer.Option(help="forward, reverse or bidirectional.")]
DataDir = Annotated[
    Path | None, typer.Option(help="The folder with the datasets; by default $RELVEC_DATA, else the hub.")
]


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(
    columns: list[str], rows: list[list[str]], title: str | None = None, right: tuple[str, ...] = ()
) -> None:
    """A table for people; plain tab-separated lines when the output is piped."""
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, emoji=False, highlight=False)  # a user's word is no markup
    if not console.is_terminal:
        typer.echo("\n".join("\t".join(row) for row in [columns, *rows]))
        return
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left")
    for row in rows:
        table.add_row(*row)
    console.print(table)
