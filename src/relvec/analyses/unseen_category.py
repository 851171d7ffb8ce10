"""Does a model know relations that it was not trained on (section 6, "Training Data Overlap")?

The paper trains once more without SemEval's category 1, Class Inclusion, and looks at how well hypernyms are still
told from other relations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relvec.data.benchmarks.classification import CLASSIFICATION_DATASETS
from relvec.errors import RelvecError
from relvec.evaluation.classification import ClassificationTask
from relvec.evaluation.records import Record, file_name
from relvec.evaluation.systems import loaded_system
from relvec.evaluation.task import run_task
from relvec.model.relation_model import RelBERT
from relvec.training.recipe import Recipe
from relvec.training.run import load_relations, train

# The rows of the paper's table; other classes follow before the averages.
_CLASSES = ("random", "meronym", "event", "hypernym", "co-hyponym", "attribute", "possession", "antonym", "synonym")
_AVERAGES = ("macro", "micro")

ClassScores = dict[str, float]
"""F1 (%) of each class, and `macro` and `micro`."""


@dataclass(frozen=True)
class UnseenCategory:
    """The scores on each dataset of a model trained on everything, and of one trained without a category."""

    category: str
    trained_on_all: dict[str, ClassScores]
    trained_without: dict[str, ClassScores]

    def columns(self) -> list[str]:
        """The heads of the table: the class, then each dataset."""
        datasets = self.trained_without
        return ["F1 (%)", *(CLASSIFICATION_DATASETS[n].title if n in CLASSIFICATION_DATASETS else n for n in datasets)]

    def rows(self) -> list[list[str]]:
        """The paper's table: F1 of each class without the category (in brackets, how much more than with it).

        >>> with_it, without = {"hypernym": 90.0, "macro": 80.0}, {"hypernym": 88.5, "macro": 81.0}
        >>> UnseenCategory("1", {"bless": with_it}, {"bless": without}).rows()
        [['hypernym', '88.5 (-1.5)'], ['macro', '81.0 (+1.0)']]
        """
        found = {name for scores in self.trained_without.values() for name in scores}
        others = sorted(found.difference(_CLASSES, _AVERAGES))
        names = [name for name in (*_CLASSES, *others, *_AVERAGES) if name in found]
        return [[name, *(self._cell(dataset, name) for dataset in self.trained_without)] for name in names]

    def _cell(self, dataset: str, name: str) -> str:
        if name not in self.trained_without[dataset]:
            return "-"
        score, before = self.trained_without[dataset][name], self.trained_on_all[dataset].get(name)
        # A class without a test pair has a score only where it was predicted.
        return f"{score:.1f}" if before is None else f"{score:.1f} ({score - before:+.1f})"


def unseen_category(
    recipe: Recipe,
    category: str,
    output: str | Path,
    datasets: Sequence[str] = (),
    *,
    data_dir: str | Path | None = None,
    runs: str | Path = "runs",
    dtype: str = "float32",
    grid: bool = True,
    seed: int = 0,
    jobs: int | None = None,
    command: str = "",
    show_progress: bool | None = None,
) -> UnseenCategory:
    """Train by a recipe with and without a category of relations, and classify lexical relations with both models.

    The datasets are by default all that have a name. The models go to `output/all` and `output/without-<category>`, the
    results to the folder `runs`. What an earlier call finished or began is taken up again. Both models encode as
    `dtype` says; `grid`, `seed` and `jobs` are the classifier's.
    """
    if category in recipe.exclude_categories:
        raise RelvecError(f"The recipe leaves out the category {category!r} already; take it out of the recipe.")
    folder = Path(output)
    reduced = recipe.changed({"exclude_categories": [*recipe.exclude_categories, category]})
    # A wrong name fails now, not after hours of training.
    load_relations(reduced, data_dir)
    task = ClassificationTask(grid=grid, seed=seed, jobs=jobs)
    parts = task.load(datasets, data_dir)
    scores = []
    for chosen, name in ((recipe, "all"), (reduced, f"without-{file_name(category)}")):
        train(chosen, folder / name, data_dir, show_progress)
        model = RelBERT.from_pretrained(folder / name, dtype=dtype)
        system = loaded_system(model, f"{folder.absolute().name}/{name}")
        records = run_task(task, system, parts, runs, command)
        scores.append({record.dataset: _scores(record) for record in records})
    return UnseenCategory(category, *scores)


def _scores(record: Record) -> ClassScores:
    by_class = {name: found["f1"] for name, found in record.metrics["by_class"].items()}
    return {**by_class, **{name: record.metrics[f"{name}_f1"] for name in _AVERAGES}}
