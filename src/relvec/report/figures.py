"""The figures of the report, drawn from its tables."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from relvec.errors import RelvecError
from relvec.report.analogy import MEAN_OF
from relvec.report.table import NOT_COMPARABLE, Column, Row, Table, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS = 10
MOST_PANELS = 3  # side by side
MOST_LANGUAGE_MODELS = 6

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


def draw(tables: Sequence[Table], folder: Path) -> list[str]:
    """Write each figure that the tables allow as .svg; return the names, which are those of the tables."""
    try:
        import matplotlib.style
    except ImportError as error:
        advice = "run pip install 'relvec[evaluate]', or give --no-figures"
        raise RelvecError(f"Figures need matplotlib; {advice}.") from error
    names = []
    with matplotlib.style.context(["default", _STYLE]):
        for table in tables:
            figure = DRAWERS[table.name](table) if table.name in DRAWERS else None
            if figure is None:
                continue
            names.append(table.name)
            # No dates and versions, so that the same results give the same files.
            figure.savefig(folder / f"{table.name}.svg", metadata={"Date": None, "Creator": None})
    return names


def analogy_bars(table: Table) -> "Figure | None":
    """Accuracy of each system, one panel a dataset, with 95 % intervals and published results as lines."""
    return _bars(table, [column for column in table.columns if column.key != "mean"], "accuracy (%)")


def classification_bars(table: Table) -> "Figure | None":
    """Macro F1 of each system, one panel a dataset, with the standard deviation over seeds."""
    columns = [
        replace(column, title=column.title.removesuffix(" macro"))
        for column in table.columns
        if column.key.endswith("/macro")
    ]
    return _bars(table, columns, "macro F1 (%)")


def category_heat_map(table: Table) -> "Figure":
    """Accuracy by category, a row for each system; published ones below a line."""
    import numpy as np
    from matplotlib.figure import Figure

    ours = _measured(table)[:MOST_ROWS]
    rows = [*ours, *(row for row in table.rows if not row.is_measured)]
    values = [[row.values.get(column.key) for column in table.columns] for row in rows]
    shares = np.array([[np.nan if value is None else value.mean for value in line] for line in values])
    figure = Figure(figsize=(6.8, 0.9 + 0.27 * len(rows)), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="cividis", vmin=0, vmax=100, aspect="auto")
    for (line, place), share in np.ndenumerate(shares):
        text = "-" if np.isnan(share) else f"{share:.1f}"
        axes.text(place, line, text, ha="center", va="center", color="black" if share > 55 else "white")
    names = [_name(table, row) + ("" if row.is_measured else " (published)") for row in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.set_xticks(range(len(table.columns)), [column.title.replace(" ", "\n", 1) for column in table.columns])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if len(ours) < len(rows):
        axes.axhline(len(ours) - 0.5, color="white", linewidth=3)
    figure.colorbar(image, label="accuracy (%)", shrink=0.9, pad=0.02).outline.set_visible(False)
    return figure


def language_model_bars(table: Table) -> "Figure | None":
    """The best vanilla and fine-tuned systems of the best language models; none if there is nothing to compare."""
    from matplotlib.figure import Figure

    rows = _measured(table)
    usual = [row for row in rows if not _label(table, row, "Settings")] or rows
    best: dict[str, dict[str, Row]] = {}
    for row in usual:  # the best of a language model come first
        if row.labels[0] in best or len(best) < MOST_LANGUAGE_MODELS:
            best.setdefault(row.labels[0], {}).setdefault(row.kind, row)
    columns = [column for column in table.columns if column.key in MEAN_OF]
    columns = [column for column in columns if any(column.key in row.values for row in usual)]
    if not columns or sum(len(kinds) for kinds in best.values()) < 2:
        return None
    wide = min(len(best), MOST_PANELS)
    high = -(-len(best) // wide)
    figure = Figure(figsize=(0.6 + 2.9 * wide, 0.5 + 2.2 * high), layout="constrained")
    panels = list(figure.subplots(high, wide, squeeze=False, sharey=True).flat)
    shown = [kind for kind in KIND_COLOURS if any(kind in kinds for kinds in best.values())]
    width = 0.8 / len(shown)
    handles = {}
    for axes, (base, kinds) in zip(panels, best.items(), strict=False):
        for number, kind in enumerate(reversed(shown)):
            if kind not in kinds:
                continue
            found = [(place, kinds[kind].values.get(column.key)) for place, column in enumerate(columns)]
            places = [place + (number - (len(shown) - 1) / 2) * width for place, value in found if value]
            values = [value for _, value in found if value]
            label = "vanilla" if kind == "vanilla" else "fine-tuned"
            handles[label] = axes.bar(places, [value.mean for value in values], width, color=KIND_COLOURS[kind])
            axes.errorbar(places, *_spread(values), fmt="none", ecolor="black", elinewidth=0.8, capsize=1.5)
        axes.set_title(base)
        axes.set_xticks(range(len(columns)), [column.title.split(" (")[0] for column in columns])
        axes.set_xlim(-0.5, len(columns) - 0.5)
        axes.set_ylim(0, 100)
        axes.tick_params(axis="x", length=0)
    for axes in panels[len(best) :]:
        axes.set_visible(False)
    figure.supylabel("accuracy (%)", fontsize=8)
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=2)
    return figure


DRAWERS: dict[str, Callable[[Table], "Figure | None"]] = {
    "analogy": analogy_bars,
    "analogy_categories": category_heat_map,
    "language_models": language_model_bars,
    "classification": classification_bars,
}


def _bars(table: Table, columns: Sequence[Column], label: str) -> "Figure | None":
    """One panel a column that has measured numbers, one bar a measured row, the best on top."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    measured = _measured(table)
    rows = measured[:MOST_ROWS]
    columns = [column for column in columns if any(column.key in row.values for row in rows)]
    if not columns:
        return None
    references = {row.labels[0]: row for row in table.rows if not row.is_measured and row.labels[0] in REFERENCES}
    wide = min(len(columns), MOST_PANELS)
    high = -(-len(columns) // wide)
    # As wide as the legend needs, however few the panels.
    figure = Figure(figsize=(2.2 + 2.3 * MOST_PANELS, 0.7 + high * (0.55 + 0.22 * len(rows))), layout="constrained")
    panels = list(figure.subplots(high, wide, squeeze=False, sharex=True, sharey=True).flat)
    for axes, column in zip(panels, columns, strict=False):
        _panel(axes, rows, column, references)
    panels[0].set_yticks(range(len(rows)), [_name(table, row) for row in rows])
    panels[0].invert_yaxis()
    for axes in panels[len(columns) :]:
        axes.set_visible(False)
    for place, axes in enumerate(panels[: len(columns)]):
        is_lowest = place + wide >= len(columns)
        axes.tick_params(axis="x", labelbottom=is_lowest)
        if is_lowest:
            axes.set_xlabel(label)
    kinds = [kind for kind in KIND_COLOURS if kind and any(row.kind == kind for row in rows)]
    handles: list[Patch | Line2D] = [Patch(color=KIND_COLOURS[kind], label=kind) for kind in kinds]
    handles += [
        Line2D([], [], color="black", linewidth=1, linestyle=REFERENCES[name], label=f"{name} (published)")
        for name in references
    ]
    left_out = f"the {len(rows)} best of {len(measured)} measured rows" if len(rows) < len(measured) else None
    figure.legend(handles=handles, loc="outside lower center", ncols=3, title=left_out)
    return figure


def _panel(axes: "Axes", rows: Sequence[Row], column: Column, references: dict[str, Row]) -> None:
    found = [(place, row, row.values[column.key]) for place, row in enumerate(rows) if column.key in row.values]
    places, values = [place for place, _, _ in found], [value for _, _, value in found]
    colours = [KIND_COLOURS.get(row.kind, SKY) for _, row, _ in found]
    axes.barh(places, [value.mean for value in values], height=0.72, color=colours)
    means, spread = _spread(values)
    axes.errorbar(means, places, xerr=spread, fmt="none", ecolor="black", elinewidth=0.8, capsize=1.5)
    for place, row, value in found:
        text = f"{value.mean:.1f}{value.mark if value.mark in NOT_COMPARABLE else ''}"
        is_on_dark = row.kind == "relation model" and value.mean > 15  # a shorter bar does not hold the number
        colour = "white" if is_on_dark else "black"
        axes.text(1.5, place, text, va="center", fontsize=7, color=colour)
    for name, row in references.items():
        if column.key in row.values:
            axes.axvline(
                row.values[column.key].mean, color="black", linewidth=0.9, linestyle=REFERENCES[name], zorder=2
            )
    axes.set_title(column.title, loc="left")
    axes.set_xlim(0, 100)
    axes.tick_params(axis="y", length=0)


def _spread(values: Sequence[Value]) -> tuple[list[float], list[list[float]]]:
    """Means, and how far error bars reach down and up: the interval, else the deviation over seeds, else nowhere."""
    down, up = [], []
    for value in values:
        if value.low is not None and value.high is not None:
            down.append(max(0.0, value.mean - value.low))
            up.append(max(0.0, value.high - value.mean))
        else:
            reach = float("nan") if value.deviation is None else value.deviation
            down.append(reach)
            up.append(reach)
    return [value.mean for value in values], [down, up]


def _measured(table: Table) -> list[Row]:
    return [row for row in table.rows if row.is_measured]


def _label(table: Table, row: Row, title: str) -> str:
    return dict(zip(table.label_titles, row.labels, strict=True)).get(title, "")


def _name(table: Table, row: Row) -> str:
    """The system, with its settings."""
    settings = _label(table, row, "Settings")
    return _label(table, row, "System") + (f" ({settings})" if settings else "")
