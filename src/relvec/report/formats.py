"""A table as Markdown, LaTeX, plain text, CSV and JSON."""

import csv
import io
import re
from collections.abc import Callable
from itertools import groupby
from typing import Any

from relvec.report.table import Table

Escape = Callable[[str], str]

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_PARTS = {"sd": "deviation", "low": "low", "high": "high", "mark": "mark"}


def markdown(table: Table, figure: str = "") -> str:
    """The table with its title, what it is, warnings, the numbers and its figure; published systems are in italics."""
    titles, rows = text_rows(
        table, escape_markdown, bold=lambda text: f"**{text}**", italic=lambda text: f"*{text}*" if text else ""
    )
    labels = len(table.label_titles)
    numbers = len(titles) - labels - table.has_origin
    lines = [titles, ["---"] * labels + ["---:"] * numbers + ["---"] * table.has_origin, *rows]
    parts = [f"## {escape_markdown(table.title)}", escape_markdown(table.description)]
    parts += [f"> **Warning:** {escape_markdown(warning)}" for warning in table.warnings]
    parts += ["\n".join(f"| {' | '.join(line)} |" for line in lines), *map(escape_markdown, table.checks)]
    if figure:
        parts.append(f"![{table.title}]({figure})")
    return "\n\n".join(parts) + "\n"


def latex(table: Table) -> str:
    """A floating table; \\usepackage{booktabs} is all that it needs."""
    titles, rows = text_rows(
        table,
        escape_latex,
        bold=lambda text: rf"\textbf{{{text}}}",
        italic=lambda text: rf"\textit{{{text}}}" if text else "",
    )
    labels = len(table.label_titles)
    layout = "l" * labels + "r" * (len(titles) - labels - table.has_origin) + "l" * table.has_origin
    lines = [r"\begin{table*}[t]", r"\centering", r"\small", rf"\begin{{tabular}}{{{layout}}}", r"\toprule"]
    lines += [" & ".join(titles) + r" \\", r"\midrule"]
    for number, cells in enumerate(rows):
        if number and table.rows[number].is_measured != table.rows[number - 1].is_measured:
            lines.append(r"\midrule")
        lines.append(" & ".join(cells) + r" \\")
    notes = " ".join([table.description, *(f"Warning: {warning}" for warning in table.warnings)])
    caption = rf"\caption{{{escape_latex(table.title)}. {escape_latex(notes)}}}"
    label = rf"\label{{tab:{table.name.replace('_', '-')}}}"
    lines += [r"\bottomrule", r"\end{tabular}", caption, label, r"\end{table*}"]
    return "\n".join(lines) + "\n"


def text_rows(
    table: Table, escape: Escape = str, *, bold: Escape = str, italic: Escape = str
) -> tuple[list[str], list[list[str]]]:
    """The heading and the rows as text: labels (those of published rows in italics), numbers, the source.

    Columns of one group share a cell, such as `91.7 / 92.1`; `-` stands for what is missing.
    """
    best = table.best()
    groups = [list(columns) for _, columns in groupby(table.columns, key=lambda column: column.group or column.key)]
    titles = [*table.label_titles, *(columns[0].group or columns[0].title for columns in groups)]
    rows = []
    for number, row in enumerate(table.rows):
        cells = [escape(label) if row.is_measured else italic(escape(label)) for label in row.labels]
        for columns in groups:
            texts = []
            for column in columns:
                value = row.values.get(column.key)
                text = "-" if value is None else escape(value.text(column.decimals))
                texts.append(bold(text) if (number, column.key) in best else text)
            cells.append(" / ".join(texts) if set(texts) != {"-"} else "-")
        rows.append(cells + ([escape(row.origin or "measured")] if table.has_origin else []))
    return [*map(escape, titles), *(["source"] if table.has_origin else [])], rows


def plain_rows(table: Table) -> list[dict[str, Any]]:
    """One dictionary a row, all with the same keys: labels, numbers (None if missing), `origin`.

    A number `sat` has `sat_sd` (over seeds), `sat_low` and `sat_high` (95 % interval) and `sat_mark` beside it, where
    some row has them.
    """
    has = {
        (column.key, part)
        for row in table.rows
        for column in table.columns
        for part, name in _PARTS.items()
        if column.key in row.values and getattr(row.values[column.key], name) not in (None, "")
    }
    rows = []
    for row in table.rows:
        plain: dict[str, Any] = dict(zip(map(_key, table.label_titles), row.labels, strict=True))
        for column in table.columns:
            value, key = row.values.get(column.key), _key(column.key) if table.has_origin else column.title
            plain[key] = None if value is None else round(value.mean, 4)
            for part, name in _PARTS.items():
                if (column.key, part) in has:
                    plain[f"{key}_{part}"] = None if value is None else _rounded(getattr(value, name))
        if table.has_origin:
            plain["origin"] = row.origin or "measured"
        rows.append(plain)
    return rows


def as_csv(table: Table) -> str:
    """The plain rows as CSV with a header; what is missing is empty."""
    rows = plain_rows(table)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, in a table too.

    >>> escape_markdown("[h] is the <mask> | of *")
    '[h] is the &lt;mask> \\\\| of \\\\*'
    """
    return re.sub(r"([\\|*`])", r"\\\1", " ".join(text.split())).replace("<", "&lt;")


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it is.

    >>> escape_latex("K&H+N: 100% of my_model")
    'K\\\\&H+N: 100\\\\% of my\\\\_model'
    """
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def _key(title: str) -> str:
    return title.replace("/", "_").replace(" ", "_").lower()


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value
