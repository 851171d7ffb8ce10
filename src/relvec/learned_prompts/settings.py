"""The settings of the methods that learn a prompt; they need no torch, so commands take their options from here."""

from pathlib import Path
from typing import Any, Literal

from relvec.data.overlap import load_for_training
from relvec.data.rated import BOTTOM, TOP, RatedRelation
from relvec.settings import Seed, Settings, setting


class Subject(Settings):
    """What a prompt is for: an encoder, and the relations whose loss decides."""

    base: str = setting("mpnet", "the frozen encoder: a name, a folder or a hub id")
    data: list[str] = setting(
        lambda: ["semeval2012"],
        "rated pairs: semeval2012 (default), bundled, a file, a folder or a hub dataset; may be repeated",
    )
    top: int = setting(TOP, "how many of the best rated pairs of a relation are positives", ge=2)
    bottom: int = setting(BOTTOM, "how many of the worst rated pairs of a relation are negatives", ge=0)
    threshold: float | None = setting(None, "instead of --top and --bottom: the lowest score of a positive")
    exclude_benchmark_pairs: bool = setting(
        False, "leave out pairs of the benchmarks in --data-dir", "--exclude-benchmark-pairs"
    )

    train_on_held_out: bool = setting(
        False, "also learn from relations kept for the project's own questions", "--train-on-held-out"
    )

    @property
    def source(self) -> dict[str, Any]:
        """What prompt.json says of it."""
        source: dict[str, Any] = {"data": self.data, "exclude_benchmark_pairs": self.exclude_benchmark_pairs}
        if self.train_on_held_out:
            source["train_on_held_out"] = True
        return source if self.threshold is None else {**source, "threshold": self.threshold}

    def relations(self, data_dir: Path | None) -> list[RatedRelation]:
        """The relations by those names, without the pairs that it excludes and those kept for testing."""
        selection = self.model_dump(exclude={"base", "data"})
        # All methods are judged on the same relations, and P-tuning needs negatives.
        return load_for_training(self.data, data_dir, needs_negatives=True, **selection)


class PromptSettings(Settings):
    """What every method asks for."""

    pooling: Literal["average", "average_no_mask"] = setting("average", "which tokens are averaged")
    dtype: str = setting("float32", "the precision: float32, or bfloat16, twice as fast where supported")
    seed: Seed = setting(0, "decides every random choice")


class AutoPromptSettings(PromptSettings):
    """How long and how widely tokens are searched."""

    iterations: int = setting(50, "how often a trigger is drawn and its candidates are tried", ge=1)
    candidates: int = setting(50, "how many tokens are tried for a trigger", ge=1)
    exhaustive: bool = setting(False, "try every candidate on all data; drop none early")


class PTuningSettings(PromptSettings):
    """How the trigger embeddings are trained."""

    epochs: float = setting(2.0, "passes over all training triples", gt=0)
    steps: int | None = setting(None, "how many steps to train, instead of epochs", ge=1)
    learning_rate: float = setting(1e-3, "the learning rate", gt=0)
    triples_per_batch: int = setting(64, "triples in a step", ge=1)
    evaluate_every: int = setting(25, "steps between two evaluations and checkpoints", ge=1)


class AnySettings(AutoPromptSettings, PTuningSettings):
    """The settings of all methods; a method refuses those of another."""
