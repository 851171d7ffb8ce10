"""A table as Markdown."""

import re

from relvec.report.table import Column, Row, Table


def markdown(table: Table, figure: str = "") -> str:
    """The table with its title, what it is, warnings, the numbers, its figure, and the commands behind them."""
    best = table.best()
    titles = [*table.label_titles, *(column.title for column in table.columns)]
    aligned = ["---"] * len(table.label_titles) + ["---:"] * len(table.columns)
    lines = [_line([*map(escape, titles), *(["source"] if table.has_origin else [])])]
    lines.append(_line(aligned + (["---"] if table.has_origin else [])))
    for number, row in enumerate(table.rows):
        cells = [*map(escape, row.labels)]
        cells += [_cell(row, column, is_best=(number, column.key) in best) for column in table.columns]
        lines.append(_line(cells + ([escape(row.origin or "measured")] if table.has_origin else [])))
    parts = [f"## {escape(table.title)}", escape(table.description)]
    parts += [f"> **Warning:** {escape(warning)}" for warning in table.warnings]
    parts += ["\n".join(lines), *map(escape, table.checks)]
    if figure:
        parts.append(f"![{table.title}]({figure})")
    if table.commands:
        listed = "\n".join(table.commands)
        parts.append(f"<details><summary>Commands</summary>\n\n```sh\n{listed}\n```\n\n</details>")
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Text that Markdown shows as it is, in a table too.

    >>> escape("[h] is the <mask> | of *")
    '[h] is the &lt;mask> \\\\| of \\\\*'
    """
    return re.sub(r"([\\|*`])", r"\\\1", " ".join(text.split())).replace("<", "&lt;")


def _cell(row: Row, column: Column, is_best: bool) -> str:
    if column.key not in row.values:
        return "-"
    text = escape(row.values[column.key].text(column.decimals))
    return f"**{text}**" if is_best else text


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
