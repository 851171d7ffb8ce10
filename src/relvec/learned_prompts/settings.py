"""The settings of the methods that learn a prompt; they need no torch, so commands take their options from here."""

from typing import Annotated

from pydantic import Field

from relvec.settings import Seed, Settings


class PromptSettings(Settings):
    """What every method asks for."""

    pooling: Annotated[str, Field(description="the mean over which tokens: average or average_no_mask")] = "average"
    dtype: Annotated[
        str, Field(description="the precision: float32, or bfloat16 in half the time where the hardware has it")
    ] = "float32"
    seed: Annotated[Seed, Field(description="decides every random choice")] = 0


class AutoPromptSettings(PromptSettings):
    """How long and how widely tokens are searched."""

    iterations: Annotated[int, Field(ge=1, description="how often a trigger is drawn and its candidates are tried")] = (
        50
    )
    candidates: Annotated[int, Field(ge=1, description="how many tokens are tried for a trigger")] = 50
    exhaustive: Annotated[bool, Field(description="try every candidate on all data; drop none early")] = False


class PTuningSettings(PromptSettings):
    """How the trigger embeddings are trained."""

    epochs: Annotated[float, Field(gt=0, description="how often all training triples are met")] = 2.0
    steps: Annotated[int | None, Field(ge=1, description="how many steps to train, in place of epochs")] = None
    learning_rate: Annotated[float, Field(gt=0, description="the learning rate")] = 1e-3
    triples_per_batch: Annotated[int, Field(ge=1, description="triples in a step")] = 64
    evaluate_every: Annotated[int, Field(ge=1, description="steps between two evaluations and checkpoints")] = 25
