"""relvec report: tables and figures from saved results."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relvec.cli.options import Json, print_json, print_table

if TYPE_CHECKING:
    from relvec.report.table import Table

SHOWN = ("analogy", "classification", "mapping")


def report(
    runs: Annotated[Path, typer.Option(help="The folder in which `relvec evaluate` kept its results.")] = Path("runs"),
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the report.")] = Path("report"),
    no_figures: Annotated[bool, typer.Option("--no-figures", help="Write tables only.")] = False,
    json: Json = False,
) -> None:
    """Write tables and figures of all saved results, beside the published numbers."""
    from relvec.report.plain_rows import plain_rows
    from relvec.report.write import write_report

    tables = write_report(runs, output, with_figures=not no_figures)
    if json:
        print_json([{"name": table.name, "title": table.title, "rows": plain_rows(table)} for table in tables])
    else:
        for table in tables:
            if table.name in SHOWN:
                _print(table)
    for warning in dict.fromkeys(warning for table in tables for warning in table.warnings):
        typer.secho(f"Warning: {warning}", fg="yellow", err=True)
    typer.echo(f"{len(tables)} tables -> {output / 'results.md'}", err=True)


def _print(table: "Table") -> None:
    """Only whether a row was published, not by whom: that is on the page, and a terminal is narrow."""
    titles = [column.title for column in table.columns]
    rows = []
    for row in table.rows:
        values = [(row.values.get(column.key), column.decimals) for column in table.columns]
        texts = ["-" if value is None else value.text(decimals) for value, decimals in values]
        rows.append([*row.labels, *texts, "measured" if row.is_measured else "published"])
    print_table([*table.label_titles, *titles, "source"], rows, title=table.title, right=tuple(titles))
