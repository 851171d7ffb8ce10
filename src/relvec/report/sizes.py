"""Whether a dataset has as many questions or pairs as the paper's: numbers on another size do not compare."""

from collections.abc import Iterable

from relvec.data.benchmarks.analogy import ANALOGY_DATASETS
from relvec.data.benchmarks.classification import CLASSIFICATION_DATASETS
from relvec.evaluation.records import Record

# The six printed F1 scores of the paper's Table 4 average 69.6, its macro F1 is 69.3: a seventh class was counted.
_NOTES = {"evalution": " (with the class part of, which the paper's Table 1 leaves out and its macro F1 counts)"}


def has_other_size(record: Record) -> bool:
    """Whether the record says that its dataset was larger or smaller than the paper's."""
    found, expected = _sizes(record), paper_sizes(record)
    return any(found[part] != expected[part] for part in expected if part in found)


def size_checks(records: Iterable[Record]) -> tuple[str, ...]:
    """One line with the datasets that are as large as the paper's."""
    right = {
        record.dataset: f"{title_of(record)} {_text(paper_sizes(record))}{_NOTES.get(record.dataset, '')}"
        for record in records
        if paper_sizes(record) and _sizes(record) and not has_other_size(record)
    }
    order = [*ANALOGY_DATASETS, *CLASSIFICATION_DATASETS]
    listed = "; ".join(right[dataset] for dataset in sorted(right, key=order.index))
    return (f"Sizes equal to the paper's: {listed}.",) if listed else ()


def size_warnings(records: Iterable[Record]) -> tuple[str, ...]:
    """One line for each other size of a dataset, with the systems that were measured on it."""
    systems: dict[str, list[str]] = {}
    for record in records:
        if has_other_size(record):
            sizes = f"{_text(_sizes(record))}, the paper has {_text(paper_sizes(record))}"
            systems.setdefault(f"{title_of(record)} was measured with {sizes}: not comparable", []).append(
                record.system
            )
    return tuple(f"{problem} ({', '.join(dict.fromkeys(names))})." for problem, names in systems.items())


def paper_sizes(record: Record) -> dict[str, int]:
    """The sizes in the paper; none for a dataset of the user's.

    >>> paper_sizes(Record(task="analogy", system="x", dataset="sat_full", part="test", fingerprint="", settings={},
    ...                    metrics={}))
    {'questions': 374}
    """
    if record.task == "analogy" and record.dataset in ANALOGY_DATASETS:
        dataset = ANALOGY_DATASETS[record.dataset]
        parts = dataset.counts if dataset.is_whole else [record.part]
        return {"questions": sum(dataset.counts[part] for part in parts if part in dataset.counts)}
    if record.task == "classification" and record.dataset in CLASSIFICATION_DATASETS:
        return CLASSIFICATION_DATASETS[record.dataset].counts
    return {}


def title_of(record: Record) -> str:
    """What a table calls the dataset of a record."""
    for registry in (ANALOGY_DATASETS, CLASSIFICATION_DATASETS):
        if record.dataset in registry:
            return registry[record.dataset].title
    return record.dataset


def _sizes(record: Record) -> dict[str, int]:
    if record.task == "analogy":
        return {"questions": record.metrics["questions"]} if "questions" in record.metrics else {}
    return dict(record.metrics.get("pairs", {})) if record.task == "classification" else {}


def _text(sizes: dict[str, int]) -> str:
    if set(sizes) == {"questions"}:
        return f"{sizes['questions']:,} questions"
    return ", ".join(f"{size:,} {part}" for part, size in sizes.items()) + " pairs"
