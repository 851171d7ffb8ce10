"""Tables of analogy questions: accuracy, unknown words and ties, categories, relations of BATS, language models."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from relvec.data.benchmarks.analogy import ANALOGY_DATASETS, datasets_with
from relvec.evaluation.portable import last_part
from relvec.evaluation.records import Record, of_task
from relvec.report.measured import (
    Entry,
    Measured,
    column_titles,
    commands,
    dataset_titles,
    labelled,
    measured,
    metric,
    ranked,
    seed_warnings,
    tuning_warnings,
)
from relvec.report.published import published
from relvec.report.sizes import paper_sizes, size_checks, size_warnings
from relvec.report.table import OTHER_SIZE, Column, Row, Table, Value

MEAN_OF = ("sat", "u2", "u4", "google", "bats")
CATEGORIES = {"google": ("Morphological", "Semantic"), "bats": ("Morphological", "Semantic", "Lexical")}
TUNING = {"vanilla": "vanilla", "relation model": "fine-tuned"}
USUALLY = " Unless a row says otherwise, questions are scored forward and those with unknown words count as wrong."


def accuracy_table(records: Sequence[Record], part: str = "test") -> Table | None:
    """Accuracy on each dataset and the mean of five, published rows beneath (the paper's Tables 2 and 9)."""
    systems = _systems(records, part)
    entries = ranked(_accuracies(systems))
    if not entries:
        return None
    frame = labelled(entries)
    used = [record for system in systems for record in system.records]
    return Table(
        name="analogy" if part == "test" else f"analogy_{part}",
        title="Analogy questions" if part == "test" else "Analogy questions, validation parts",
        description="Accuracy (%); the mean is that of SAT, U2, U4, Google and BATS." + USUALLY + frame.shared,
        label_titles=frame.titles,
        columns=_accuracy_columns(systems, part),
        rows=frame.rows + frame.published(published("analogy") if part == "test" else [], {"mean": MEAN_OF}),
        checks=size_checks(used),
        warnings=size_warnings(used) + tuning_warnings(systems) + seed_warnings(systems),
        commands=commands([system for system, _ in entries]),
    )


def validation_table(records: Sequence[Record]) -> Table | None:
    """Accuracy on the validation parts, by which settings are chosen."""
    return accuracy_table(records, "valid")


def unknown_table(records: Sequence[Record]) -> Table | None:
    """How many questions a system could not answer, and how many it answered by the first of equal scores."""
    answered = [record for record in records if metric("out_of_vocabulary")(record) != metric("questions")(record)]
    systems = _systems(answered)
    titles = dataset_titles(systems, ANALOGY_DATASETS, only_measured=True)
    columns = tuple(
        Column(f"{dataset}/{count}", f"{title} {text}", best="none", decimals=0, group=title)
        for dataset, title in titles.items()
        for count, text in (("out_of_vocabulary", "unknown"), ("ties", "ties"))
    )
    cells = {column.key: (dataset, metric(count)) for column in columns for dataset, count in [_split(column.key)]}
    entries = [(system, values) for system in systems if (values := system.values(cells))]
    entries = [entry for entry in entries if any(value.mean for value in entry[1].values())]
    if not entries:
        return None
    frame = labelled(entries)
    return Table(
        name="analogy_unknown",
        title="Unknown words and ties",
        description="Questions none of whose choices could be scored / questions with several best choices, of which "
        "the first is taken. Systems that have neither are not listed, nor is random choice." + frame.shared,
        label_titles=frame.titles,
        columns=columns,
        rows=frame.rows,
        commands=commands([system for system, _ in entries]),
    )


def category_table(records: Sequence[Record]) -> Table | None:
    """Accuracy by high-level category of Google and BATS (the paper's Table 5)."""
    columns = tuple(
        Column(f"{dataset}/{category}", f"{ANALOGY_DATASETS[dataset].title} {category}")
        for dataset, categories in CATEGORIES.items()
        for category in categories
    )
    cells = {
        column.key: (dataset, metric("by_category", category, "accuracy"))
        for column in columns
        for dataset, category in [_split(column.key)]
    }
    entries = ranked([(system, system.values(cells)) for system in _systems(records)])
    if not entries:
        return None
    frame = labelled(entries)
    systems = [system for system, _ in entries]
    return Table(
        name="analogy_categories",
        title="Analogy questions by category",
        description="Accuracy (%) on the categories of Google and BATS." + frame.shared,
        label_titles=frame.titles,
        columns=columns,
        rows=frame.rows + frame.published(published("categories")),
        warnings=_warnings(systems, *CATEGORIES),
        commands=commands(systems),
    )


def relation_table(records: Sequence[Record]) -> Table | None:
    """Accuracy on each relation of BATS, systems side by side (the paper's Table 12)."""
    on_bats = _systems([record for record in records if record.dataset == "bats"])
    entries = ranked([(system, system.values({"bats": ("bats", metric("accuracy"))})) for system in on_bats], "bats")
    systems = [system for system, _ in entries]
    theirs = published("bats_relations")
    categories = {relation: category for category, relation in map(_split, theirs[0].values)}
    found = {name for system in systems for record in system.records for name in record.metrics.get("by_relation", {})}
    if not found:
        return None
    rows = []
    for relation in [*categories, *sorted(found - categories.keys())]:
        category = categories.get(relation, "")
        cell = ("bats", metric("by_relation", relation, "accuracy"))
        ours = {
            str(number): value for number, system in enumerate(systems) for value in system.values({"": cell}).values()
        }
        values = {row.system: Value(row.values[f"{category}/{relation}"]) for row in theirs if category}
        rows.append(Row((category, relation), ours | values))
    return Table(
        name="analogy_bats_relations",
        title="BATS by relation",
        description=f"Accuracy (%) on each relation; the published columns are from {theirs[0].source}.",
        label_titles=("Category", "Relation"),
        columns=(
            *(Column(str(number), title) for number, title in enumerate(column_titles(systems))),
            *(Column(row.system, f"{row.system} (published)", is_measured=False) for row in theirs),
        ),
        rows=tuple(rows),
        best_along="row",
        warnings=_warnings(systems, "bats"),
        commands=commands(systems),
    )


def language_model_table(records: Sequence[Record]) -> Table | None:
    """Accuracy by language model, and what fine-tuning gains over the vanilla model (the paper's Figure 3, Table 7)."""
    systems = [
        system for system in _systems(records) if system.facts.get("base") and system.facts.get("kind") in TUNING
    ]
    entries = ranked(_accuracies(systems))
    if not entries:
        return None
    entries = [(system, values | _gain((system, values), entries)) for system, values in entries]
    places = {base: place for place, base in reversed(list(enumerate(_base(entry) for entry in entries)))}
    entries.sort(key=lambda entry: places[_base(entry)])  # stable: the language model with the best system comes first
    frame = labelled(entries)
    titles = ("Language model", frame.titles[0], "Tuning", *frame.titles[1:])
    rows = [
        replace(row, labels=(_base(entry), row.labels[0], TUNING[row.kind], *row.labels[1:]))
        for row, entry in zip(frame.rows, entries, strict=True)
    ]
    theirs = [row for row in [*published("analogy_language_models"), *published("analogy")] if row.base]
    return Table(
        name="language_models",
        title="Language models, vanilla and fine-tuned",
        description="Accuracy (%) on analogy questions; the gain is that over the vanilla model with the same prompt, "
        "else over the best vanilla one, on the mean of the datasets that both have." + frame.shared,
        label_titles=titles,
        columns=(*_accuracy_columns(systems), Column("gain", "gain", best="none")),
        rows=(*rows, *replace(frame, titles=titles).published(theirs, {"mean": MEAN_OF})),
        warnings=size_warnings(record for system in systems for record in system.records),
        commands=commands([system for system, _ in entries]),
    )


def _systems(records: Sequence[Record], part: str = "test") -> list[Measured]:
    return measured([record for record in of_task(records, "analogy") if record.part == part])


def _accuracies(systems: Sequence[Measured]) -> list[Entry]:
    """The accuracy of each system on each dataset, and the mean of five."""
    entries: list[Entry] = []
    for system in systems:
        cells = {dataset: (dataset, metric("accuracy")) for dataset in system.by_dataset}
        mean = system.mean(MEAN_OF, metric("accuracy"))
        entries.append((system, system.values(cells, has_interval=True) | ({"mean": mean} if mean else {})))
    return entries


def _accuracy_columns(systems: Sequence[Measured], part: str = "test") -> tuple[Column, ...]:
    """The paper's datasets with their sizes and the mean, then datasets of the user's."""
    used = {record.dataset: record for system in systems for record in system.records}
    columns = []
    for dataset, title in dataset_titles(systems, datasets_with(part)).items():
        record = used.get(dataset, _unmeasured(dataset, part))
        size = (paper_sizes(record) or record.metrics).get("questions")
        columns.append(Column(dataset, f"{title} ({size})" if size else title))
    columns.insert(sum(column.key in ANALOGY_DATASETS for column in columns), Column("mean", "mean"))
    return tuple(columns)


def _unmeasured(dataset: str, part: str) -> Record:
    return Record(task="analogy", system="", dataset=dataset, part=part, fingerprint="", settings={}, metrics={})


def _base(entry: Entry) -> str:
    return last_part(str(entry[0].facts["base"]))


def _gain(entry: Entry, entries: Sequence[Entry]) -> dict[str, Value]:
    """The mean over shared datasets minus that of the vanilla model of the same base, scored in the same way."""
    system, values = entry
    vanilla = [
        other
        for other in entries
        if other[0].facts["kind"] == "vanilla" and _base(other) == _base(entry) and other[0].settings == system.settings
    ]
    if system.facts["kind"] == "vanilla" or not vanilla:
        return {}
    # The entries are ranked, so the first is the best.
    prompt = {name: system.facts.get(name) for name in ("template", "pooling")}
    same = [other for other in vanilla if all(other[0].facts.get(name) == prompt[name] for name in prompt)]
    theirs = (same or vanilla)[0][1]
    shared = [name for name in MEAN_OF if name in values and name in theirs]
    if not shared:
        return {}
    is_other_size = any(found[name].mark for found in (values, theirs) for name in shared)
    gain = fmean(values[name].mean - theirs[name].mean for name in shared)
    return {"gain": Value(gain, seeds=values[shared[0]].seeds, mark=OTHER_SIZE if is_other_size else "")}


def _split(key: str) -> tuple[str, str]:
    dataset, _, name = key.rpartition("/")
    return dataset, name


def _warnings(systems: Sequence[Measured], *datasets: str) -> tuple[str, ...]:
    of_datasets = (record for system in systems for record in system.records if record.dataset in datasets)
    return size_warnings(of_datasets) + tuning_warnings(systems)
