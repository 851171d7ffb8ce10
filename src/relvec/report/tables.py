"""Every table of the report, in the order of the page."""

from collections.abc import Callable, Sequence

from relvec.evaluation.records import Record
from relvec.report import analogy, classification, language_models, other_tasks
from relvec.report.table import Table

MAKERS: dict[str, Callable[[Sequence[Record]], Table | None]] = {
    "analogy": analogy.accuracy_table,
    "analogy_unknown": analogy.unknown_table,
    "analogy_categories": analogy.category_table,
    "analogy_bats_relations": analogy.relation_table,
    "language_models": language_models.language_model_table,
    "classification": classification.f1_table,
    "classification_weighted": classification.weighted_table,
    "classification_classes": classification.class_table,
    "mapping": other_tasks.mapping_table,
    "validation_loss": other_tasks.loss_table,
    "analogy_valid": analogy.validation_table,
}


def tables(records: Sequence[Record]) -> list[Table]:
    """The tables that have at least one measured number.

    >>> record = Record("analogy", "tiny", "sat", "test", "", {"scoring": "forward"}, {"accuracy": 50.0})
    >>> [table.name for table in tables([record])]
    ['analogy']
    """
    return [table for make in MAKERS.values() if (table := make(records)) is not None]
