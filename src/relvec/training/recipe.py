"""A training recipe: every choice that decides a run, from a TOML file, and as a trained model stores it."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, model_validator

from relvec.errors import RelvecError
from relvec.pooling import POOLINGS
from relvec.settings import NameOrPath, Seed, Settings, Texts, setting
from relvec.training.losses import LOSSES, checked_settings

_OF_LOSS = "loss_settings."
_MaybeNumber = Annotated[float | None, BeforeValidator(lambda value: None if value == "none" else value)]


class Recipe(Settings):
    """What is trained, on what, and how; the defaults are the project's own recipe.

    >>> Recipe().changed({"loss": "triplet", "steps": "80"}).steps
    80
    >>> Recipe(lora_rank=0).learning_rate
    3e-05
    """

    base: NameOrPath = setting(
        "mpnet", "the encoder, or the relation model, to start from: a name, a folder or a hub id"
    )
    data: Texts = setting(lambda: ["bundled"], "rated pairs: one or more names, files, folders or hub ids")
    template: str = setting(
        "[h] <mask> [t]", "1 to 5 for the paper's templates, or a text with `[h]`, `[t]` and `<mask>`"
    )
    pooling: str = setting("mask", f"the tokens that are averaged: {', '.join(POOLINGS)}")
    layers: int = setting(0, "how many of the lowest layers of the base to keep; 0 keeps all", ge=0)
    prompt: NameOrPath = setting("", "the folder of a learned prompt, which then decides base, template and pooling")

    loss: str = setting("contrastive", f"the loss: {', '.join(LOSSES)}")
    loss_settings: dict[str, Any] = setting(dict, "settings of the loss by name")
    relations_per_batch: int = setting(24, "without triples: relations in a step", ge=2)
    positives_per_relation: int = setting(4, "without triples: positives per relation in a step", ge=2)
    negatives_per_relation: int = setting(1, "without triples: hard negatives per relation in a step", ge=0)
    scrambled_negatives_per_relation: int = setting(
        0, "without triples: negatives per relation made by scrambling its positives", ge=0
    )
    flip_relations: bool = setting(
        False, "without triples: reverse all pairs of an asymmetric relation half of the time"
    )
    parents: bool = setting(False, "without triples: use categories of several relations as relations, too")
    teacher: NameOrPath = setting("", "a relation model whose similarities between pairs are learned too")
    teacher_weight: float = setting(1.0, "with a teacher: how much its similarities count beside the loss", gt=0)
    unlabelled: Texts = setting(list, "with a teacher: a file of pairs without relations to learn its similarities on")
    unlabelled_per_batch: int = setting(32, "with a teacher: unlabelled pairs in a step, if there are any", ge=1)
    triples_per_batch: int = setting(16, "with triples: triples in a step; in-batch triples are added to them", ge=2)

    lora_rank: int = setting(16, "the rank of the adapter; 0 trains all weights", "--lora", ge=0, le=4096)
    frozen_layers: int = setting(
        0, "freeze the embeddings and this many of the lowest layers; needs `lora_rank` 0", ge=0
    )
    steps: int = setting(150, "how many steps to train, unless `epochs` is set", ge=0)
    epochs: float = setting(0.0, "if above 0: passes over all relations or triples, instead of `steps`", ge=0)
    learning_rate: float = setting(
        lambda known: 1e-3 if known["lora_rank"] else 3e-5,
        "the peak learning rate; the default is 3e-5 if `lora_rank` is 0",
        gt=0,
    )
    warmup_steps: int = setting(10, "warm-up steps of the learning rate", ge=0)
    schedule: Literal["linear", "constant", "cooldown"] = setting(
        "linear",
        "`linear`: the learning rate falls to nearly 0; `constant`: it stays; `cooldown`: it falls over the last third",
    )
    weight_decay: float = setting(0.01, "the weight decay of AdamW", ge=0)
    max_gradient_norm: float = setting(1.0, "gradients are clipped to this norm", gt=0)
    dropout: bool = setting(True, "use the encoder's dropout in training")
    pairs_per_forward: int = setting(256, "pairs encoded at once; a larger batch is encoded in chunks", ge=1)
    mixed_precision: Literal["no", "bf16"] = setting("no", "`bf16` computes in half precision; weights stay float32")
    base_dtype: Literal["float32", "bfloat16"] = setting(
        "float32", "precision of the base; `bfloat16` needs `lora_rank`, and the adapter stays float32"
    )

    top: int = setting(10, "how many of the best rated pairs of a relation are positives", ge=2)
    bottom: int = setting(10, "how many of the worst rated pairs of a relation are negatives", ge=0)
    threshold: _MaybeNumber = setting(None, "instead of `top` and `bottom`: the lowest score of a positive")
    exclude_categories: Texts = setting(list, "a category to leave out", "--exclude-category")
    exclude_relations: Texts = setting(list, "a relation to leave out", "--exclude-relation")
    exclude_benchmark_pairs: bool = setting(
        False, "leave out benchmark pairs, in any form (needs `--data-dir` or `RELVEC_DATA`)"
    )
    train_on_held_out: bool = setting(False, "also train on the relations kept for the project's own questions")

    validation_relations: int = setting(0, "how many relations the validation loss uses; 0 uses all", ge=0)
    evaluate_every: int = setting(50, "steps between evaluations; each writes a checkpoint", ge=1)
    patience: int = setting(0, "stop after this many evaluations without a lower loss; 0 trains to the end", ge=0)
    seed: Seed = setting(0, "decides every random choice")

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.loss_settings.update(checked_settings(self.loss, self.loss_settings))
        if self.parents and LOSSES[self.loss].needs_triples:
            raise RelvecError(f"parents is for losses without triples, unlike {self.loss}; leave it out.")
        if not self.steps and not self.epochs:
            raise RelvecError("The run has no steps; set steps or epochs above 0.")
        if self.base_dtype != "float32" and not self.lora_rank:
            raise RelvecError(f"base_dtype is {self.base_dtype}, too coarse to train; set lora_rank above 0.")
        if self.unlabelled and not self.teacher:
            raise RelvecError("Unlabelled pairs are learned from a teacher; set teacher, or leave them out.")
        if self.frozen_layers and self.lora_rank:
            raise RelvecError("frozen_layers is for training all weights; set lora_rank to 0, or freeze none.")
        return self

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """A recipe file: `name = value` for what differs from the defaults."""
        try:
            return cls().changed(tomllib.loads(Path(path).read_text(encoding="utf-8")), where=f"{path}: ")
        except (OSError, UnicodeDecodeError) as error:
            raise RelvecError(f"Cannot read the recipe {path}: {error}; check the path.") from error
        except tomllib.TOMLDecodeError as error:
            raise RelvecError(f"{path} is not TOML: {error}; write lines such as loss = 'triplet'.") from error

    def changed(self, values: Mapping[str, Any], where: str = "") -> Self:
        """This recipe with some settings changed; `loss_settings.margin` names a single setting of the loss."""
        values = dict(values)
        single = {name.removeprefix(_OF_LOSS): values.pop(name) for name in list(values) if name.startswith(_OF_LOSS)}
        if single:
            values["loss_settings"] = {**values.get("loss_settings", self.loss_settings), **single}
        if "steps" in values:
            values.setdefault("epochs", 0.0)  # the later word counts
        recipe = super().changed(values, where)
        decided = [name for name in ("base", "template", "pooling") if recipe.prompt and name in values]
        if decided:
            raise RelvecError(f"{where}The learned prompt {recipe.prompt} decides the {decided[0]}; leave it out.")
        return recipe


def recipe_record(recipe: Recipe, steps: int) -> dict[str, Any]:
    """What a model stores of its recipe: settings that are set or differ from the defaults, and the steps of the run.

    >>> record = recipe_record(Recipe(lora_rank=0), steps=150)
    >>> record["lora_rank"], record["seed"], "patience" in record
    (0, 0, False)
    """
    usual = Recipe().as_dict()
    settings = {name: value for name, value in recipe.as_dict().items() if value or value != usual[name]}
    return settings | {"steps": steps, "seed": recipe.seed}
