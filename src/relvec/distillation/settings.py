"""The settings of a distillation; they need no torch, so the command takes its options from here."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from relvec.errors import RelvecError
from relvec.settings import Seed, Settings


class DistillationSettings(Settings):
    """How the student is trained; `steps`, if above 0, takes the place of `epochs`.

    The learning rate is above that of fine-tuning (3e-5): each pair has a target of its own, so there is hardly
    anything to overfit, and the student has far to go. The loss is the vector loss plus `similarity_weight` times the
    similarity loss, which is some ten times smaller: an error of a vector is spread over all dimensions, and a cosine
    sees one of them.
    """

    steps: Annotated[int, Field(ge=0, description="how many steps to train, in place of epochs")] = 0
    epochs: Annotated[float, Field(ge=0, description="how often each pair is met")] = 5.0
    batch_size: Annotated[int, Field(ge=2, description="pairs in a step")] = 128
    lora_rank: Annotated[
        int,
        Field(
            ge=0, description="the rank of the adapter; 0 trains all weights", json_schema_extra={"option": ["--lora"]}
        ),
    ] = 0
    learning_rate: Annotated[
        float, Field(gt=0, description="the highest learning rate; unless given, 1e-3 for an adapter")
    ] = Field(default_factory=lambda known: 1e-3 if known["lora_rank"] else 1e-4)
    similarity_weight: Annotated[
        float, Field(ge=0, description="how much the similarities between pairs count beside the vectors")
    ] = 10.0
    warmup_share: Annotated[float, Field(ge=0, description="the share of steps in which the learning rate rises")] = (
        0.05
    )
    weight_decay: Annotated[float, Field(ge=0, description="the weight decay of AdamW")] = 0.01
    max_gradient_norm: Annotated[float, Field(gt=0, description="longer gradients are cut to this length")] = 1.0
    evaluate_every: Annotated[int, Field(ge=1, description="steps between two evaluations on held-out pairs")] = 200
    seed: Annotated[Seed, Field(description="decides every random choice")] = 0

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.steps and not self.epochs:
            raise RelvecError("epochs is 0; use a number above 0, or set steps.")
        return self
