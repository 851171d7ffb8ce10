"""The figures of the report: bars of the best systems, one panel for each column of a table."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Literal

from relvec.errors import needed_for
from relvec.report.table import NOT_COMPARABLE, Column, ReportTable, TableRow, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Drawer = Callable[[ReportTable], "Figure | None"]

MOST_ROWS = 10
MOST_PANELS = 3  # side by side
LONGEST_NAME = 48

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, SKY, GREY = "#0072B2", "#E69F00", "#56B4E9", "#9A9A9A"
KIND_COLOURS = {"relation model": BLUE, "baseline": ORANGE, "vanilla": GREY, "": SKY}
REFERENCES: dict[str, Literal["--", ":", "-."]] = {
    "RelBERT, manual prompt": "--",
    "RelBERT, InfoNCE": ":",
    "FastText": "-.",
    "FastText, cat+dot": "-.",
}
_STYLE = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "text.parse_math": False,  # a name may hold dollars
    "svg.hashsalt": "relvec",  # else the ids differ from run to run
    "svg.fonttype": "none",  # letters as text, not as outlines: half the size
    "font.sans-serif": ["DejaVu Sans"],
}


def save_figure(draw: Drawer, table: ReportTable, path: Path) -> bool:
    """Draw a table to a file, if there is something to draw; the same table gives the same bytes."""
    with needed_for("Drawing"):
        import matplotlib.style
    with matplotlib.style.context(["default", _STYLE]):
        figure = draw(table)
        if figure is not None:
            figure.savefig(path, metadata={"Date": None, "Creator": None})
    return figure is not None


def accuracy_bars(table: ReportTable) -> "Figure | None":
    """Accuracy of each system, with 95 % intervals."""
    return _bars(table, [column for column in table.columns if column.dataset], "accuracy (%)")


def macro_f1_bars(table: ReportTable) -> "Figure | None":
    """Macro F1 of each system, with the standard deviation over seeds."""
    columns = [replace(each, title=each.group) for each in table.columns if each.key.endswith("/macro")]
    return _bars(table, columns, "macro F1 (%)")


def language_model_bars(table: ReportTable) -> "Figure | None":
    """Accuracy of the best vanilla and the best fine-tuned system of each language model; None for one alone."""
    best: dict[tuple[str, str], TableRow] = {}
    for row in table.rows:  # the best of a language model come first
        best.setdefault((row.labels[0], row.kind or row.origin), row)
    chosen = replace(table, rows=tuple(best.values()))
    return accuracy_bars(chosen) if sum(row.is_measured for row in chosen.rows) > 1 else None


def _bars(table: ReportTable, columns: Sequence[Column], label: str) -> "Figure | None":
    """One panel a column that has measured numbers, one bar a measured row, published results as lines."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    measured = [row for row in table.rows if row.is_measured]
    rows = measured[:MOST_ROWS]
    columns = [column for column in columns if any(column.key in row.values for row in rows)]
    if not columns:
        return None
    published = {_name(table, row): row for row in table.rows if not row.is_measured}
    references = {name: row for name, row in published.items() if name in REFERENCES}
    wide = min(len(columns), MOST_PANELS)
    high = -(-len(columns) // wide)
    # As wide as the legend needs, however few the panels.
    figure = Figure(figsize=(2.2 + 2.3 * MOST_PANELS, 0.7 + high * (0.55 + 0.22 * len(rows))), layout="constrained")
    panels = list(figure.subplots(high, wide, squeeze=False, sharex=True, sharey=True).flat)
    panels[0].set_yticks(range(len(rows)), [_name(table, row) for row in rows])
    panels[0].invert_yaxis()
    for axes in panels[len(columns) :]:
        axes.set_visible(False)
    for place, (axes, column) in enumerate(zip(panels, columns, strict=False)):
        _panel(axes, rows, column, references)
        is_lowest = place + wide >= len(columns)
        axes.tick_params(axis="x", labelbottom=is_lowest)
        axes.set_xlabel(label if is_lowest else "")
    kinds = [kind for kind in KIND_COLOURS if kind and any(row.kind == kind for row in rows)]
    handles: list[Patch | Line2D] = [Patch(color=KIND_COLOURS[kind], label=kind) for kind in kinds]
    handles += [
        Line2D([], [], color="black", linewidth=1, linestyle=REFERENCES[name], label=f"{name} (published)")
        for name in references
    ]
    left_out = f"the {len(rows)} best of {len(measured)} measured rows" if len(rows) < len(measured) else None
    figure.legend(handles=handles, loc="outside lower center", ncols=3, title=left_out)
    return figure


def _panel(axes: "Axes", rows: Sequence[TableRow], column: Column, references: dict[str, TableRow]) -> None:
    found = [(place, row, row.values[column.key]) for place, row in enumerate(rows) if column.key in row.values]
    places = [place for place, _, _ in found]
    means = [value.mean for _, _, value in found]
    axes.barh(places, means, height=0.72, color=[KIND_COLOURS.get(row.kind, SKY) for _, row, _ in found])
    spread = list(zip(*(_error_bar(value) for _, _, value in found), strict=True))
    axes.errorbar(means, places, xerr=spread, fmt="none", ecolor="black", elinewidth=0.8, capsize=1.5)
    for place, row, value in found:
        text = f"{value.mean:.1f}{value.mark if value.mark in NOT_COMPARABLE else ''}"
        is_on_dark = row.kind == "relation model" and value.mean > 15  # a shorter bar does not hold the number
        axes.text(1.5, place, text, va="center", fontsize=7, color="white" if is_on_dark else "black")
    for name, row in references.items():
        if column.key in row.values:
            published = row.values[column.key].mean
            axes.axvline(published, color="black", linewidth=0.9, linestyle=REFERENCES[name], zorder=2)
    axes.set_title(column.title, loc="left")
    axes.set_xlim(0, 100)
    axes.tick_params(axis="y", length=0)


def _error_bar(value: Value) -> tuple[float, float]:
    """How far an error bar reaches down and up: the interval, else the deviation over seeds, else nowhere."""
    if isnan(value.low):
        return value.deviation, value.deviation
    return max(0.0, value.mean - value.low), max(0.0, value.high - value.mean)


def _name(table: ReportTable, row: TableRow) -> str:
    """The system, with its settings, cut to leave room for the bars."""
    labels = dict(zip(table.label_titles, row.labels, strict=True))
    name = labels["System"] + (f" ({labels['Settings']})" if labels.get("Settings") else "")
    return shorten(name, LONGEST_NAME, placeholder=" ...")
