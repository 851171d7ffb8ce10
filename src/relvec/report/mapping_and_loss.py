"""Tables of the tasks that the paper has none of: relation mapping, and the loss on held-out rated pairs."""

from collections.abc import Sequence
from dataclasses import replace

from relvec.evaluation.records import Record, of_task
from relvec.report.measured import commands, dataset_titles, labelled, measured, metric, ranked, seed_warnings
from relvec.report.table import Column, Table


def mapping_table(records: Sequence[Record]) -> Table | None:
    """The share of terms that were mapped right, and of problems that were solved altogether."""
    return _table(
        of_task(records, "mapping"),
        name="mapping",
        title="Relation mapping",
        description="Terms mapped right (%, mean over problems), problems wholly right (%), and the pairs of terms "
        "that are unknown, which add nothing to any score.",
        columns=[
            Column("accuracy", "terms"),
            Column("solved", "problems"),
            Column("out_of_vocabulary", "unknown pairs", best="none", decimals=0),
        ],
    )


def loss_table(records: Sequence[Record]) -> Table | None:
    """The loss on held-out rated pairs, and the share of their triples in the right order."""
    losses = [
        # Numbers of different losses do not compare: each loss has a column.
        record.changed({"dataset": f"{record.dataset} {record.settings.get('loss', '')}".strip(), "settings": {}})
        for record in of_task(records, "loss")
    ]
    return _table(
        losses,
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
    entries = ranked(
        [(system, system.values(cells)) for system in systems],
        next(iter(cells), ""),
        lowest_first=columns[0].best == "lowest",
    )
    if not entries:
        return None
    frame = labelled(entries)
    return Table(
        name=name,
        title=title,
        description=description + frame.shared,
        label_titles=frame.titles,
        columns=tuple(
            replace(column, key=f"{dataset}/{column.key}", title=f"{text} {column.title}")
            for dataset, text in datasets.items()
            for column in columns
        ),
        rows=frame.rows,
        warnings=seed_warnings(systems),
        commands=commands([system for system, _ in entries]),
    )
