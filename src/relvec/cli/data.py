"""relvec data: the training data that have a name, and whether a dataset is sound."""

from dataclasses import asdict
from typing import Annotated

import typer

from relvec.cli.options import DataDir, Json
from relvec.cli.output import Table, facts_table, message, show
from relvec.data.overlap import audit, benchmark_pairs, near_pairs
from relvec.data.rated import RatedRelation
from relvec.data.readers import KINDS
from relvec.data.sources import DEFAULT_SOURCE, SOURCES, load
from relvec.io.files import data_folder

app = typer.Typer(help="List or check training data.", no_args_is_help=True)


@app.command("list")
def list_sources(json: Json = False) -> None:
    """List the datasets for training, and where they come from."""
    rows: list[dict[str, object]] = []
    for source in SOURCES.values():
        counts = _counts(load(source.name)) if source.package_folder else dict.fromkeys(_counts([]))
        where = "bundled" if source.package_folder else f"$RELVEC_DATA/{source.data_file}, or hub {source.hub_id}"
        row = {"name": source.name, **counts, "licence": source.licence}
        rows.append({**row, "source": where, "description": source.description})
    empty = [""] * (1 + len(_counts([])))
    table = [list(row.values()) for row in rows]
    table.append(["<path>", *empty, "yours", f"a file ({', '.join(KINDS)}), or a folder of them"])
    table.append(["<owner/name>", *empty, "hub", "a dataset in the form of the authors'"])
    show(json, rows, Table([name.replace("_", " ") for name in rows[0]], table))


@app.command()
def check(
    source: Annotated[str, typer.Argument(help="A name, a file, a folder or a hub id.")] = DEFAULT_SOURCE,
    threshold: Annotated[
        float | None, typer.Option(help="The lowest score of a positive; by default the 10 best pairs are positive.")
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Check a dataset for repeats, contradictions and benchmark pairs.

    The exit code is 1 if there are any. Pairs that a benchmark has in another inflection are counted, and listed with
    --json; training can leave them out.
    """
    relations = load(source, data_dir=data_dir, threshold=threshold)
    folder = data_folder(data_dir)
    # RELVEC_DATA may hold training data alone.
    known = {} if folder is None else benchmark_pairs(folder, required=data_dir is not None)
    problems = [asdict(problem) for problem in audit(relations, known)]
    near = sorted(":".join(pair) for pair in near_pairs(relations, known)) if known else []
    counts = _counts(relations)
    facts = {**counts, "problems": len(problems), "in_a_benchmark_in_other_forms": len(near) if known else None}
    tables = [facts_table(facts, ("count", source))]
    if problems:
        tables.append(Table(list(problems[0]), [problem.values() for problem in problems]))
    show(json, {"source": source, **counts, "in_a_benchmark_in_other_forms": near, "problems": problems}, *tables)
    if not known:
        message("Not compared with the benchmarks: give their folder with --data-dir or RELVEC_DATA.")
    if problems:
        message(f"{source} has {len(problems)} problems; correct or remove what is listed above.")
        raise typer.Exit(1)


def _counts(relations: list[RatedRelation]) -> dict[str, int]:
    return {
        "relations": len(relations),
        "categories": len({relation.category for relation in relations if relation.category}),
        "positives": sum(len(relation.positives) for relation in relations),
        "negatives": sum(len(relation.negatives) for relation in relations),
        "distinct_pairs": len({pair for relation in relations for pair in relation.pairs}),
    }
