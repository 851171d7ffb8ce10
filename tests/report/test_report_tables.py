"""What the tables say of saved records: means, spread, order, the best, sizes, and published rows beneath."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relvec.data.benchmarks.analogy import ANALOGY_DATASETS
from relvec.evaluation.fine_tuning import FineTuning
from relvec.evaluation.records import load_records
from relvec.report.measured_systems import USUAL
from relvec.report.published import published
from relvec.report.registry import TABLES, tables
from relvec.report.table import ReportTable, TableRow

Save = Callable[..., None]


def table(runs: Path, name: str) -> ReportTable:
    (found,) = [table for table in tables(load_records(runs)) if table.name == name]
    return found


def measured(table: ReportTable) -> list[TableRow]:
    return [row for row in table.rows if row.is_measured]


def test_every_table_of_the_registry_can_be_made(
    runs: Path, save_analogy: Save, save_classification: Save, save: Save
) -> None:
    save_analogy("a", "bats", 0.5, facts={"kind": "vanilla", "base": "b"}, unknown=1)
    save_analogy("a", "sat", 0.5, part="valid")
    save_classification("a", "bless", 0.5)
    save_classification("a", "bless", 0.5, classifier="fine-tuned")
    save("mapping", "relation_mapping", {"accuracy": 80.0})
    save("loss", "semeval2012", {"loss": 0.5, "pairs": 632})
    assert [table.name for table in tables(load_records(runs))] == list(TABLES)


def test_seeds_of_one_system_are_one_row(runs: Path, save_analogy: Save) -> None:
    for fingerprint, right in (("one", 0.6), ("two", 0.64)):
        save_analogy("a", "google", right, fingerprint=fingerprint)
    found = table(runs, "analogy")
    (row,) = measured(found)
    assert dict(zip(found.label_titles, row.labels, strict=True))["Seeds"] == "2"
    assert row.values["google"].text() == "62.0 ± 2.8"


def test_classifier_seeds_are_one_row_too(runs: Path, save_classification: Save) -> None:
    for seed in (0, 1):
        save_classification("a", "root09", 0.8 + seed / 10, seed=seed, fingerprint=f"f{seed}", facts={"seed": 0})
    found = table(runs, "classification")
    (row,) = measured(found)
    assert row.values["root09/micro"].text() == "85.0 ± 7.1"
    assert found.warnings == ()


def test_scorings_are_rows_of_their_own(runs: Path, save_analogy: Save) -> None:
    for scoring in ("forward", "bidirectional"):
        save_analogy("a", "sat", 0.5, scoring=scoring)
    assert [row.labels for row in measured(table(runs, "analogy"))] == [("a", "bidirectional"), ("a", "")]


def test_settings_have_a_column_only_where_they_differ(runs: Path, save_analogy: Save) -> None:
    save_analogy("a", "sat", 0.6, policy="fallback")
    found = table(runs, "analogy")
    assert found.label_titles == ("System",)
    assert found.description.endswith("All measured rows: unknown words: fallback.")
    save_analogy("a", "sat", 0.5)
    found = table(runs, "analogy")
    assert found.label_titles == ("System", "Settings")
    assert [row.labels[1] for row in measured(found)] == ["unknown words: fallback", ""]


def test_the_defaults_of_fine_tuning_are_not_told() -> None:
    settings = {name: value for name, value in FineTuning().settings.items() if name not in ("classifier", "seed")}
    assert settings.items() <= USUAL.items()


def test_the_mean_is_that_of_five_datasets_and_orders_the_rows(runs: Path, save_analogy: Save) -> None:
    for dataset in ANALOGY_DATASETS:
        save_analogy("low", dataset, 0.9 if dataset == "sat_full" else 0.25)
        save_analogy("high", dataset, 0.1 if dataset == "sat_full" else 0.5)
    save_analogy("partial", "sat", 0.9)
    rows = measured(table(runs, "analogy"))
    assert [row.labels[0] for row in rows] == ["high", "low", "partial"]
    assert [round(row.values["mean"].mean) for row in rows[:2]] == [50, 25]
    assert "mean" not in rows[2].values


def test_the_spread_of_the_mean_is_over_seeds(runs: Path, save_analogy: Save) -> None:
    for fingerprint, right in (("one", 0.6), ("two", 0.7)):
        for dataset in ("sat", "u2", "u4", "google", "bats"):
            save_analogy("a", dataset, right, fingerprint=fingerprint)
    (row,) = measured(table(runs, "analogy"))
    assert row.values["mean"].text() == "65.0 ± 7.1"


def test_a_seed_without_all_datasets_is_not_in_the_mean(runs: Path, save_analogy: Save) -> None:
    for dataset in ("sat", "u2", "u4", "google", "bats"):
        save_analogy("a", dataset, 0.6, fingerprint="whole")
    save_analogy("a", "google", 0.9, fingerprint="partial")
    (row,) = measured(table(runs, "analogy"))
    assert row.values["google"].text() == "75.0 ± 21.2"
    assert row.values["mean"].text() == "60.0"


def test_a_system_with_a_fingerprint_for_each_dataset_has_a_mean_without_spread(runs: Path, save_analogy: Save) -> None:
    for dataset in ("sat", "u2", "u4", "google", "bats"):
        save_analogy("a", dataset, 0.5, fingerprint=dataset)
    (row,) = measured(table(runs, "analogy"))
    assert math.isnan(row.values["mean"].deviation)


def test_the_best_measured_number_is_found_and_published_ones_are_not(runs: Path, save_analogy: Save) -> None:
    save_analogy("a", "sat", 0.3)
    assert table(runs, "analogy").best() == set()  # one alone is not the best of anything
    save_analogy("b", "sat", 0.4)
    found = table(runs, "analogy")
    assert found.best() == {(0, "sat")}
    assert found.rows[0].labels[0] == "b"


def test_published_rows_follow_with_their_source(runs: Path, save_analogy: Save) -> None:
    save_analogy("a", "sat", 0.3)
    rows = table(runs, "analogy").rows
    assert [row.is_measured for row in rows] == [True] + [False] * (len(rows) - 1)
    by_system = {row.labels[0]: row for row in rows[1:]}
    assert by_system["LRA"].origin == "published: Turney 2005"
    assert by_system["RelBERT, manual prompt"].values["mean"].text() == "74.7"
    assert by_system["GPT-3, few-shot"].values["sat_full"].text() == "65.2*"
    assert {row.system for row in published("analogy")} == by_system.keys()


def test_validation_parts_have_a_table_without_published_rows(runs: Path, save_analogy: Save) -> None:
    save_analogy("a", "sat", 0.5, part="valid")
    found = table(runs, "analogy_valid")
    assert [row.labels[0] for row in found.rows] == ["a"]
    titles = [column.title for column in found.columns]
    assert titles == ["SAT (37)", "U2 (24)", "U4 (48)", "Google (50)", "BATS (199)", "mean"]


def test_sizes_are_in_the_header(runs: Path, save_analogy: Save) -> None:
    save_analogy("a", "sat_full", 0.5)
    found = table(runs, "analogy")
    titles = [column.title for column in found.columns]
    assert titles == ["SAT full (374)", "SAT (337)", "U2 (228)", "U4 (432)", "Google (500)", "BATS (1799)", "mean"]
    assert found.warnings == ()


def test_another_size_is_warned_of_marked_and_never_the_best(runs: Path, save_analogy: Save) -> None:
    save_analogy("a", "u2", 0.5, size=10)
    save_analogy("b", "u2", 0.3)
    save_analogy("c", "u2", 0.2)
    found = table(runs, "analogy")
    assert found.warnings == ("U2 was measured with 10 questions, the paper has 228 questions: not comparable (a).",)
    assert found.rows[0].values["u2"].text() == "50.0!"
    assert found.best() == {(1, "u2")}


def test_another_size_of_a_classification_part_is_warned_of(runs: Path, save_classification: Save) -> None:
    save_classification("a", "root09", 0.5, size=100)
    (warning,) = table(runs, "classification").warnings
    assert "100 test pairs" in warning
    assert "3,191 test pairs" in warning


def test_unknown_questions_are_counted(runs: Path, save_analogy: Save) -> None:
    save_analogy("a", "u4", 0.5, unknown=7)
    (row,) = table(runs, "analogy_unknown").rows
    assert (row.values["u4/out_of_vocabulary"].text(0), row.values["u4/ties"].text(0)) == ("7", "0")


def test_categories_stand_above_the_papers(runs: Path, save_analogy: Save) -> None:
    save_analogy("a", "google", 1.0)
    found = table(runs, "analogy_categories")
    assert found.rows[0].values["google/Semantic"].mean == 100
    assert found.rows[1].values["bats/Lexical"].mean == 33.8


def test_systems_are_columns_where_relations_are_rows(runs: Path, save_analogy: Save) -> None:
    save_analogy("a", "bats", 0.4)
    save_analogy("b", "bats", 0.8)
    found = table(runs, "analogy_bats_relations")
    assert [column.title for column in found.columns][:3] == ["b", "a", "FastText, unknown words wrong (published)"]
    assert len(found.rows) == 39
    (plural,) = [row for row in found.rows if row.labels == ("Morphological", "noun:plural")]
    assert plural.values["FastText, unknown words wrong"].mean == 78.7
    assert found.best() >= {(found.rows.index(plural), "0")}


def test_vanilla_and_fine_tuned_are_compared_by_language_model(runs: Path, save_analogy: Save) -> None:
    prompt = {"base": "b", "template": "t", "pooling": "mask"}
    save_analogy("other prompt", "sat", 0.3, facts={**prompt, "template": "u", "kind": "vanilla"})
    save_analogy("plain", "sat", 0.2, facts={**prompt, "kind": "vanilla"})
    save_analogy("tuned", "sat", 0.6, facts={**prompt, "kind": "relation model"})
    save_analogy("better", "sat", 0.7, facts={"base": "c", "kind": "relation model"})
    save_analogy("word vectors", "sat", 0.5, facts={"kind": "baseline"})
    rows = table(runs, "language_models").rows
    labels = [row.labels[:3] for row in rows if row.is_measured]
    assert labels == [
        ("c", "better", "fine-tuned"),
        ("b", "tuned", "fine-tuned"),
        ("b", "other prompt", "vanilla"),
        ("b", "plain", "vanilla"),
    ]
    assert rows[1].values["gain"].text() == f"{rows[1].values['sat'].mean - rows[3].values['sat'].mean:.1f}"
    assert "gain" not in rows[0].values
    assert {row.labels[0] for row in rows if not row.is_measured} > {"ALBERT-xlarge", "BERT-large-cased"}


def test_there_is_no_gain_without_a_dataset_that_both_have(runs: Path, save_analogy: Save) -> None:
    save_analogy("plain", "u2", 0.2, facts={"base": "b", "kind": "vanilla"})
    save_analogy("tuned", "sat", 0.6, facts={"base": "b", "kind": "relation model"})
    assert all("gain" not in row.values for row in table(runs, "language_models").rows)


def test_classes_have_the_published_difference_beside_them(runs: Path, save_classification: Save) -> None:
    save_classification("a", "khn", 0.9)
    found = table(runs, "classification_classes")
    texts = {row.labels: row.values["RelBERT without hypernymy"].text() for row in found.rows}
    assert texts["K&H+N", "meronym"] == "74.5 (+5.4)"
    assert [row.labels[1] for row in found.rows] == ["random", "meronym", "hypernym", "co-hyponym", "macro", "micro"]


def test_the_lowest_loss_is_the_best(runs: Path, save: Save) -> None:
    for name, loss in (("a", 0.5), ("b", 0.25)):
        save("loss", "semeval2012", {"loss": loss, "in_order": None}, name, settings={"loss": "triplet"})
    save("loss", "semeval2012", {"loss": 0.1}, "c", settings={"loss": "infonce"})  # not to be compared
    found = table(runs, "validation_loss")
    assert found.best() == {(1, "semeval2012 triplet/loss")}
    assert found.rows[1].values["semeval2012 triplet/loss"].text(4) == "0.2500"


def test_fine_tuned_encoders_are_apart_and_have_no_published_rows(runs: Path, save_classification: Save) -> None:
    save_classification("a", "root09", 0.9)
    save_classification("b", "root09", 0.95, classifier="fine-tuned")
    assert [row.labels for row in measured(table(runs, "classification"))] == [("a",)]
    assert [row.labels for row in table(runs, "classification_fine_tuned").rows] == [("b",)]
    assert [row.labels for row in measured(table(runs, "classification_weighted"))] == [("b", "fine-tuned"), ("a", "")]


def test_evalution_without_a_class_is_not_comparable(runs: Path, save_classification: Save) -> None:
    save_classification("a", "evalution", 0.9)
    save_classification("a", "evalution", 0.9, without="part of", size=1701)
    found = table(runs, "classification")
    assert {row.labels[1]: row.values["evalution/macro"].mark for row in measured(found)} == {
        "": "",
        "without part of": "!",
    }


def test_datasets_of_one_file_name_are_told_apart_by_their_folders(runs: Path, save: Save) -> None:
    save("analogy", "one/mine.jsonl", {"accuracy": 50.0, "questions": 4})
    assert table(runs, "analogy").columns[-1].title == "mine.jsonl (4)"
    for dataset in ("one/mine.jsonl", "two/mine.jsonl", "two/sat"):
        save("analogy", dataset, {"accuracy": 50.0})
    titles = [column.title for column in table(runs, "analogy").columns]
    assert titles[7:] == ["one/mine.jsonl", "two/mine.jsonl", "two/sat"]


def test_a_copy_of_a_record_is_no_second_seed(runs: Path, save_analogy: Save) -> None:
    save_analogy("a", "sat", 0.5)
    (runs / "records.jsonl").write_text((runs / "records.jsonl").read_text() * 2)
    (row,) = measured(table(runs, "analogy"))
    assert row.values["sat"].seeds == 1


@pytest.mark.parametrize(
    ("fact", "values", "told"),
    [
        ("pooling", ["mask", "average"], "pooling: average, mask"),
        ("template", ["[h] <mask> [t]", "[t] of [h]"], "template: [h] <mask> [t], [t] of [h]"),
        ("data", [["semeval2012"], ["semeval2012", "bundled"]], "data: semeval2012, semeval2012 + bundled"),
        ("dtype", ["bfloat16", None], "dtype: bfloat16, float32"),  # of float32 a record says nothing
    ],
)
def test_another_prompt_or_training_data_is_no_seed(
    runs: Path, save_analogy: Save, fact: str, values: list[Any], told: str
) -> None:
    for fingerprint, value in zip(("f0", "f1"), values, strict=True):
        save_analogy("a", "sat", 0.5, fingerprint=fingerprint, facts={"seed": 0} | ({fact: value} if value else {}))
    problem = f"a averages different systems ({told})"
    assert table(runs, "analogy").warnings == (f"{problem}; evaluate them under different names.",)


@pytest.mark.parametrize(
    ("facts", "are_seeds"),
    [
        ([{"seed": 0}, {"seed": 1}], True),
        ([{"seed": 0}, {"seed": 0}], False),
        ([{"kind": "baseline"}, {"kind": "baseline"}], False),
        ([{"kind": "baseline", "seed": 0}, {"kind": "baseline", "seed": 1}], True),
        ([{}, {}], True),  # nobody knows
    ],
)
def test_two_results_of_one_seed_are_warned_of(
    runs: Path, save_analogy: Save, facts: list[dict[str, Any]], are_seeds: bool
) -> None:
    for fingerprint, told in zip(("f0", "f1"), facts, strict=True):
        for dataset in ("sat", "u2"):
            save_analogy("a", dataset, 0.5, fingerprint=fingerprint, facts=told)
    problem = "a averages results that are not seeds of one another (f0, f1)"
    warning = f"{problem}; remove the outdated ones, or evaluate them under different names."
    assert table(runs, "analogy").warnings == (() if are_seeds else (warning,))


def test_a_baseline_that_is_tuned_to_each_dataset_is_one_system(runs: Path, save_analogy: Save) -> None:
    for dataset in ("sat", "u2"):
        save_analogy("a", dataset, 0.5, fingerprint=dataset, facts={"kind": "baseline"})
    assert table(runs, "analogy").warnings == ()


@pytest.mark.parametrize(
    ("configuration", "mark"),
    [({"template": "to-as"}, ""), ({"valid_accuracy": 60.0}, "*"), ({"shots": 0}, ""), ({"shots": 5}, "*")],
)
def test_a_system_that_used_the_dataset_is_marked_as_published_ones_are(
    runs: Path, save: Save, save_analogy: Save, configuration: dict[str, Any], mark: str
) -> None:
    for dataset in ("sat", "u2", "u4", "google", "bats"):
        save_analogy("used", dataset, 0.9, configuration=configuration)
        save_analogy("b", dataset, 0.4)
        save_analogy("c", dataset, 0.3)
    found = table(runs, "analogy")
    first = found.rows[0]
    assert {value.mark for value in first.values.values()} == {mark}
    assert {row for row, _ in found.best()} == {1 if mark else 0}
    told = ("Tuned on, or shown, questions of the same datasets, hence the *: used.",) if mark else ()
    assert found.warnings == table(runs, "analogy_categories").warnings == told


@pytest.mark.parametrize("metrics", [{}, {"accuracy": None}, {"questions": 337}])
def test_records_without_numbers_make_no_row(runs: Path, save: Save, metrics: dict[str, Any]) -> None:
    save("analogy", "sat", metrics)
    assert tables(load_records(runs)) == []
