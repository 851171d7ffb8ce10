"""A training recipe: every choice that decides a run, from a TOML file, and as a trained model stores it."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from relvec.errors import RelvecError
from relvec.settings import Place, Seed, Settings, Texts
from relvec.training.losses import checked_settings

_OF_LOSS = "loss_settings."
_MaybeNumber = Annotated[float | None, BeforeValidator(lambda value: None if value == "none" else value)]


class Recipe(Settings):
    """What is trained, on what, and how; the defaults are the project's own recipe.

    >>> Recipe().changed({"loss": "triplet", "steps": "80"}).steps
    80
    >>> Recipe(lora_rank=0).learning_rate
    3e-05
    """

    base: Annotated[
        Place, Field(description="the encoder, or the relation model, to start from: a name, a folder or a hub id")
    ] = "mpnet"
    data: Annotated[Texts, Field(description="rated pairs by name, file, folder or hub id, taken together")] = Field(
        default_factory=lambda: ["bundled"]
    )
    template: Annotated[str, Field(description="1 to 5 for the paper's, or a text with `[h]`, `[t]` and `<mask>`")] = (
        "[h] <mask> [t]"
    )
    pooling: Annotated[str, Field(description="`average`, `average_no_mask` or `mask`")] = "mask"
    prompt: Annotated[
        Place, Field(description="the folder of a learned prompt, which then decides base, template and pooling")
    ] = ""

    loss: Annotated[str, Field(description="a loss by name")] = "contrastive"
    loss_settings: Annotated[dict[str, Any], Field(description="settings of the loss by name")] = Field(
        default_factory=dict
    )
    relations_per_batch: Annotated[int, Field(ge=2, description="without triples: relations in a step")] = 24
    positives_per_relation: Annotated[int, Field(ge=2, description="without triples: positives of each in a step")] = 4
    negatives_per_relation: Annotated[
        int, Field(ge=0, description="without triples: hard negatives of each in a step")
    ] = 1
    parents: Annotated[
        bool, Field(description="without triples: categories of several relations count as relations too")
    ] = False
    triples_per_batch: Annotated[
        int, Field(ge=2, description="with triples: triples in a step, to which those within the batch are added")
    ] = 16

    lora_rank: Annotated[int, Field(ge=0, description="the rank of the adapter; 0 trains all weights")] = 16
    frozen_layers: Annotated[
        int,
        Field(ge=0, description="the embeddings and so many lowest layers stay as they are; needs `lora_rank` 0"),
    ] = 0
    steps: Annotated[int, Field(ge=0, description="how many steps to train, unless `epochs` says it")] = 150
    epochs: Annotated[
        float, Field(ge=0, description="if above 0, how often all relations or triples are met, in place of `steps`")
    ] = 0.0
    learning_rate: Annotated[
        float, Field(gt=0, description="the highest learning rate; unless given, 3e-5 if `lora_rank` is 0")
    ] = Field(default_factory=lambda known: 1e-3 if known["lora_rank"] else 3e-5)
    warmup_steps: Annotated[int, Field(ge=0, description="over how many steps the learning rate rises")] = 10
    schedule: Annotated[
        Literal["linear", "constant"],
        Field(description="`linear`: the learning rate falls to nearly 0; `constant`: it stays"),
    ] = "linear"
    weight_decay: Annotated[float, Field(ge=0, description="the weight decay of AdamW")] = 0.01
    max_gradient_norm: Annotated[float, Field(gt=0, description="longer gradients are cut to this length")] = 1.0
    dropout: Annotated[bool, Field(description="whether the encoder drops units in training")] = True
    pairs_per_forward: Annotated[
        int, Field(ge=1, description="pairs encoded at once; a larger batch is encoded in chunks")
    ] = 256
    mixed_precision: Annotated[
        Literal["no", "bf16"], Field(description="`bf16` computes in half precision; weights stay float32")
    ] = "no"

    top: Annotated[int, Field(description="how many of the best rated pairs of a relation are positives")] = 10
    bottom: Annotated[int, Field(description="how many of the worst rated pairs of a relation are negatives")] = 10
    threshold: Annotated[
        _MaybeNumber, Field(description="in place of `top` and `bottom`: the least score of a positive")
    ] = None
    exclude_categories: Annotated[Texts, Field(description="categories to leave out")] = Field(default_factory=list)
    exclude_relations: Annotated[Texts, Field(description="relations to leave out")] = Field(default_factory=list)
    exclude_benchmark_pairs: Annotated[
        bool, Field(description="leave out benchmark pairs, in any form (needs `--data-dir` or `RELVEC_DATA`)")
    ] = False

    evaluate_every: Annotated[
        int, Field(ge=1, description="steps from one evaluation, and checkpoint, to the next")
    ] = 50
    patience: Annotated[
        int, Field(ge=0, description="stop after so many evaluations without a lower loss; 0 trains to the end")
    ] = 0
    seed: Annotated[Seed, Field(description="decides every random choice")] = 0

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.loss_settings.update(checked_settings(self.loss, self.loss_settings))
        if not self.steps and not self.epochs:
            raise RelvecError("The run has no steps; set steps or epochs above 0.")
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


def is_recipe_of(recipe: Recipe, saved: Mapping[str, Any]) -> bool:
    """Whether a model that stores `saved` was trained by this recipe.

    >>> is_recipe_of(Recipe(), recipe_record(Recipe(), 150)), is_recipe_of(Recipe(), recipe_record(Recipe(), 9))
    (True, False)
    """
    steps = recipe.steps if recipe.epochs <= 0 else saved.get("steps", 0)
    wanted = recipe_record(recipe, steps)
    # Older records left out whatever is 0 or false.
    return saved == {name: value for name, value in wanted.items() if value or name in saved}


def saved_recipe(folder: Path) -> dict[str, Any]:
    """The recipe that the model of a folder stores; empty without a model, or without a record."""
    from relvec.model.stored import relbert_config

    if not (folder / "config.json").is_file():
        return {}
    recipe: dict[str, Any] = relbert_config(folder).get("training", {}).get("recipe", {})
    return recipe
