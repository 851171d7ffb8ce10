"""The settings of the methods that learn a prompt; they need no torch, so commands take their options from here."""

from relvec.settings import Seed, Settings, setting


class PromptSettings(Settings):
    """What every method asks for."""

    pooling: str = setting("average", "the mean over which tokens: average or average_no_mask")
    dtype: str = setting("float32", "the precision: float32, or bfloat16 in half the time where the hardware has it")
    seed: Seed = setting(0, "decides every random choice")


class AutoPromptSettings(PromptSettings):
    """How long and how widely tokens are searched."""

    iterations: int = setting(50, "how often a trigger is drawn and its candidates are tried", ge=1)
    candidates: int = setting(50, "how many tokens are tried for a trigger", ge=1)
    exhaustive: bool = setting(False, "try every candidate on all data; drop none early")


class PTuningSettings(PromptSettings):
    """How the trigger embeddings are trained."""

    epochs: float = setting(2.0, "how often all training triples are met", gt=0)
    steps: int | None = setting(None, "how many steps to train, in place of epochs", ge=1)
    learning_rate: float = setting(1e-3, "the learning rate", gt=0)
    triples_per_batch: int = setting(64, "triples in a step", ge=1)
    evaluate_every: int = setting(25, "steps between two evaluations and checkpoints", ge=1)
