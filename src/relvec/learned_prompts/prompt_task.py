"""What the methods share: the frozen base with a mask for each trigger, checks before a run, and the result's files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from relvec.data.rated import RatedRelation, check_relations
from relvec.errors import RelvecError, brief
from relvec.io.files import atomic_write, expanded
from relvec.learned_prompts.objective import PromptObjective
from relvec.learned_prompts.settings import PromptSettings
from relvec.model.adapter import absolute_base, check_beside_base
from relvec.model.torch_backend import TorchRelBERT
from relvec.prompts.learned import PROMPT_NAME, Lengths, PromptResult
from relvec.prompts.template import MASK, Template
from relvec.storage.journal import HISTORY_NAME, check_own

PICTURE_NAME = "loss.svg"


class PromptTask:
    """One prompt to learn for a base; what can go wrong before the first step goes wrong here.

    `model` is the frozen base, with a mask for each trigger. `stored` is what prompt.json says of the settings and, by
    `source`, of where the relations are from.
    """

    def __init__(
        self,
        base: str | Path,
        relations: Sequence[RatedRelation],
        lengths: Lengths,
        output: str | Path,
        settings: PromptSettings,
        source: Mapping[str, Any] | None = None,
        device: str | torch.device | None = None,
    ) -> None:
        check_relations(relations)
        self.base, self.lengths, self.settings, self._device = str(base), lengths, settings, device
        self.relations, self.output = relations, expanded(output)
        self.training = PromptObjective(relations, "train", settings.seed)
        self.validation = PromptObjective(relations, "valid")
        self.stored = {**settings.model_dump(exclude={"pooling", "seed", "epochs"}), **(source or {})}
        check_beside_base(self.base, self.output, "prompt")
        check_own(self.output, HISTORY_NAME, (PROMPT_NAME, PICTURE_NAME))
        self.model = self.masked_model(settings.dtype)
        check_room(self.model, lengths, relations)

    def masked_model(self, dtype: str = "float32") -> TorchRelBERT:
        return masked_model(self.base, self.lengths, self.settings.pooling, self._device, dtype)

    def save(self, **found: Any) -> PromptResult:
        """Write prompt.json and a picture of the losses; `found` are the fields of the result that the method knows."""
        result = PromptResult(
            base=absolute_base(self.base),
            pooling=self.settings.pooling,
            lengths=self.lengths,
            seed=self.settings.seed,
            settings=self.stored,
            **found,
        )
        result.save(self.output)
        training = {step: entry["loss"] for step, entry in enumerate(result.history)}
        validation = {step: e["validation_loss"] for step, e in enumerate(result.history) if "validation_loss" in e}
        title = f"{result.method} on {Path(result.base).name}"
        draw_losses(self.output / PICTURE_NAME, "step", training, validation, title=title)
        return result


def masked_model(
    base: str | Path,
    lengths: Lengths,
    pooling: str = "average",
    device: str | torch.device | None = None,
    dtype: str = "float32",
) -> TorchRelBERT:
    """The base with a mask for each trigger, its weights frozen."""
    template = _all_masks(lengths)
    model = TorchRelBERT.from_pretrained(base, template=template, pooling=pooling, device=device, dtype=dtype)
    model.encoder.requires_grad_(False).eval()
    return model


def check_room(model: TorchRelBERT, lengths: Lengths, relations: Sequence[RatedRelation]) -> None:
    """All pairs of the relations must fit into the model, with so many triggers around them."""
    prompted = TorchRelBERT(model.encoder, model.tokenizer, _all_masks(lengths), "average")
    try:
        prompted.token_ids([pair for relation in relations for pair in relation.pairs])
    except RelvecError as error:
        problem = f"The lengths {lengths} are too many for {model.name} ({brief(error)})"
        raise RelvecError(f"{problem}; give fewer --lengths.") from error


def _all_masks(lengths: Lengths) -> Template:
    return Template.from_tokens(lengths.arranged([MASK] * lengths.total))


@contextmanager
def embeddings_changed(encoder: PreTrainedModel, change: Callable[[Tensor, Tensor], Tensor]) -> Iterator[None]:
    """Within the block, the encoder reads `change(token ids, embeddings)` in place of its input embeddings."""
    table = encoder.get_input_embeddings()
    hook = table.register_forward_hook(lambda _, inputs, output: change(inputs[0], output))
    try:
        yield
    finally:
        hook.remove()


def draw_losses(
    path: Path, xlabel: str, training: Mapping[Any, float], validation: Mapping[Any, float], *, title: str = ""
) -> None:
    """A picture of losses, where matplotlib is installed: curves over steps, or points where `training` has names."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    line, squares = ("o", "s") if any(isinstance(name, str) for name in training) else ("-", "s-")
    axes.plot(list(training), list(training.values()), line, color="#0072B2", drawstyle="steps-post", label="training")
    if validation:
        axes.plot(list(validation), list(validation.values()), squares, color="#E69F00", label="validation")
        axes.legend(frameon=False)
    axes.set(xlabel=xlabel, ylabel="loss", title=title)
    # No date and fixed ids, so that the same losses give the same file.
    with rc_context({"svg.hashsalt": "relvec"}), atomic_write(path) as partial:
        figure.savefig(partial, metadata={"Date": None})
