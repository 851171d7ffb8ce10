"""A table as Markdown, LaTeX, plain text, CSV and JSON."""

import re
from collections.abc import Callable
from itertools import groupby
from math import nan
from typing import Any

import pandas as pd

from relvec.report.table import ReportTable, Value

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


def markdown(table: ReportTable, figure: str = "") -> str:
    """The table with its title, what it is, warnings, the numbers and its figure; published systems are in italics."""
    titles, rows = text_rows(
        table, escape_markdown, bold=lambda text: f"**{text}**", italic=lambda text: f"*{text}*" if text else ""
    )
    labels = len(table.label_titles)
    numbers = len(titles) - labels - table.has_origin
    lines = [titles, ["---"] * labels + ["---:"] * numbers + ["---"] * table.has_origin, *rows]
    parts = [f"## {escape_markdown(table.title)}", escape_markdown(table.description)]
    parts += [f"> **Warning:** {escape_markdown(warning)}" for warning in table.warnings]
    parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    if figure:
        parts.append(f"![{table.title}]({figure})")
    return "\n\n".join(parts) + "\n"


def latex(table: ReportTable) -> str:
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
    table: ReportTable, escape: Escape = str, *, bold: Escape = str, italic: Escape = str
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


def plain(table: ReportTable) -> pd.DataFrame:
    """The labels, numbers and `origin` of each row.

    A number `sat` has `sat_sd` (over seeds), `sat_low` and `sat_high` (95 % interval) and `sat_mark` beside it, where
    some row has them.
    """
    rows = []
    for row in table.rows:
        cells: dict[str, Any] = dict(zip(map(_key, table.label_titles), row.labels, strict=True))
        for column in table.columns:
            key = _key(column.key) if table.has_origin else column.title
            value = row.values.get(column.key, Value(nan))
            mark = value.mark if column.key in row.values else None
            spread = {"sd": value.deviation, "low": value.low, "high": value.high, "mark": mark}
            cells[key] = value.mean
            cells |= {f"{key}_{part}": found for part, found in spread.items()}
        rows.append(cells | ({"origin": row.origin or "measured"} if table.has_origin else {}))
    frame = pd.DataFrame(rows).round(4)
    is_empty = (frame.isna() | (frame == "")).all()
    return frame.drop(columns=[name for name in frame if is_empty[name] and re.search("_(sd|low|high|mark)$", name)])


def as_csv(table: ReportTable) -> str:
    """The plain table with a header; what is missing is empty."""
    return str(plain(table).to_csv(index=False, lineterminator="\n"))


def as_json(table: ReportTable) -> dict[str, Any]:
    """The table by name and title, with a dictionary for each row; what is missing is None."""
    frame = plain(table).astype(object)
    return {"name": table.name, "title": table.title, "rows": frame.where(frame.notna(), None).to_dict("records")}


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
