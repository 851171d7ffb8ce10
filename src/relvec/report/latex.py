"""A table as LaTeX with booktabs rules."""

import re

from relvec.report.table import Column, Row, Table

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_SPECIALS = re.compile("|".join(map(re.escape, _SPECIAL)))


def latex(table: Table) -> str:
    """A floating table; \\usepackage{booktabs} is all that it needs."""
    best = table.best()
    titles = [*table.label_titles, *(column.title for column in table.columns)]
    layout = "l" * len(table.label_titles) + "r" * len(table.columns) + ("l" if table.has_origin else "")
    lines = [
        r"\begin{table*}[t]",
        r"\centering",
        r"\small",
        rf"\begin{{tabular}}{{{layout}}}",
        r"\toprule",
        _line([*map(escape, titles), *(["source"] if table.has_origin else [])]),
        r"\midrule",
    ]
    for number, row in enumerate(table.rows):
        if number and row.is_measured != table.rows[number - 1].is_measured:
            lines.append(r"\midrule")
        cells = [*map(escape, row.labels)]
        cells += [_cell(row, column, is_best=(number, column.key) in best) for column in table.columns]
        lines.append(_line(cells + ([escape(row.origin or "measured")] if table.has_origin else [])))
    notes = " ".join([table.description, *(f"Warning: {warning}" for warning in table.warnings)])
    lines += [
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{escape(table.title)}. {escape(notes)}}}",
        rf"\label{{tab:{table.name.replace('_', '-')}}}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Text that LaTeX prints as it is.

    >>> escape("K&H+N: 100% of my_model")
    'K\\\\&H+N: 100\\\\% of my\\\\_model'
    """
    return _SPECIALS.sub(lambda found: _SPECIAL[found.group()], " ".join(text.split()))


def _cell(row: Row, column: Column, is_best: bool) -> str:
    if column.key not in row.values:
        return "--"
    text = escape(row.values[column.key].text(column.decimals))
    return rf"\textbf{{{text}}}" if is_best else text


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
