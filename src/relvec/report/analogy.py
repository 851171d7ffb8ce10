"""Tables of analogy questions: accuracy, unknown words and ties, and the break-down by category and relation."""

from collections.abc import Sequence

from relvec.evaluation.questions import ANALOGY_DATASETS
from relvec.evaluation.records import Record, of_task
from relvec.report.layout import Entry, column_titles, commands, dataset_titles, labelled, ranked
from relvec.report.measured import Measured, measured, metric
from relvec.report.published import published
from relvec.report.sizes import paper_sizes, size_checks, size_warnings
from relvec.report.table import Column, Row, Table, Value

MEAN_OF = ("sat", "u2", "u4", "google", "bats")
CATEGORIES = {"google": ("Morphological", "Semantic"), "bats": ("Morphological", "Semantic", "Lexical")}
COUNTS = {"out_of_vocabulary": "unknown", "ties": "ties"}
SHOWN = {"Scoring": "scoring"}


def systems_of(records: Sequence[Record], part: str = "test") -> list[Measured]:
    """The systems that answered the questions of a part."""
    return measured([record for record in of_task(records, "analogy") if record.part == part])


def accuracy_table(records: Sequence[Record], part: str = "test") -> Table | None:
    """Accuracy on each dataset and the mean of five, published rows beneath (the paper's Tables 2 and 9)."""
    systems = systems_of(records, part)
    entries = ranked(accuracies(systems))
    if not entries:
        return None
    frame = labelled(entries, SHOWN)
    theirs = [*published("analogy"), *published("analogy_word_vectors")] if part == "test" else []
    used = [record for system in systems for record in system.records]
    return Table(
        name="analogy" if part == "test" else f"analogy_{part}",
        title="Analogy questions" if part == "test" else "Analogy questions, validation parts",
        description="Accuracy (%); the mean is that of SAT, U2, U4, Google and BATS." + frame.shared,
        label_titles=frame.titles,
        columns=accuracy_columns(systems),
        rows=frame.rows + frame.published(theirs, {"mean": MEAN_OF}),
        checks=size_checks(used),
        warnings=size_warnings(used),
        commands=commands([system for system, _ in entries]),
    )


def validation_table(records: Sequence[Record]) -> Table | None:
    """Accuracy on the validation parts, by which settings are chosen."""
    return accuracy_table(records, "valid")


def unknown_table(records: Sequence[Record]) -> Table | None:
    """How many questions a system could not answer, and how many it answered by the first of equal scores."""
    systems = systems_of(records)
    titles = dataset_titles(systems, ANALOGY_DATASETS, only_measured=True)
    cells = {f"{dataset}/{count}": (dataset, metric(count)) for dataset in titles for count in COUNTS}
    entries = [(system, values) for system in systems if (values := system.values(cells))]
    if not entries:
        return None
    frame = labelled(entries, SHOWN)
    return Table(
        name="analogy_unknown",
        title="Unknown words and ties",
        description="Questions none of whose choices could be scored, and questions with several best choices."
        + frame.shared,
        label_titles=frame.titles,
        columns=tuple(
            Column(f"{dataset}/{count}", f"{title} {text}", best="none", decimals=0)
            for dataset, title in titles.items()
            for count, text in COUNTS.items()
        ),
        rows=frame.rows,
        commands=commands([system for system, _ in entries]),
    )


def category_table(records: Sequence[Record]) -> Table | None:
    """Accuracy by high-level category of Google and BATS (the paper's Table 5)."""
    places = {
        f"{dataset}/{category}": (dataset, category) for dataset in CATEGORIES for category in CATEGORIES[dataset]
    }
    cells = {key: (dataset, metric("by_category", category, "accuracy")) for key, (dataset, category) in places.items()}
    entries = ranked([(system, system.values(cells)) for system in systems_of(records)])
    if not entries:
        return None
    frame = labelled(entries, SHOWN)
    return Table(
        name="analogy_categories",
        title="Analogy questions by category",
        description="Accuracy (%) on the categories of Google and BATS." + frame.shared,
        label_titles=frame.titles,
        columns=tuple(
            Column(key, f"{ANALOGY_DATASETS[dataset].title} {category}") for key, (dataset, category) in places.items()
        ),
        rows=frame.rows + frame.published(published("categories")),
        warnings=_warnings([system for system, _ in entries], *CATEGORIES),
        commands=commands([system for system, _ in entries]),
    )


def relation_table(records: Sequence[Record]) -> Table | None:
    """Accuracy on each relation of BATS, systems side by side (the paper's Table 12)."""
    on_bats = measured(
        [record for record in of_task(records, "analogy") if (record.dataset, record.part) == ("bats", "test")]
    )
    entries = ranked([(system, system.values({"bats": ("bats", metric("accuracy"))})) for system in on_bats], "bats")
    systems = [system for system, _ in entries]
    theirs = published("bats_relations")
    categories = {relation: category for category, relation in (key.split("/") for key in theirs[0].values)}
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


def accuracies(systems: Sequence[Measured]) -> list[Entry]:
    """The accuracy of each system on each dataset, and the mean of five."""
    entries: list[Entry] = []
    for system in systems:
        cells = {dataset: (dataset, metric("accuracy")) for dataset in system.by_dataset}
        values = system.values(cells, interval=metric("interval"))
        mean = system.mean(MEAN_OF, metric("accuracy"))
        entries.append((system, values | ({"mean": mean} if mean else {})))
    return entries


def accuracy_columns(systems: Sequence[Measured]) -> tuple[Column, ...]:
    """The paper's datasets with their sizes and the mean, then datasets of the user's."""
    used = {record.dataset: record for system in systems for record in system.records}
    part = next(iter(used.values())).part
    columns = []
    for dataset, title in dataset_titles(systems, ANALOGY_DATASETS).items():
        record = used.get(dataset, Record("analogy", "", dataset, part, "", {}, {}))
        size = (paper_sizes(record) or record.metrics).get("questions")
        columns.append(Column(dataset, f"{title} ({size})" if size else title))
    columns.insert(len(ANALOGY_DATASETS), Column("mean", "mean"))
    return tuple(columns)


def _warnings(systems: Sequence[Measured], *datasets: str) -> tuple[str, ...]:
    return size_warnings(record for system in systems for record in system.records if record.dataset in datasets)
