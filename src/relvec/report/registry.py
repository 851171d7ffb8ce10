"""The tables of the report: each has one line here, and those of tasks that the paper lacks are made here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from relvec.evaluation.records import Record, of_task
from relvec.report import analogy_tables as analogy
from relvec.report import classification_tables as relations
from relvec.report import figures
from relvec.report.measured_systems import dataset_titles, with_short_datasets
from relvec.report.system_tables import measured, metric, system_table
from relvec.report.table import Column, ReportTable

_RELATIONS = "Lexical relation classification"


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


@dataclass(frozen=True)
class TableKind:
    """A table of the report: its name and title, what makes it of records, what draws it, whether a terminal shows it.

    `make` and `draw` return None where there is nothing to show.
    """

    name: str
    title: str
    make: Callable[[Sequence[Record]], ReportTable | None]
    draw: figures.Drawer | None = None
    is_printed: bool = False


TABLES: dict[str, TableKind] = {
    kind.name: kind
    for kind in (
        TableKind("analogy", "Analogy questions", analogy.accuracy_table, figures.accuracy_bars, is_printed=True),
        TableKind("analogy_categories", "Analogy questions by category", analogy.category_table, figures.accuracy_bars),
        TableKind("analogy_bats_relations", "BATS by relation", analogy.relation_table),
        TableKind("analogy_unknown", "Unknown words and ties", analogy.unknown_table),
        TableKind(
            "language_models",
            "Language models, vanilla and fine-tuned",
            analogy.language_model_table,
            figures.language_model_bars,
        ),
        TableKind("classification", _RELATIONS, relations.f1_table, figures.macro_f1_bars, is_printed=True),
        TableKind(
            "classification_fine_tuned",
            f"{_RELATIONS}, fine-tuned encoders",
            partial(relations.f1_table, classifier="fine-tuned"),
            is_printed=True,
        ),
        TableKind("classification_weighted", f"{_RELATIONS}, weighted F1", relations.weighted_table),
        TableKind("classification_classes", f"{_RELATIONS} by class", relations.class_table),
        TableKind("mapping", "Relation mapping", mapping_table, is_printed=True),
        TableKind("validation_loss", "Validation loss", loss_table),
        TableKind(
            "analogy_valid", "Analogy questions, validation parts", partial(analogy.accuracy_table, part="valid")
        ),
    )
}
"""Every table of the report, in the order of the page."""


def tables(records: Sequence[Record]) -> list[ReportTable]:
    """The tables that have at least one measured number, in the order of the page.

    >>> record = Record(task="analogy", system="tiny", dataset="sat", part="test", fingerprint="", settings={},
    ...                 metrics={"accuracy": 50.0})
    >>> [table.name for table in tables([record])]
    ['analogy']
    """
    distinct = with_short_datasets(list({record.key: record for record in records}.values()))
    made = ((kind, kind.make(distinct)) for kind in TABLES.values())
    return [replace(table, name=kind.name, title=kind.title) for kind, table in made if table is not None]
