"""From a recipe to a trained model, and what a run will cost."""

from collections.abc import Collection
from pathlib import Path

from accelerate.state import PartialState

from relvec.data.overlap import (
    benchmark_folder,
    benchmark_pairs,
    inflected,
    load_for_training,
    pairs_for_testing,
)
from relvec.data.rated import RatedRelation, check_relations, split
from relvec.data.sources import SOURCES, load
from relvec.errors import RelvecError
from relvec.io.files import expanded
from relvec.io.tables import read_pairs
from relvec.model.adapter import as_folder
from relvec.model.cached_vectors import ModelVectors
from relvec.model.relation_model import RelBERT
from relvec.model.torch_backend import TorchRelBERT
from relvec.pairs import Pair
from relvec.prompts import Template
from relvec.prompts.learned import PromptResult
from relvec.training.loop import Course
from relvec.training.losses import LOSSES
from relvec.training.recipe import Recipe
from relvec.training.samplers import with_parents
from relvec.training.teacher import Teacher
from relvec.training.trainer import Trainer

SELECTION = {
    "top",
    "bottom",
    "threshold",
    "exclude_categories",
    "exclude_relations",
    "exclude_benchmark_pairs",
    "train_on_held_out",
}
"""The settings of a recipe that decide which relations and pairs it learns from."""


def train(
    recipe: Recipe, output: str | Path, data_dir: str | Path | None = None, show_progress: bool | None = None
) -> Course:
    """Train by a recipe and save the model to the folder `output`; the same call again resumes a killed run."""
    return make_trainer(recipe, output, data_dir).fit(show_progress)


def plan_training(recipe: Recipe, output: str | Path, data_dir: str | Path | None = None) -> dict[str, float]:
    """Check a run, count it and estimate its seconds, without training."""
    return make_trainer(recipe, output, data_dir).plan()


def load_relations(recipe: Recipe, data_dir: str | Path | None = None) -> list[RatedRelation]:
    """All relations a recipe names, without those it excludes, checked."""
    selection = recipe.model_dump(include=SELECTION)
    needs_negatives = LOSSES[recipe.loss].needs_triples
    relations = load_for_training(recipe.data, data_dir, needs_negatives=needs_negatives, **selection)
    check_relations(relations)
    return relations


def excluded_keys(recipe: Recipe, data_dir: str | Path | None = None) -> set[Pair]:
    """Pairs that no scrambled negative may be: those of benchmarks and those kept for testing, as `inflected` keys."""
    keys: set[Pair] = set()
    if recipe.exclude_benchmark_pairs:
        keys |= {inflected(pair) for pair in benchmark_pairs(benchmark_folder(data_dir))}
    if not recipe.train_on_held_out:
        keys |= pairs_for_testing(load(recipe.data, data_dir=data_dir))
    return keys


def make_trainer(recipe: Recipe, output: str | Path, data_dir: str | Path | None = None) -> Trainer:
    """The trainer of a recipe; whatever can go wrong before the first step goes wrong here."""
    relations = load_relations(recipe, data_dir)
    template: str | Template = recipe.template
    if recipe.prompt:
        if Path(output).resolve() == expanded(recipe.prompt).resolve():
            raise RelvecError(f"{output} holds the learned prompt itself; choose another output.")
        recipe, template = with_prompt(recipe)
    train, valid = split(relations, "train"), split(relations, "valid")
    if recipe.parents:
        train, valid = with_parents(train), with_parents(valid)
    # On the CPU first: the trainer gives each process a device of its own.
    model = TorchRelBERT.from_pretrained(
        recipe.base,
        template=template,
        pooling=recipe.pooling,
        layers=recipe.layers,
        device="cpu",
        dtype=recipe.base_dtype,
    )
    check_exclusions(recipe, "base", model)
    makes_pairs = recipe.scrambled_negatives_per_relation or recipe.unlabelled
    excluded = excluded_keys(recipe, data_dir) if makes_pairs else set()
    return Trainer(model, train, valid, recipe, output, excluded, make_teacher(recipe, model, excluded))


def check_exclusions(recipe: Recipe, role: str, model: RelBERT) -> None:
    """Refuse a base or teacher that was itself trained on what the recipe leaves out."""
    trained = model.training_record.get("recipe", {})
    if "data" not in trained:  # a language model, or one without labels of its own
        return
    seen = [name for name in recipe.exclude_categories if name not in trained.get("exclude_categories", ())]
    what = f"the category {seen[0]}" if seen else ""
    others = [name for name in trained["data"] if name not in SOURCES or not SOURCES[name].package_folder]
    if recipe.exclude_benchmark_pairs and not trained.get("exclude_benchmark_pairs") and others:
        what = "benchmark pairs"  # which the relations of this package have none of
    if what:
        problem = f"The {role} {model.name} was trained on {what}, which the recipe leaves out"
        raise RelvecError(f"{problem}; train it without, or choose another.")


def make_teacher(recipe: Recipe, student: RelBERT, excluded: Collection[Pair] = ()) -> Teacher | None:
    """The teacher of a recipe, if it has one.

    No unlabelled pair has an `excluded` key, or words that one of the two models cannot encode.
    """
    if not recipe.teacher:
        return None
    unlabelled = [pair for path in recipe.unlabelled for pair in read_pairs(path)]
    fair = [pair for pair in dict.fromkeys(unlabelled) if inflected(pair) not in excluded]
    dtype = "bfloat16" if recipe.mixed_precision == "bf16" else recipe.base_dtype
    model = RelBERT.from_pretrained(recipe.teacher, dtype=dtype)
    check_exclusions(recipe, "teacher", model)
    refused = {pair for each in (student, model) for pair in each.refused(fair, truncate=True)}
    fair = [pair for pair in fair if pair not in refused]
    return Teacher(ModelVectors(model), recipe.teacher_weight, fair, recipe.unlabelled_per_batch, recipe.seed)


def with_prompt(recipe: Recipe) -> tuple[Recipe, Template]:
    """The recipe with the base and the pooling of its learned prompt, and that prompt."""
    learned = PromptResult.load(recipe.prompt)
    if recipe.exclude_benchmark_pairs and not learned.settings.get("exclude_benchmark_pairs"):
        problem = f"The prompt in {recipe.prompt} may have seen benchmark pairs, which the recipe leaves out"
        raise RelvecError(f"{problem}; learn it with --exclude-benchmark-pairs, or train on all pairs.")
    if learned.method != "ptuning" and Path(learned.base).is_absolute() and not Path(learned.base).exists():
        fix = f"repeat `relvec prompt {learned.method} -o {recipe.prompt}` with the --base where it is now"
        raise RelvecError(f"The base {learned.base} of the prompt in {recipe.prompt} is gone; {fix}.")
    # P-tuning has given its base new tokens: the folder is itself a model.
    base = as_folder(recipe.prompt) if learned.method == "ptuning" else learned.base
    decided = {"base": base, "template": learned.text, "pooling": learned.pooling}
    return recipe.model_copy(update=decided), learned.template


def leave_processes() -> None:
    """Part from the processes that shared a run, at its end: nothing can be shared in this process after it.

    A process that ends without it may be aborted, as its network threads still run.
    """
    PartialState().destroy_process_group()
