"""relvec report: tables and figures from saved results."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from relvec.cli.options import Json, output_option
from relvec.cli.output import Table, message, show, warn
from relvec.errors import needed_for


def report(
    runs: Annotated[Path, typer.Option(help="The folder in which `relvec evaluate` kept its results.")] = Path("runs"),
    output: Annotated[Path, output_option("The folder of the report.")] = Path("report"),
    no_figures: Annotated[bool, typer.Option("--no-figures", help="Write tables only.")] = False,
    json: Json = False,
) -> None:
    """Write tables and figures of results beside the published ones."""
    with needed_for("A report"):
        from relvec.report.formats import as_json, text_rows
        from relvec.report.page import write_report
        from relvec.report.registry import TABLES

    tables = write_report(runs, output, with_figures=not no_figures)
    printed = []
    for table in (table for table in tables if TABLES[table.name].is_printed):
        # Only whether a row was published, not by whom: that is on the page, and a terminal is narrow.
        short = tuple(replace(row, origin="published" if row.origin else "") for row in table.rows)
        printed.append(Table(*text_rows(replace(table, rows=short)), table.title))
    show(json, [as_json(table) for table in tables], *printed)
    for warning in dict.fromkeys(warning for table in tables for warning in table.warnings):
        warn(warning)
    message(f"{len(tables)} tables -> {output / 'results.md'}")
