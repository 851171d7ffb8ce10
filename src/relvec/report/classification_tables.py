"""Tables of lexical relation classification: macro and micro F1, weighted F1, and F1 by class."""

from collections.abc import Sequence
from typing import Any

from relvec.data.benchmarks.classification import CLASSIFICATION_DATASETS
from relvec.evaluation.records import Record, of_task
from relvec.report.measured_systems import dataset_titles
from relvec.report.published import published
from relvec.report.system_tables import measured, metric, system_table, systems_as_columns
from relvec.report.table import Column, ReportTable, Value

_HOW = {
    "mlp": "a perceptron on frozen vectors",
    "fine-tuned": "the encoder trained on the dataset's training part",
}
AVERAGES = ("macro", "micro")
MEANS = {f"mean/{average}": [f"{dataset}/{average}" for dataset in CLASSIFICATION_DATASETS] for average in AVERAGES}


def f1_table(records: Sequence[Record], classifier: str = "mlp") -> ReportTable | None:
    """Macro and micro F1 on frozen vectors (the paper's Tables 3 and 8), or of encoders trained on each dataset."""
    used = [
        record
        for record in of_task(records, "classification")
        if record.settings.get("classifier", "mlp") == classifier
    ]
    columns = _f1_columns(used)
    return system_table(
        measured(used, columns, MEANS, order="mean/macro"),
        columns,
        f"Macro / micro F1 (%) on the test parts, with {_HOW[classifier]}; the mean is that of the paper's five "
        "datasets. EVALution has the class part of, which the paper's Table 1 leaves out and its macro F1 counts.",
        published=published("classification") if classifier == "mlp" else (),
        means=MEANS,
    )


def weighted_table(records: Sequence[Record]) -> ReportTable | None:
    """F1 averaged by the size of the classes, which is what work on fine-tuned language models reports."""
    used = of_task(records, "classification")
    titles = dataset_titles(used, CLASSIFICATION_DATASETS)
    columns = [Column(dataset, title, dataset, weighted_f1) for dataset, title in titles.items()]
    return system_table(
        measured(used, columns),
        columns,
        "F1 (%) averaged by the size of the classes; that of CogALexV leaves out the class random. Published encoders "
        "were trained on each dataset.",
        published=published("classification_weighted"),
    )


def class_table(records: Sequence[Record]) -> ReportTable | None:
    """F1 of each class of each dataset, systems side by side (the paper's Table 4)."""
    used = [record for record in of_task(records, "classification") if "by_class" in record.metrics]
    (theirs,), (differences,) = published("per_class"), published("per_class_differences")
    lines = [
        Column(f"{dataset}/{name}", name, dataset, number, group=title)
        for dataset, title in dataset_titles(used, CLASSIFICATION_DATASETS, only_measured=True).items()
        for name, number in {
            **{name: metric("by_class", name, "f1") for name in _classes(used, dataset)},
            **{average: metric(f"{average}_f1") for average in AVERAGES},
        }.items()
    ]
    columns = {column.key: column for column in [*_f1_columns(used), *lines]}
    return systems_as_columns(
        measured(used, list(columns.values()), MEANS, order="mean/macro"),
        lines,
        f"F1 (%) of each class; the published column is from {theirs.source}, with the difference to RelBERT in "
        "brackets.",
        ("Dataset", "Class"),
        {
            theirs.system: {
                key: Value(number, mark=f" ({differences.values[key]:+.1f})") for key, number in theirs.values.items()
            }
        },
    )


def weighted_f1(record: Record) -> float | None:
    """The sum over classes of F1 times pairs, divided by the pairs; CogALexV's own task leaves out the class random."""
    classes: dict[str, Any] = record.metrics.get("by_class", {})
    counted = [scores for name, scores in classes.items() if (record.dataset, name) != ("cogalexv", "random")]
    pairs = sum(scores.get("pairs", 0) for scores in counted)
    return sum(scores["f1"] * scores["pairs"] for scores in counted) / pairs if pairs else None


def _f1_columns(records: Sequence[Record]) -> list[Column]:
    titles = dataset_titles(records, CLASSIFICATION_DATASETS) | {"mean": "mean"}
    return [
        Column(
            f"{dataset}/{average}",
            f"{title} {average}",
            dataset,
            metric(f"{average}_f1"),
            group=title,
            has_interval=average == "micro",
        )
        for dataset, title in titles.items()
        for average in AVERAGES
    ]


def _classes(records: Sequence[Record], dataset: str) -> list[str]:
    """The classes that occur, in the paper's order."""
    found = {name for record in records if record.dataset == dataset for name in record.metrics.get("by_class", {})}
    known = list(CLASSIFICATION_DATASETS[dataset].classes.values()) if dataset in CLASSIFICATION_DATASETS else []
    return [name for name in known if name in found] + sorted(found.difference(known))
