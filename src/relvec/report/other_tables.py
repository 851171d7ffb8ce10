"""Tables of the tasks that the paper has none of: relation mapping, and the loss on held-out rated pairs."""

from collections.abc import Sequence
from dataclasses import replace

from relvec.evaluation.records import Record, of_task
from relvec.report.measured_systems import dataset_titles
from relvec.report.system_tables import measured, metric, system_table
from relvec.report.table import Column, ReportTable


def mapping_table(records: Sequence[Record]) -> ReportTable | None:
    """The share of terms that were mapped right, and of problems that were solved altogether."""
    return _table(
        of_task(records, "mapping"),
        [
            Column("accuracy", "terms"),
            Column("solved", "problems"),
            Column("out_of_vocabulary", "unknown pairs", best="none", decimals=0),
        ],
        "Terms mapped right (%, mean over problems), problems wholly right (%), and the pairs of terms that are "
        "unknown, which add nothing to any score.",
    )


def loss_table(records: Sequence[Record]) -> ReportTable | None:
    """The loss on held-out rated pairs, and the share of their triples in the right order."""
    losses = [
        # Numbers of different losses do not compare: each loss has a column.
        record.changed({"dataset": f"{record.dataset} {record.settings.get('loss', '')}".strip(), "settings": {}})
        for record in of_task(records, "loss")
    ]
    return _table(
        losses,
        [Column("loss", "loss", best="lowest", decimals=4), Column("in_order", "in order")],
        "Loss on held-out rated pairs (lower is better), and triples in the right order (%).",
    )


def _table(records: Sequence[Record], metrics: Sequence[Column], description: str) -> ReportTable | None:
    """A table with some metrics of each dataset; the first decides the order."""
    columns = [
        replace(
            each, key=f"{dataset}/{each.key}", title=f"{title} {each.title}", dataset=dataset, number=metric(each.key)
        )
        for dataset, title in dataset_titles(records, ()).items()
        for each in metrics
    ]
    entries = measured(records, columns, order=columns[0].key) if columns else []
    return system_table(entries, columns, description)
