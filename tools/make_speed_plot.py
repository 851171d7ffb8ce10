"""Draw accuracy against speed, as `benchmarks/encode.py` has measured them: `make tables`."""

from pathlib import Path
from typing import Any

from make_tables import ROOT, measured
from matplotlib import rc_context
from matplotlib.figure import Figure

from relvec.hub.catalogue import BUNDLED_MODELS

PICTURE = ROOT / "docs" / "images" / "speed.svg"

PAPER_ACCURACY = 74.7  # RoBERTa-large with the manual prompt, the mean of Table 2
# Okabe and Ito's colours, which colour-blind readers can tell apart; the paper is light in dark mode, too.
COLOURS = dict(zip(BUNDLED_MODELS, ("#0072B2", "#6A51A3", "#8C6239", "#D55E00", "#009E73"), strict=True))
MARKERS = {
    "relbert": "X",
    "torch float32": "o",
    "torch bfloat16": "s",
    "numpy float32": "v",
    "onnx float32": "D",
    "onnx int8": "*",
}
PAPER, INK, FAINT = "#FCFCFA", "#333333", "#8A8A8A"
STYLE: dict[Any, Any] = {"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "relvec"}


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Models by colour, ways by marker; a model's ways are joined, from the slowest to the fastest."""
    with rc_context(STYLE):
        figure = Figure(figsize=(8, 4.4), facecolor=PAPER, layout="constrained")
        axes = figure.add_subplot(facecolor=PAPER)
        axes.axhline(PAPER_ACCURACY, color=FAINT, linewidth=0.8, linestyle="--")
        axes.annotate(
            "the paper's RoBERTa-large (accuracy)",
            (1, PAPER_ACCURACY),
            (-4, 4),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            va="bottom",
            color=FAINT,
        )
        for model in dict.fromkeys(row["model"] for row in rows):
            colour = COLOURS[model]
            ways = [row for row in rows if row["model"] == model and row["accuracy"]]
            ways.sort(key=lambda row: float(row["pairs_per_second"]))
            speeds, accuracies = ([row[name] for row in ways] for name in ("pairs_per_second", "accuracy"))
            axes.plot(speeds, accuracies, color=colour, linewidth=1)
            for row in ways:
                at = row["pairs_per_second"], row["accuracy"]
                size = 110 if MARKERS[row["way"]] == "*" else 42
                axes.scatter(*at, color=colour, marker=MARKERS[row["way"]], s=size, edgecolors=PAPER, zorder=3)
            at = speeds[-1], max(accuracies)
            axes.annotate(model, at, (0, 9), textcoords="offset points", ha="center", color=colour, weight="bold")
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.minorticks_off()
        axes.margins(0.08, 0.12)
        axes.set_xlabel("pairs per second, 2 cores", color=INK)
        axes.set_ylabel("mean accuracy on analogies (%)", color=INK)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK)
        handles = [
            axes.scatter([], [], color=INK, marker=marker, s=42, label=way.replace("relbert", "relbert 2.0.2"))
            for way, marker in MARKERS.items()
        ]
        axes.legend(handles=handles, loc="upper right", ncols=2, frameon=False, labelcolor=INK)
        figure.savefig(path, metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    draw(measured(), PICTURE)
