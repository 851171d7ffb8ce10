"""relvec data: the training data that have a name, and whether a dataset is sound."""

from pathlib import Path
from typing import Annotated

import typer

from relvec.cli.options import DataDir, Json
from relvec.cli.output import print_json, print_table
from relvec.data.overlap import audit, near_pairs
from relvec.data.rated import RatedRelation
from relvec.data.sources import DEFAULT_SOURCE, SOURCES, load
from relvec.io.paths import data_folder

app = typer.Typer(help="List the training data by name, or check a dataset.", no_args_is_help=True)


def source_rows() -> list[dict[str, object]]:
    """One row for each name of the registry; what is in the package is counted."""
    rows: list[dict[str, object]] = []
    for source in SOURCES.values():
        counts = _counts(load(source.name)) if source.package_folder else dict.fromkeys(_counts([]))
        where = "bundled" if source.package_folder else f"$RELVEC_DATA/{source.data_file}, or hub {source.hub_id}"
        row = {"name": source.name, **counts, "licence": source.licence}
        rows.append({**row, "source": where, "description": source.description})
    return rows


@app.command("list")
def list_sources(json: Json = False) -> None:
    """List the names of training data and where they come from."""
    rows = source_rows()
    if json:
        print_json(rows)
        return
    table = [["-" if value is None else str(value) for value in row.values()] for row in rows]
    blank = [""] * len(_counts([]))
    table.append(
        [
            "<path>",
            *blank,
            "",
            "a file or folder of yours",
            ".jsonl, .csv, .tsv, .parquet, .toml, or SemEval's own folder",
        ]
    )
    table.append(["<owner/name>", *blank, "", "hub", "a dataset in the form of the authors'"])
    print_table([_shown(name) for name in rows[0]], table)


@app.command()
def check(
    source: Annotated[str, typer.Argument(help="A name, a file, a folder or a hub id.")] = DEFAULT_SOURCE,
    threshold: Annotated[
        float | None, typer.Option(help="The least score of a positive; by default the 10 best pairs are positive.")
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Count a dataset and look for repeated pairs, contradictions and pairs that the benchmarks have too.

    The exit code is 1 if there are any. Pairs that a benchmark has in other forms of the words are counted,
    and listed with --json; training can leave them out.
    """
    relations = load(source, data_dir=data_dir, threshold=threshold)
    benchmarks = data_folder(data_dir)
    if data_dir is None and benchmarks is not None and not _has_benchmarks(benchmarks):
        benchmarks = None  # RELVEC_DATA may hold training data alone
    problems = audit(relations, benchmarks)
    counts, rows = _counts(relations), [[row.relation, row.pair, row.what] for row in problems]
    near = [] if benchmarks is None else sorted(":".join(pair) for pair in near_pairs(relations, benchmarks))
    columns = ["relation", "pair", "problem"]
    if json:
        listed = [dict(zip(columns, row, strict=True)) for row in rows]
        print_json({"source": source, **counts, "in_a_benchmark_in_other_forms": near, "problems": listed})
    else:
        table = [[_shown(name), str(count)] for name, count in counts.items()]
        table.append(["problems", str(len(problems))])
        table.append(["in a benchmark in other forms", "-" if benchmarks is None else str(len(near))])
        print_table(["count", source], table)
        if problems:
            print_table(columns, rows)
    if benchmarks is None:
        typer.echo("Not compared with the benchmarks: give their folder with --data-dir or RELVEC_DATA.", err=True)
    if problems:
        typer.echo(f"{source} has {len(problems)} problems; mend or leave out what is listed above.", err=True)
        raise typer.Exit(1)


def _has_benchmarks(folder: Path) -> bool:
    files = [*folder.glob("analogy/*/*.jsonl"), *folder.glob("lexrel/*/*.jsonl")]
    return any(file.stem in ("valid", "test") for file in files)


def _counts(relations: list[RatedRelation]) -> dict[str, int]:
    return {
        "relations": len(relations),
        "categories": len({relation.category for relation in relations if relation.category}),
        "positives": sum(len(relation.positives) for relation in relations),
        "negatives": sum(len(relation.negatives) for relation in relations),
        "distinct_pairs": len({pair for relation in relations for pair in relation.pairs}),
    }


def _shown(name: str) -> str:
    return name.replace("_", " ")
