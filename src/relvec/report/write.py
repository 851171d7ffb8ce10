"""Writing the report: a page, and every table and figure as files of their own."""

from collections.abc import Iterable
from pathlib import Path

from relvec.errors import RelvecError
from relvec.evaluation.records import load_records
from relvec.files import folder_written_whole, written_whole
from relvec.report import figures as drawing
from relvec.report.latex import latex
from relvec.report.markdown import markdown
from relvec.report.plain_rows import as_csv
from relvec.report.table import Table
from relvec.report.tables import MAKERS, tables

INTRODUCTION = """# Results

Measured rows come first, the best mean on top; published ones follow, with their source. **Bold** is the best measured
number of a column (of a row where the systems are the columns). `±` is the standard deviation over seeds. `*` marks
published numbers that used the dataset itself, `!` numbers measured on a dataset of another size than the paper's.
The folder `tables` has every table as CSV, with 95 % intervals (averaged over seeds), and as LaTeX.
"""


def write_report(runs: str | Path, output: str | Path, *, with_figures: bool = True) -> list[Table]:
    """Write `results.md`, `tables/` and `figures/` below `output`; return the tables.

    The same records give the same files, byte for byte.
    """
    found = tables(load_records(runs))
    if not found:
        raise RelvecError(f"There are no results in {runs}; run `relvec evaluate` with --runs {runs} first.")
    folder = Path(output)
    drawn: list[str] = []
    if with_figures:
        with folder_written_whole(folder / "figures", stale=_names(drawing.DRAWERS, "svg", "png")) as partial:
            drawn = drawing.draw(found, partial)
    with folder_written_whole(folder / "tables", stale=_names(MAKERS, "csv", "tex")) as partial:
        for table in found:
            (partial / f"{table.name}.csv").write_text(as_csv(table), encoding="utf-8")
            (partial / f"{table.name}.tex").write_text(latex(table), encoding="utf-8")
    sections = [markdown(table, f"figures/{table.name}.svg" if table.name in drawn else "") for table in found]
    with written_whole(folder / "results.md") as page:
        page.write_text("\n".join([INTRODUCTION, *sections]), encoding="utf-8")
    return found


def _names(names: Iterable[str], *endings: str) -> tuple[str, ...]:
    return tuple(f"{name}.{ending}" for name in names for ending in endings)
