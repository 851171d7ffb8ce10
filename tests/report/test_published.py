"""The published numbers are complete, within range, and as printed."""

import tomllib
from collections import Counter
from importlib.resources import files

import pytest

from relvec.data.benchmarks.analogy import ANALOGY_DATASETS
from relvec.data.benchmarks.classification import CLASSIFICATION_DATASETS
from relvec.report.published import PublishedRow, published, sources

TABLES = {
    name: published(name)
    for name in tomllib.loads(files("relvec.report").joinpath("published.toml").read_text(encoding="utf-8"))
    if name != "sources"
}
ROWS = [(table, row) for table, rows in TABLES.items() for row in rows]


def row(table: str, system: str) -> PublishedRow:
    (found,) = [row for row in published(table) if row.system == system]
    return found


def test_every_table_of_the_paper_is_there() -> None:
    assert {table: len(rows) for table, rows in TABLES.items()} == {
        "analogy": 31,
        "analogy_language_models": 6,
        "categories": 4,
        "bats_relations": 4,
        "classification": 28,
        "classification_weighted": 2,
        "per_class": 1,
        "per_class_differences": 1,
    }


def test_each_system_is_once_in_a_table_and_says_its_source() -> None:
    assert max(Counter((table, row.system) for table, row in ROWS).values()) == 1
    assert max(Counter((table, *row.values.items()) for table, row in ROWS).values()) == 1
    for _, found in ROWS:
        assert any(found.source.startswith(source) for source in sources()), found.source
    assert all(any(source in found.source for _, found in ROWS) for source in sources())


def test_values_are_per_cents_except_differences() -> None:
    for table, found in ROWS:
        lowest = -10 if table == "per_class_differences" else 10
        assert all(lowest <= value <= 100 for value in found.values.values()), found


def test_datasets_and_classes_are_called_as_in_the_registries() -> None:
    for table, found in ROWS:
        names = {key.partition("/")[0] for key in found.values}
        if table == "bats_relations":
            assert names == {"Encyclopedic", "Lexical", "Morphological"}
        else:
            assert names <= {*ANALOGY_DATASETS, *CLASSIFICATION_DATASETS}
    for key in row("per_class", "RelBERT without hypernymy").values:
        dataset, name = key.split("/")
        assert name in {*CLASSIFICATION_DATASETS[dataset].classes.values(), "macro", "micro"}


@pytest.mark.parametrize(
    ("table", "system", "key", "value"),
    [
        ("analogy", "PMI", "u4", 39.1),
        ("analogy", "RelBERT, manual prompt", "sat_full", 69.5),
        ("analogy", "analogical proportion score, tuned, GPT-2", "bats", 81.2),
        ("classification", "GloVe, cat+dot", "bless/macro", 93.1),
        ("classification", "RelBERT, manual prompt", "cogalexv/macro", 71.2),
        ("classification_weighted", "fine-tuned RoBERTa-large", "evalution", 77.1),
        ("categories", "FastText, unknown words wrong", "bats/Lexical", 33.8),
        ("bats_relations", "RelBERT, manual prompt", "Morphological/noun:plural", 87.6),
        ("per_class", "RelBERT without hypernymy", "evalution/synonym", 53.6),
        ("per_class_differences", "RelBERT without hypernymy", "khn/meronym", 5.4),
    ],
)
def test_numbers_are_as_printed(table: str, system: str, key: str, value: float) -> None:
    assert row(table, system).values[key] == value


def test_systems_that_used_the_dataset_are_marked() -> None:
    marked = {row.system for row in published("analogy") if row.mark == "*"}
    assert marked == {
        "GPT-3, few-shot",
        *(f"analogical proportion score, tuned, {model}" for model in ("GPT-2", "BERT", "RoBERTa")),
    }


def test_the_paper_contradicts_itself_on_glove_and_both_numbers_are_kept() -> None:
    assert row("analogy", "GloVe").values["u4"] == 39.8
    assert row("analogy", "GloVe, diff").values["u4"] == 47.8
    assert "39.8" in row("analogy", "GloVe, diff").note


def test_the_four_systems_on_bats_share_39_relations() -> None:
    rows = published("bats_relations")
    assert {len(row.values) for row in rows} == {39}
    assert all(row.values.keys() == rows[0].values.keys() for row in rows)
