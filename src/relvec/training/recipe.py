"""A training recipe: every choice that decides a run, in one place, readable from TOML."""

import inspect
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args, get_type_hints

from relvec.errors import RelvecError, did_you_mean
from relvec.training.limits import LARGEST_SEED, Limits, check_limits
from relvec.training.schedule import Schedule

_LIMITS: Limits = {
    "relations_per_batch": (2, "a batch needs at least 2 relations"),
    "positives_per_relation": (2, "a relation needs at least 2 positives in a batch"),
    "negatives_per_relation": (0, "use 0 or more"),
    "triples_per_batch": (2, "a batch needs at least 2 triples"),
    "epochs": (0, "use 0 to go by steps, or a number above 0"),
    "learning_rate": (1e-12, "use a number above 0; 1e-3 suits LoRA, 3e-5 full fine-tuning"),
    "warmup_steps": (0, "use 0 or more"),
    "weight_decay": (0, "use 0 or more"),
    "max_gradient_norm": (1e-12, "use a number above 0"),
    "lora_rank": (0, "use 0 for full fine-tuning, or a rank such as 16"),
    "frozen_layers": (0, "use 0 or more"),
    "pairs_per_forward": (1, "use 1 or more"),
    "evaluate_every": (1, "use 1 or more"),
    "patience": (0, "use 0 to train to the end"),
    "seed": (0, "use 0 or more"),
}


@dataclass(frozen=True)
class Recipe:
    """What is trained, on what, and how; the defaults are the project's own recipe. Each says what it is.

    >>> Recipe().changed({"loss": "triplet", "steps": "80"}).steps
    80
    """

    base: Annotated[str, "the encoder, or the relation model, to start from: a name, a folder or a hub id"] = "mpnet"
    data: Annotated[list[str], "rated pairs by name, file, folder or hub id, taken together"] = field(
        default_factory=lambda: ["bundled"]
    )
    template: Annotated[str, "1 to 5 for the paper's, or a text with `[h]`, `[t]` and `<mask>`"] = "[h] <mask> [t]"
    pooling: Annotated[str, "`average`, `average_no_mask` or `mask`"] = "mask"
    prompt: Annotated[str, "the folder of a learned prompt, which then decides base, template and pooling"] = ""

    loss: Annotated[str, "a loss by name"] = "contrastive"
    loss_settings: Annotated[dict[str, float], "settings of the loss by name"] = field(default_factory=dict)
    relations_per_batch: Annotated[int, "without triples: relations in a step"] = 24
    positives_per_relation: Annotated[int, "without triples: positives of each in a step"] = 4
    negatives_per_relation: Annotated[int, "without triples: hard negatives of each in a step"] = 1
    parents: Annotated[bool, "without triples: categories of several relations count as relations too"] = False
    triples_per_batch: Annotated[int, "with triples: triples in a step, to which those within the batch are added"] = 16

    steps: Annotated[int, "how many steps to train, unless `epochs` says it"] = 150
    epochs: Annotated[float, "if above 0, how often all relations or triples are met, in place of `steps`"] = 0.0
    learning_rate: Annotated[float, "the highest learning rate; unless given, 3e-5 if `lora_rank` is 0"] = 1e-3
    warmup_steps: Annotated[int, "over how many steps the learning rate rises"] = 10
    schedule: Annotated[Schedule, "`linear`: the learning rate falls to nearly 0; `constant`: it stays"] = "linear"
    weight_decay: Annotated[float, "the weight decay of AdamW"] = 0.01
    max_gradient_norm: Annotated[float, "longer gradients are cut to this length"] = 1.0
    dropout: Annotated[bool, "whether the encoder drops units in training"] = True

    lora_rank: Annotated[int, "the rank of the adapter; 0 trains all weights"] = 16
    frozen_layers: Annotated[int, "the embeddings and so many lowest layers stay as they are; needs `lora_rank` 0"] = 0
    pairs_per_forward: Annotated[int, "pairs encoded at once; a larger batch is encoded in chunks"] = 256
    mixed_precision: Annotated[Literal["no", "bf16"], "`bf16` computes in half precision; weights stay float32"] = "no"

    top: Annotated[int, "how many of the best rated pairs of a relation are positives"] = 10
    bottom: Annotated[int, "how many of the worst rated pairs of a relation are negatives"] = 10
    threshold: Annotated[float | None, "in place of `top` and `bottom`: the least score of a positive"] = None
    exclude_categories: Annotated[list[str], "categories to leave out"] = field(default_factory=list)
    exclude_relations: Annotated[list[str], "relations to leave out"] = field(default_factory=list)
    exclude_benchmark_pairs: Annotated[
        bool, "leave out benchmark pairs, in any form (needs `--data-dir` or `RELVEC_DATA`)"
    ] = False

    evaluate_every: Annotated[int, "steps from one evaluation, and checkpoint, to the next"] = 50
    patience: Annotated[int, "stop after so many evaluations without a lower loss; 0 trains to the end"] = 0
    seed: Annotated[int, "decides every random choice"] = 0

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """A recipe file: `name = value` for what differs from the defaults."""
        try:
            return cls().changed(tomllib.loads(Path(path).read_text(encoding="utf-8")), where=f"{path}: ")
        except (OSError, UnicodeDecodeError) as error:
            raise RelvecError(f"Cannot read the recipe {path}: {error}; check the path.") from error
        except tomllib.TOMLDecodeError as error:
            raise RelvecError(f"{path} is not TOML: {error}; write lines such as loss = 'triplet'.") from error

    def changed(self, settings: Mapping[str, Any], where: str = "") -> Self:
        """This recipe with some settings changed; text is read as the setting's own type.

        `loss_settings.margin` names a single setting of the loss. The learning rate follows the rank, from what is
        usual for one to what is usual for the other, unless it is given too.
        """
        types = get_type_hints(type(self))
        settings = dict(settings)
        if type(settings.get("template")) is int:
            settings["template"] = str(settings["template"])  # the paper's have numbers
        if single := [name for name in settings if name.startswith("loss_settings.")]:
            together = _as(dict[str, float], settings.get("loss_settings", self.loss_settings), f"{where}loss_settings")
            changed = {name.removeprefix("loss_settings."): settings.pop(name) for name in single}
            settings["loss_settings"] = together | changed
        unknown = [name for name in settings if name not in types]
        if unknown:
            advice = did_you_mean(unknown[0], types, otherwise=f"use one of {', '.join(types)}")
            raise RelvecError(f"{where}There is no setting {unknown[0]!r}; {advice}.")
        changes = {name: _as(types[name], value, f"{where}{name}") for name, value in settings.items()}
        if "steps" in changes:
            changes.setdefault("epochs", 0.0)  # the later word counts
        if "lora_rank" in changes and self.learning_rate == usual_learning_rate(self.lora_rank):
            changes.setdefault("learning_rate", usual_learning_rate(changes["lora_rank"]))
        recipe = replace(self, **changes)
        decided = [name for name in ("base", "template", "pooling") if recipe.prompt and name in changes]
        if decided:
            raise RelvecError(f"{where}The learned prompt {recipe.prompt} decides the {decided[0]}; leave it out.")
        recipe._check(where)
        return recipe

    def _check(self, where: str) -> None:
        check_limits(self, _LIMITS, where)
        if self.seed > LARGEST_SEED:
            raise RelvecError(f"{where}seed is {self.seed}; use {LARGEST_SEED} or less.")
        if self.steps < 1 and self.epochs <= 0:
            raise RelvecError(f"{where}the run has no steps; set steps or epochs above 0.")
        if self.frozen_layers and self.lora_rank:
            raise RelvecError(f"{where}frozen_layers is for training all weights; set lora_rank to 0, or freeze none.")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def usual_learning_rate(lora_rank: int) -> float:
    """Where all weights are trained, the rate of an adapter would undo what the encoder has learned."""
    return 1e-3 if lora_rank else 3e-5


_MEANT = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    dict[str, float]: "numbers by name",
    list[str]: "a list",
}


def _as(kind: Any, value: Any, name: str) -> Any:
    """The value as the type of its setting, from TOML or from the command line."""
    choices = get_args(kind)
    try:
        if choices and isinstance(choices[0], str):
            if value not in choices:
                raise RelvecError(f"{name} is {value!r}; choose one of {', '.join(choices)}.")
            return value
        if kind is bool:
            return {"true": True, "false": False}[str(value).lower()]
        if kind is str:
            return str(_only(str | Path, value))
        if kind == list[str]:
            items = [value] if isinstance(value, str) else _only(list | tuple, value)
            return [str(_only(str | int | Path, item)) for item in items]  # SemEval's categories are numbers
        if kind == dict[str, float]:
            return {each: _as(_kind_of_loss_setting(each), one, f"{name}.{each}") for each, one in dict(value).items()}
        if kind == float | None and value in (None, "none"):
            return None
        number = float(_only(object, value))
        if not math.isfinite(number) or (kind is int and number != int(number)):
            raise ValueError(value)
        return int(number) if kind is int else number
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        if isinstance(error, RelvecError):
            raise
        raise RelvecError(f"{name} cannot be {value!r}; give {_MEANT.get(kind, 'a finite number')}.") from error


def _only(kinds: Any, value: Any) -> Any:
    """The value, if it is of these kinds; true and false are no numbers."""
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise TypeError(value)
    return value


def _kind_of_loss_setting(name: str) -> type:
    """A number; or true or false, for what a loss does or leaves."""
    from relvec.training.losses import LOSSES  # brings torch

    found = [inspect.signature(loss).parameters.get(name) for loss in LOSSES.values()]
    return bool if any(setting and setting.annotation is bool for setting in found) else float
