"""The encoder that learns: a base with the prompt and pooling of its teacher, or with its own."""

from pathlib import Path

from relvec.errors import RelvecError
from relvec.model.relation_model import RelBERT
from relvec.model.torch_backend import TorchRelBERT
from relvec.prompts import Template


def load_student(
    base: str | Path,
    teacher: RelBERT,
    *,
    template: int | str | Template | None = None,
    pooling: str | None = None,
    device: str | None = None,
) -> TorchRelBERT:
    """A base encoder by name, folder or hub id, prompted like the teacher unless told otherwise.

    >>> load_student(tiny_model, TorchRelBERT.from_pretrained(tiny_model), pooling="mask")
    RelBERT(roberta, 16 dimensions, pooling='mask', template='[h] is the <mask> of [t]')
    """
    # Every tokenizer can take this template; whether it can take the wanted one is seen below.
    plain = TorchRelBERT.from_pretrained(base, template="[h] [t]", pooling="average", device=device)
    chosen, pooling = Template.of(teacher.template if template is None else template), pooling or teacher.pooling
    if chosen.has_mask and plain.tokenizer.mask_token is None:
        problem = f"The student {base} has no mask token for the template {chosen.text!r} with {pooling} pooling"
        raise RelvecError(f"{problem}; give a --template without <mask>, and --pooling average.")
    if template is None and chosen.tokens is not None and plain.tokenizer.get_vocab() != teacher.tokenizer.get_vocab():
        problem = f"The learned prompt of the teacher {teacher.name} is not in the vocabulary of the student {base}"
        raise RelvecError(f"{problem}; give a --template.")
    return TorchRelBERT(plain.encoder, plain.tokenizer, chosen, pooling, name=plain.name)
