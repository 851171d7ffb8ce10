"""Tables of the smaller tasks: relation mapping and the loss on held-out rated pairs."""

from collections.abc import Sequence

from relvec.evaluation.records import Record, of_task
from relvec.report.layout import commands, dataset_titles, labelled, ranked
from relvec.report.measured import measured, metric
from relvec.report.table import Column, Table


def mapping_table(records: Sequence[Record]) -> Table | None:
    """The share of terms that were mapped right, and of problems that were solved altogether."""
    return _table(
        of_task(records, "mapping"),
        name="mapping",
        title="Relation mapping",
        description="Terms mapped right (%, mean over problems) and problems wholly right (%).",
        columns=[Column("accuracy", "accuracy"), Column("solved", "solved")],
    )


def loss_table(records: Sequence[Record]) -> Table | None:
    """The loss on held-out rated pairs, and the share of their triples in the right order."""
    return _table(
        of_task(records, "loss"),
        name="validation_loss",
        title="Validation loss",
        description="Loss on held-out rated pairs (lower is better), and triples in the right order (%).",
        columns=[Column("loss", "loss", best="lowest", decimals=4), Column("in_order", "in order")],
    )


def _table(
    records: Sequence[Record], *, name: str, title: str, description: str, columns: Sequence[Column]
) -> Table | None:
    systems = measured(records)
    datasets = dataset_titles(systems, {})
    cells = {f"{dataset}/{column.key}": (dataset, metric(column.key)) for dataset in datasets for column in columns}
    first = next(iter(cells), "")
    entries = ranked(
        [(system, system.values(cells, metric("interval") if name == "mapping" else None)) for system in systems],
        first,
        lowest_first=columns[0].best == "lowest",
    )
    if not entries:
        return None
    frame = labelled(entries, {})
    return Table(
        name=name,
        title=title,
        description=description + frame.shared,
        label_titles=frame.titles,
        columns=tuple(
            Column(f"{dataset}/{column.key}", f"{text} {column.title}", column.best, column.decimals)
            for dataset, text in datasets.items()
            for column in columns
        ),
        rows=frame.rows,
        commands=commands([system for system, _ in entries]),
    )
