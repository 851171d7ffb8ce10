"""Tables of lexical relation classification: macro and micro F1, weighted F1, and F1 by class."""

from collections.abc import Sequence

from relvec.data.benchmarks.classification import CLASSIFICATION_DATASETS
from relvec.evaluation.records import Record, of_task
from relvec.report.measured import (
    Entry,
    column_titles,
    commands,
    dataset_titles,
    labelled,
    measured,
    metric,
    ranked,
    seed_warnings,
)
from relvec.report.published import published
from relvec.report.sizes import size_checks, size_warnings
from relvec.report.table import Column, Row, Table, Value

AVERAGES = ("macro", "micro")
MEANS = {f"mean/{average}": [f"{dataset}/{average}" for dataset in CLASSIFICATION_DATASETS] for average in AVERAGES}


def frozen_table(records: Sequence[Record]) -> Table | None:
    """Macro and micro F1 of classifiers on frozen vectors (the paper's Tables 3 and 8)."""
    return _f1_table(
        [record for record in of_task(records, "classification") if not _is_fine_tuned(record)],
        name="classification",
        title="Lexical relation classification",
        description="Macro / micro F1 (%) on the test parts, with a perceptron on frozen vectors",
        with_published=True,
    )


def fine_tuned_table(records: Sequence[Record]) -> Table | None:
    """Macro and micro F1 of encoders that were trained on each dataset itself, which is another task."""
    return _f1_table(
        [record for record in of_task(records, "classification") if _is_fine_tuned(record)],
        name="classification_fine_tuned",
        title="Lexical relation classification, fine-tuned encoders",
        description="Macro / micro F1 (%) on the test parts, with the encoder trained on the dataset's training part",
        with_published=False,
    )


def weighted_table(records: Sequence[Record]) -> Table | None:
    """F1 averaged by the size of the classes, which is what work on fine-tuned language models reports."""
    used = of_task(records, "classification")
    systems = measured(used)
    cells = {record.dataset: (record.dataset, weighted_f1) for record in used}
    entries = ranked([(system, system.values(cells)) for system in systems])
    if not entries:
        return None
    frame = labelled(entries)
    return Table(
        name="classification_weighted",
        title="Lexical relation classification, weighted F1",
        description="F1 (%) averaged by the size of the classes; that of CogALexV leaves out the class random. "
        "Published encoders were trained on each dataset." + frame.shared,
        label_titles=frame.titles,
        columns=tuple(
            Column(dataset, title) for dataset, title in dataset_titles(systems, CLASSIFICATION_DATASETS).items()
        ),
        rows=frame.rows + frame.published(published("classification_weighted")),
        warnings=size_warnings(used),
        commands=commands([system for system, _ in entries]),
    )


def class_table(records: Sequence[Record]) -> Table | None:
    """F1 of each class of each dataset, systems side by side (the paper's Table 4)."""
    used = of_task(records, "classification")
    if not any("by_class" in record.metrics for record in used):
        return None
    systems = [system for system, _ in _f1_scores(used)]
    (theirs,), (differences,) = published("per_class"), published("per_class_differences")
    rows: list[Row] = []
    for dataset, title in dataset_titles(systems, CLASSIFICATION_DATASETS, only_measured=True).items():
        for name in (*_classes(used, dataset), *AVERAGES):
            number = metric(f"{name}_f1") if name in AVERAGES else metric("by_class", name, "f1")
            values = {
                str(place): value
                for place, system in enumerate(systems)
                for value in system.values({"": (dataset, number)}).values()
            }
            if (key := f"{dataset}/{name}") in theirs.values:
                values["published"] = Value(theirs.values[key], mark=f" ({differences.values[key]:+.1f})")
            rows.append(Row((title, name), values))
    return Table(
        name="classification_classes",
        title="Lexical relation classification by class",
        description=f"F1 (%) of each class; the published column is from {theirs.source}, with the difference to "
        "RelBERT in brackets.",
        label_titles=("Dataset", "Class"),
        columns=(
            *(Column(str(place), name) for place, name in enumerate(column_titles(systems))),
            Column("published", f"{theirs.system} (published)", is_measured=False),
        ),
        rows=tuple(rows),
        best_along="row",
        warnings=size_warnings(used),
        commands=commands(systems),
    )


def weighted_f1(record: Record) -> float | None:
    """The sum over classes of F1 times pairs, divided by the pairs; CogALexV's own task leaves out the class random.

    >>> classes = {"random": {"f1": 90.0, "pairs": 8}, "synonym": {"f1": 50.0, "pairs": 2}}
    >>> weighted_f1(Record(task="classification", system="x", dataset="bless", part="test", fingerprint="",
    ...                    settings={}, metrics={"by_class": classes}))
    82.0
    """
    classes = record.metrics.get("by_class", {})
    left = [scores for name, scores in classes.items() if (record.dataset, name) != ("cogalexv", "random")]
    pairs = sum(scores.get("pairs", 0) for scores in left)
    return sum(scores["f1"] * scores["pairs"] for scores in left) / pairs if pairs else None


def _is_fine_tuned(record: Record) -> bool:
    return record.settings.get("classifier") == "fine-tuned"


def _f1_table(
    records: Sequence[Record], *, name: str, title: str, description: str, with_published: bool
) -> Table | None:
    entries = _f1_scores(records)
    if not entries:
        return None
    frame = labelled(entries)
    systems = [system for system, _ in entries]
    titles = dataset_titles(systems, CLASSIFICATION_DATASETS) | {"mean": "mean"}
    return Table(
        name=name,
        title=title,
        description=f"{description}; the mean is that of the paper's five datasets." + frame.shared,
        label_titles=frame.titles,
        columns=tuple(
            Column(f"{dataset}/{average}", f"{text} {average}", group=text)
            for dataset, text in titles.items()
            for average in AVERAGES
        ),
        rows=frame.rows + frame.published(published("classification") if with_published else [], MEANS),
        checks=size_checks(records),
        warnings=size_warnings(records) + seed_warnings(systems),
        commands=commands(systems),
    )


def _f1_scores(records: Sequence[Record]) -> list[Entry]:
    """Macro and micro F1 of each system on each dataset, and their means."""
    entries: list[Entry] = []
    for system in measured(records):
        macro, micro = (
            {f"{dataset}/{average}": (dataset, metric(f"{average}_f1")) for dataset in system.by_dataset}
            for average in AVERAGES
        )
        values = system.values(macro) | system.values(micro, has_interval=True)
        for average in AVERAGES:
            mean = system.mean(list(CLASSIFICATION_DATASETS), metric(f"{average}_f1"))
            values |= {f"mean/{average}": mean} if mean else {}
        entries.append((system, values))
    return ranked(entries, "mean/macro")


def _classes(records: Sequence[Record], dataset: str) -> list[str]:
    """The classes that occur, in the paper's order."""
    found = {name for record in records if record.dataset == dataset for name in record.metrics.get("by_class", {})}
    known = list(CLASSIFICATION_DATASETS[dataset].classes.values()) if dataset in CLASSIFICATION_DATASETS else []
    return [name for name in known if name in found] + sorted(found - set(known))
