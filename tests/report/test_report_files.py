"""The report on disk: the page, among what people wrote on it, and its tables and figures."""

import csv
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from relvec.errors import RelvecError
from relvec.evaluation.records import load_records, save_record
from relvec.report.formats import latex, markdown, text_rows
from relvec.report.page import END, START, write_report
from relvec.report.table import Column, ReportTable, TableRow, Value

Save = Callable[..., None]

SMALL = ReportTable(
    name="small",
    title="A table",
    description="What it is.",
    label_titles=("System",),
    columns=(Column("x", "X & Y"), Column("z", "Z")),
    rows=(
        TableRow(("my_model | <mask>",), {"x": Value(61.04, deviation=1.41, seeds=2, low=55.0, high=66.0)}),
        TableRow(("b",), {"x": Value(50.0), "z": Value(1.0)}),
        TableRow(("c",), {"x": Value(99.0, mark="*")}, origin="published: Somebody 2020 (100% tuned)"),
    ),
    warnings=("U2 is small.",),
    commands=("relvec evaluate",),
)


@pytest.fixture
def filled(runs: Path, save_analogy: Save, save_classification: Save) -> Path:
    """A runs folder from which every figure can be drawn."""
    for dataset in ("sat", "google", "bats"):
        save_analogy("tuned", dataset, 0.7, facts={"kind": "relation model", "base": "mpnet"})
        save_analogy("tuned", dataset, 0.8, fingerprint="f1", facts={"kind": "relation model", "base": "mpnet"})
        save_analogy("plain", dataset, 0.3, facts={"kind": "vanilla", "base": "mpnet"})
        save_analogy("vectors", dataset, 0.4, facts={"kind": "baseline"})
    save_classification("tuned", "root09", 0.9)
    return runs


def test_markdown_has_bold_marks_and_sources_and_published_systems_in_italics() -> None:
    lines = markdown(SMALL, figure="results/small.svg").splitlines()
    assert lines[0] == "## A table"
    assert "> **Warning:** U2 is small." in lines
    assert "| System | X & Y | Z | source |" in lines
    assert "| my_model \\| &lt;mask> | **61.0 ± 1.4** | - | measured |" in lines
    assert "| *c* | 99.0\\* | - | published: Somebody 2020 (100% tuned) |" in lines
    assert "![A table](results/small.svg)" in lines


def test_latex_has_rules_bold_and_escaped_specials() -> None:
    lines = latex(SMALL).splitlines()
    assert r"\begin{tabular}{lrrl}" in lines
    assert r"System & X \& Y & Z & source \\" in lines
    assert r"my\_model \textbar{} \textless{}mask\textgreater{} & \textbf{61.0 $\pm$ 1.4} & - & measured \\" in lines
    assert r"\textit{c} & 99.0* & - & published: Somebody 2020 (100\% tuned) \\" in lines
    assert lines.count(r"\midrule") == 2
    assert r"\caption{A table. What it is. Warning: U2 is small.}" in lines


def test_columns_of_one_group_share_a_cell_and_each_number_is_bold_by_itself() -> None:
    grouped = ReportTable(
        name="grouped",
        title="T",
        description="D",
        label_titles=("System",),
        columns=(Column("x/macro", "X macro", group="X"), Column("x/micro", "X micro", group="X")),
        rows=(
            TableRow(("a",), {"x/macro": Value(2.0), "x/micro": Value(1.0)}),
            TableRow(("b",), {"x/macro": Value(1.0), "x/micro": Value(3.0)}),
            TableRow(("c",), {"x/micro": Value(2.0)}, origin="published: d"),
            TableRow(("e",), {}, origin="published: d"),
        ),
    )
    titles, rows = text_rows(grouped, bold=lambda text: f"**{text}**")
    assert titles == ["System", "X", "source"]
    assert [row[1] for row in rows] == ["**2.0** / 1.0", "1.0 / **3.0**", "- / 2.0", "-"]


def test_too_many_systems_side_by_side_are_only_in_the_csv(runs: Path, save_analogy: Save, tmp_path: Path) -> None:
    for number in range(9):
        save_analogy(f"s{number}", "bats", number / 10)
    write_report(runs, tmp_path / "report", with_figures=False)
    page = (tmp_path / "report/results.md").read_text(encoding="utf-8")
    (head,) = [line for line in page.splitlines() if line.startswith("| Category | Relation |")]
    assert head.count("| s") == 6
    assert "| s8 | s7 |" in head
    assert "Shown are the 6 best of 9 systems; the CSV file has all." in page
    assert "s0" in (tmp_path / "report/results/analogy_bats_relations.csv").read_text(encoding="utf-8")


def test_no_folder_of_the_machine_is_in_the_report(runs: Path, save: Save, tmp_path: Path) -> None:
    command = "relvec evaluate analogy --model /home/me/out/tuned --data-dir /home/me/data --runs /home/me/runs"
    facts = {"kind": "relation model", "base": "/home/me/models/mpnet"}
    metrics = {"accuracy": 50.0, "questions": 4, "out_of_vocabulary": 1, "ties": 0}
    for dataset in ("/home/me/mine.jsonl", "sat"):
        save("analogy", dataset, metrics, facts=facts, command=command)
    save("classification", "/home/me/bless", {"macro_f1": 50.0, "micro_f1": 40.0})
    save("mapping", "/home/me/problems.jsonl", {"accuracy": 50.0, "solved": 0.0})
    write_report(runs, tmp_path / "report")
    texts = [file for file in (tmp_path / "report").rglob("*") if file.suffix in (".md", ".csv", ".tex", ".svg")]
    assert len(texts) > 9
    assert [file.name for file in texts if "/home" in file.read_text(encoding="utf-8")] == []
    page = (tmp_path / "report/results.md").read_text(encoding="utf-8")
    assert page.count("relvec evaluate analogy --model tuned --data-dir DATA --runs runs\n") == 1
    assert re.search(r"\| BLESS \| CogALexV \| EVALution \| K&H\+N \| ROOT09 \| \w{6}/bless \| mean \|", page)


def test_csv_has_intervals_and_spread_in_columns_of_their_own(filled: Path, tmp_path: Path) -> None:
    write_report(filled, tmp_path / "report", with_figures=False)
    with (tmp_path / "report/results/analogy.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert (rows[0]["system"], rows[0]["seeds"], rows[0]["origin"]) == ("tuned", "2", "measured")
    assert (float(rows[0]["google"]), float(rows[0]["google_sd"])) == (75.0, 7.0711)
    assert float(rows[0]["google_low"]) < 75 < float(rows[0]["google_high"])
    assert rows[0]["u2"] == ""
    assert {row["sat_mark"] for row in rows} == {"", "*"}
    head = (tmp_path / "report/results/analogy_bats_relations.csv").read_text(encoding="utf-8").splitlines()[0]
    assert head.startswith('category,relation,tuned,tuned_sd,vectors,plain,"FastText, unknown words wrong (published)"')


def test_the_page_links_the_figures_and_every_table_is_a_file(filled: Path, tmp_path: Path) -> None:
    made = write_report(filled, tmp_path / "report")
    page = (tmp_path / "report/results.md").read_text(encoding="utf-8")
    drawn = ("analogy", "analogy_categories", "language_models", "classification")
    files = {file.name for file in (tmp_path / "report/results").iterdir()}
    tables = {f"{table.name}.{ending}" for table in made for ending in ("csv", "tex")}
    assert files == tables | {f"{name}.svg" for name in drawn}
    assert all(f"(results/{name}.svg)" in page for name in drawn)
    assert {file.name for file in (tmp_path / "report").iterdir()} == {"results.md", "results"}
    assert page.index("## Analogy questions") < page.index("## Lexical relation classification")


def test_the_same_records_give_the_same_bytes(filled: Path, tmp_path: Path) -> None:
    contents = []
    for name in ("one", "one"):  # the second over the first
        write_report(filled, tmp_path / name)
        files = sorted(file for file in (tmp_path / name).rglob("*") if file.is_file())
        contents.append({str(file.relative_to(tmp_path / name)): file.read_bytes() for file in files})
    assert contents[0] == contents[1]
    assert {"results.md", "results/analogy.svg"} <= contents[0].keys()


def test_the_results_of_this_project_are_what_its_records_give(tmp_path: Path) -> None:
    folder = Path(__file__).parents[2] / "experiments"
    write_report(folder, tmp_path, with_figures=False)
    for file in (tmp_path / "results").iterdir():
        assert file.read_text(encoding="utf-8") == (folder / "results" / file.name).read_text(encoding="utf-8")


def test_records_alone_give_the_report_without_their_predictions(
    filled: Path, runs: Path, save_analogy: Save, tmp_path: Path
) -> None:
    for record in load_records(filled):
        save_record(record, filled, [{"head": "secret", "tail": "words"}])
        save_record(record, tmp_path / "alone")
    assert len(list((filled / "predictions").iterdir())) > 10
    pages = []
    for folder in (filled, tmp_path / "alone"):
        write_report(folder, tmp_path / f"{folder.name} report", with_figures=False)
        pages.append((tmp_path / f"{folder.name} report/results.md").read_bytes())
    assert pages[0] == pages[1]
    assert "secret" not in pages[0].decode()


def test_tables_of_an_earlier_report_go_and_other_files_stay(filled: Path, tmp_path: Path) -> None:
    for name in ("results/mapping.csv", "results/analogy.svg", "results/mine.csv"):
        (tmp_path / "report" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "report" / name).write_text("old")
    write_report(filled, tmp_path / "report", with_figures=False)
    assert not (tmp_path / "report/results/mapping.csv").exists()
    assert not (tmp_path / "report/results/analogy.svg").exists()
    assert (tmp_path / "report/results/mine.csv").exists()


def test_what_people_wrote_around_the_report_is_kept(filled: Path, tmp_path: Path) -> None:
    page = tmp_path / "report/results.md"
    write_report(filled, page.parent, with_figures=False)
    fresh = page.read_text(encoding="utf-8")
    assert fresh.startswith(f"# Results\n\n{START}\n")
    assert fresh.endswith(f"{END}\n")
    old = fresh.replace("70.", "99.")
    written = old.replace("# Results", "# What came out\r\n\r\nWe were glad: tōkyō.") + "\nThat was all.\n"
    page.write_bytes(written.encode())
    write_report(filled, page.parent, with_figures=False)
    expected = fresh.replace("# Results", "# What came out\r\n\r\nWe were glad: tōkyō.") + "\nThat was all.\n"
    assert page.read_bytes() == expected.encode()


@pytest.mark.parametrize("text", ["# My own page\n", f"{END}\n{START}\n"], ids=["none", "turned"])
def test_a_page_without_a_place_for_the_report_is_not_touched(filled: Path, tmp_path: Path, text: str) -> None:
    page = tmp_path / "report/results.md"
    page.parent.mkdir()
    page.write_text(text)
    with pytest.raises(RelvecError, match=r"results\.md has not one <!-- report --> .*; put both where"):
        write_report(filled, page.parent, with_figures=False)
    assert page.read_text() == text
    assert [file.name for file in page.parent.iterdir()] == ["results.md"]


def test_figures_are_small_however_many_systems_there_are(
    runs: Path, save_analogy: Save, save_classification: Save, tmp_path: Path
) -> None:
    for number in range(12):
        name = f"a system whose name is rather long, number ${number}$"
        kind = ("relation model", "vanilla")[number % 2]
        for dataset in ("sat", "google", "bats"):
            save_analogy(name, dataset, 0.3 + number / 40, facts={"kind": kind, "base": f"base {number // 2}"})
        save_classification(name, "root09", 0.5)
    write_report(runs, tmp_path / "report")
    sizes = {file.stem: file.stat().st_size for file in (tmp_path / "report/results").glob("*.svg")}
    assert sizes.keys() == {"analogy", "analogy_categories", "language_models", "classification"}
    assert max(sizes.values()) < 100_000


def test_what_has_nothing_to_compare_is_not_drawn(runs: Path, save: Save, tmp_path: Path) -> None:
    save("classification", "root09", {"micro_f1": 50.0})
    save("analogy", "sat", {"accuracy": 50.0}, facts={"kind": "vanilla", "base": "b"})
    write_report(runs, tmp_path / "report")
    assert [file.name for file in (tmp_path / "report/results").glob("*.svg")] == ["analogy.svg"]


def test_without_matplotlib_the_advice_is_to_install_it(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with pytest.raises(RelvecError, match=r"relvec\[evaluate\]"):
        write_report(filled, tmp_path / "report")
    write_report(filled, tmp_path / "report", with_figures=False)


def test_missing_results_are_one_sentence(runs: Path, save: Save, tmp_path: Path) -> None:
    with pytest.raises(RelvecError, match=r"^There is no .*; run `relvec evaluate` with --runs .* first\.$"):
        write_report(runs, tmp_path / "report")
    save("analogy", "sat", {"accuracy": None})
    with pytest.raises(RelvecError, match=r"^There are no results in .*; run `relvec evaluate`"):
        write_report(runs, tmp_path / "report")
    assert not (tmp_path / "report").exists()
