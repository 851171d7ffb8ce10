"""The report: a page with every table among whatever people wrote, and each table and figure as a file of its own."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from relvec.errors import RelvecError
from relvec.evaluation.records import load_records
from relvec.io.files import atomic_folder, atomic_write
from relvec.report.figures import save_figure
from relvec.report.formats import as_csv, escape_markdown, latex, markdown
from relvec.report.published import sources
from relvec.report.registry import TABLES, tables
from relvec.report.table import ReportTable

MOST_SYSTEMS = 6  # side by side on the page

START, END = "<!-- report -->", "<!-- end report -->"  # what stands between them is made anew, the rest is kept
NEW_PAGE = f"# Results\n\n{START}\n{END}\n"

INTRODUCTION = """
Measured rows come first, the best mean on top. Rows in *italics* were published by others; the last column says where,
and the end of the page what that stands for. **Bold** is the best measured number of a column (of a row where the
systems are the columns), `±` the standard deviation over seeds. `*` marks systems that used the dataset
itself, `!` numbers measured on a dataset of another size than the paper's. Every table is also in the folder `results`,
as LaTeX and as CSV with 95 % intervals (averaged over seeds). `relvec report` made this part of the page.
"""


def write_report(runs: str | Path, output: str | Path, *, with_figures: bool = True) -> list[ReportTable]:
    """Write `results.md`, and each table and figure to `results/`, below `output`; return the tables.

    Of a page that is there, only what stands between its two markers changes. The same records give the same files,
    byte for byte.
    """
    found = tables(load_records(runs))
    if not found:
        raise RelvecError(f"There are no results in {runs}; run `relvec evaluate` with --runs {runs} first.")
    page = Path(output) / "results.md"
    before, after = _around_report(page)
    stale = [f"{name}.{ending}" for name in TABLES for ending in ("csv", "tex", "svg")]
    with atomic_folder(page.with_suffix(""), stale=stale) as folder:
        drawn = set()
        for table in found:
            draw = TABLES[table.name].draw
            if with_figures and draw is not None and save_figure(draw, table, folder / f"{table.name}.svg"):
                drawn.add(table.name)
            (folder / f"{table.name}.csv").write_text(as_csv(table), encoding="utf-8")
            (folder / f"{table.name}.tex").write_text(latex(table.narrowed(MOST_SYSTEMS)), encoding="utf-8")
    with atomic_write(page) as partial:
        partial.write_text(f"{before}{START}\n{_report(found, drawn)}{END}{after}", encoding="utf-8", newline="")
    return found


def _around_report(page: Path) -> tuple[str, str]:
    """What people wrote before and after the report."""
    text = page.read_bytes().decode() if page.exists() else NEW_PAGE
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end or START in rest or END in before + after:
        fix = "put both where the report should go, or remove the page"
        raise RelvecError(f"{page} has not one {START} and, after it, one {END}; {fix}.")
    return before, after


def _report(found: Sequence[ReportTable], drawn: Collection[str]) -> str:
    sections, shown = [], set[str]()
    for table in found:
        # Once on the page is enough.
        warnings = tuple(text for text in table.warnings if text not in shown)
        shown.update(warnings)
        figure = f"results/{table.name}.svg" if table.name in drawn else ""
        sections.append(markdown(replace(table.narrowed(MOST_SYSTEMS), warnings=warnings), figure))
    commands = dict.fromkeys(command for table in found for command in table.commands)
    if commands:
        listed = "\n".join(commands)
        note = "`DATA` is the folder of the benchmarks; where no command names it, `RELVEC_DATA` does."
        sections.append(f"## Commands\n\n{note}\n\n```sh\n{listed}\n```\n")
    cited = [f"- {name}: {escape_markdown(text)}" for name, text in sources().items()]
    return "\n".join([INTRODUCTION, *sections, "## Sources\n", *cited, "", ""])
