"""Tables of analogy questions: accuracy, unknown words and ties, categories, relations of BATS, language models."""

from collections.abc import Sequence
from statistics import fmean

from relvec.data.benchmarks.analogy import ANALOGY_DATASETS, datasets_with
from relvec.evaluation.records import Record, last_part
from relvec.report.measured_systems import MeasuredSystem, dataset_titles, gravest_mark, paper_sizes
from relvec.report.published import published
from relvec.report.system_tables import SystemValues, measured, metric, system_table, systems_as_columns
from relvec.report.table import Column, ReportTable, Value

MEAN_OF = ("sat", "u2", "u4", "google", "bats")
MEANS = {"mean": MEAN_OF}
TUNING = {"vanilla": "vanilla", "relation model": "fine-tuned"}


def accuracy_table(records: Sequence[Record], part: str = "test") -> ReportTable | None:
    """Accuracy on each dataset and the mean of five, published rows beneath (the paper's Tables 2 and 9)."""
    used = _of_part(records, part)
    columns = _accuracy_columns(used, part)
    return system_table(
        measured(used, columns, MEANS),
        columns,
        "Accuracy (%); the mean is that of SAT, U2, U4, Google and BATS. Unless a row says otherwise, questions are "
        "scored forward and those with unknown words count as wrong.",
        published=published("analogy") if part == "test" else (),
        means=MEANS,
    )


def unknown_table(records: Sequence[Record]) -> ReportTable | None:
    """How many questions a system could not answer, and how many it answered by the first of equal scores."""
    used = [
        record
        for record in _of_part(records)
        if record.metrics.get("out_of_vocabulary") != record.metrics.get("questions")
    ]
    columns = [
        Column(f"{dataset}/{count}", f"{title} {text}", dataset, metric(count), best="none", decimals=0, group=title)
        for dataset, title in dataset_titles(used, ANALOGY_DATASETS, only_measured=True).items()
        for count, text in (("out_of_vocabulary", "unknown"), ("ties", "ties"))
    ]
    entries = [entry for entry in measured(used, columns) if any(value.mean for value in entry[1].values())]
    return system_table(
        sorted(entries, key=lambda entry: (entry[0].name, str(entry[0].settings))),
        columns,
        "Questions none of whose choices could be scored / questions with several best choices, of which the first is "
        "taken. Systems that have neither are not listed, nor is random choice.",
    )


def category_table(records: Sequence[Record]) -> ReportTable | None:
    """Accuracy by high-level category of Google and BATS (the paper's Table 5)."""
    columns = [
        Column(f"{dataset}/{name}", f"{known.title} {name}", dataset, metric("by_category", name, "accuracy"))
        for dataset, known in ANALOGY_DATASETS.items()
        for name in dict.fromkeys(known.categories.values())
    ]
    datasets = {column.dataset for column in columns}
    return system_table(
        measured([record for record in _of_part(records) if record.dataset in datasets], columns),
        columns,
        "Accuracy (%) on the categories of Google and BATS.",
        published=published("categories"),
    )


def relation_table(records: Sequence[Record]) -> ReportTable | None:
    """Accuracy on each relation of BATS, systems side by side (the paper's Table 12)."""
    used = [record for record in _of_part(records) if record.dataset == "bats"]
    theirs = published("bats_relations")
    known = [(category, relation) for category, _, relation in (key.partition("/") for key in theirs[0].values)]
    others = {name for record in used for name in record.metrics.get("by_relation", {})} - {name for _, name in known}
    lines = [
        Column(f"{category}/{name}", name, "bats", metric("by_relation", name, "accuracy"), group=category)
        for category, name in [*known, *(("", name) for name in sorted(others))]
    ]
    return systems_as_columns(
        measured(used, [Column("bats", "BATS", "bats", metric("accuracy")), *lines], order="bats"),
        lines,
        f"Accuracy (%) on each relation; the published columns are from {theirs[0].source}.",
        ("Category", "Relation"),
        {row.system: {key: Value(number) for key, number in row.values.items()} for row in theirs},
    )


def language_model_table(records: Sequence[Record]) -> ReportTable | None:
    """Accuracy by language model, and what fine-tuning gains over the vanilla model (the paper's Figure 3, Table 7)."""
    used = [record for record in _of_part(records) if record.facts.get("base") and record.facts.get("kind") in TUNING]
    columns = _accuracy_columns(used)
    ranked = measured(used, columns, MEANS)
    bases = list(dict.fromkeys(_base(system) for system, _ in ranked))
    entries = [(system, values | _gain((system, values), ranked)) for system, values in ranked]
    entries.sort(key=lambda entry: bases.index(_base(entry[0])))  # stable: the best of a language model comes first
    return system_table(
        entries,
        [*columns, Column("gain", "gain", best="none")],
        "Accuracy (%) on analogy questions; the gain is that over the vanilla model with the same prompt, else over "
        "the best vanilla one, on the mean of the datasets that both have.",
        labels={
            "Language model": _base,
            "System": lambda system: system.name,
            "Tuning": lambda system: TUNING[system.facts["kind"]],
        },
        published=[row for row in [*published("analogy_language_models"), *published("analogy")] if row.base],
        means=MEANS,
    )


def _of_part(records: Sequence[Record], part: str = "test") -> list[Record]:
    return [record for record in records if record.task == "analogy" and record.part == part]


def _accuracy_columns(records: Sequence[Record], part: str = "test") -> list[Column]:
    """The paper's datasets with their sizes and the mean, then datasets of the user's."""
    measured_sizes = {record.dataset: record.metrics.get("questions") for record in records}
    columns = []
    for dataset, title in dataset_titles(records, datasets_with(part)).items():
        size = paper_sizes("analogy", dataset, part).get("questions", measured_sizes.get(dataset))
        title = f"{title} ({size})" if size else title
        columns.append(Column(dataset, title, dataset, metric("accuracy"), has_interval=True))
    columns.insert(len(datasets_with(part)), Column("mean", "mean"))
    return columns


def _base(system: MeasuredSystem) -> str:
    return last_part(str(system.facts["base"]))


def _gain(entry: SystemValues, ranked: Sequence[SystemValues]) -> dict[str, Value]:
    """The mean over shared datasets minus that of the vanilla model of the same base, scored in the same way."""
    system, values = entry
    vanilla = [
        (other, theirs)
        for other, theirs in ranked
        if other.facts["kind"] == "vanilla" and _base(other) == _base(system) and other.settings == system.settings
    ]
    if system.facts["kind"] == "vanilla" or not vanilla:
        return {}
    # The first is the best; one with the same prompt comes before it.
    _, theirs = min(vanilla, key=lambda other: _prompt(other[0]) != _prompt(system))
    shared = [name for name in MEAN_OF if name in values and name in theirs]
    if not shared:
        return {}
    gain = fmean(values[name].mean - theirs[name].mean for name in shared)
    mark = gravest_mark(found[name].mark for found in (values, theirs) for name in shared)
    return {"gain": Value(gain, seeds=values[shared[0]].seeds, mark=mark)}


def _prompt(system: MeasuredSystem) -> list[object]:
    return [system.facts.get(name) for name in ("template", "pooling")]
