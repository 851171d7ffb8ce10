"""A learned prompt: its lengths, what its search found, and the folder in which it is stored."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, InstanceOf, PlainSerializer, model_validator

from relvec.errors import RelvecError
from relvec.io.files import atomic_write, expanded
from relvec.prompts.template import HEAD, MASK, TAIL, Template
from relvec.settings import Settings

PROMPT_NAME = "prompt.json"

_RANGE = re.compile(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*")


@dataclass(frozen=True)
class Lengths:
    """Triggers before the head (pi), between head and tail (tau) and after the tail (gamma), of section 3.1.

    >>> Lengths.parse("8,2,2").total
    12
    """

    before: int
    between: int
    after: int

    def __post_init__(self) -> None:
        if min(self.before, self.between, self.after) < 0 or not self.total:
            raise RelvecError(f"A prompt with the lengths {self} has nothing to learn; give it at least one trigger.")

    @classmethod
    def parse(cls, text: str) -> "Lengths":
        """Three numbers: `8,2,2`."""
        found = parse_grid(text)
        if len(found) > 1:
            raise RelvecError(f"The lengths {text!r} are a grid of {len(found)}; give three numbers such as 8,2,2.")
        return found[0]

    @property
    def total(self) -> int:
        return self.before + self.between + self.after

    def arranged(self, triggers: Sequence[str]) -> list[str]:
        """The template z_1..z_pi [h] z.. [t] z.. of these triggers.

        >>> Lengths(1, 0, 1).arranged(["a", "b"])
        ['a', '[h]', '[t]', 'b']
        """
        first, second = self.before, self.before + self.between
        return [*triggers[:first], HEAD, *triggers[first:second], TAIL, *triggers[second:]]

    def __str__(self) -> str:
        return f"{self.before},{self.between},{self.after}"


def parse_grid(text: str) -> list[Lengths]:
    """All combinations of three numbers or ranges.

    >>> [str(lengths) for lengths in parse_grid("8-9,2,1-2")]
    ['8,2,1', '8,2,2', '9,2,1', '9,2,2']
    """
    ranges = [_RANGE.fullmatch(part) for part in text.split(",")]
    if len(ranges) != 3 or None in ranges:
        raise RelvecError(f"The lengths {text!r} are not three numbers; write them as 8,2,2 or 8-9,1-2,1-2.")
    choices = [range(int(each[1]), int(each[2] or each[1]) + 1) for each in ranges if each]
    if not all(choices):
        raise RelvecError(f"The lengths {text!r} have a range that falls; write the smaller number first.")
    return [Lengths(*one) for one in product(*choices)]


_StoredLengths = Annotated[
    InstanceOf[Lengths],
    BeforeValidator(lambda value: Lengths.parse(value) if isinstance(value, str) else value),
    PlainSerializer(str),
]


class PromptResult(Settings):
    """A learned prompt, its losses and what it cost, as prompt.json has it, but for the history.

    `tokens` is the whole template with `[h]` and `[t]` in it, `text` a readable form. `encodings` counts the pairs that
    went through the language model, `triple_encodings` how many it would have been with each triple evaluated by itself
    and no candidate dropped. `history` has one entry a step, with at least the training `loss`.
    """

    method: str
    base: str
    pooling: str
    lengths: _StoredLengths
    seed: int
    tokens: list[str]
    text: str
    train_loss: float
    validation_loss: float
    encodings: int
    seconds: float
    triple_encodings: int = 0
    settings: dict[str, Any] = Field(default_factory=dict)
    history: list[dict[str, Any]] = Field(default_factory=list, repr=False, exclude=True)

    @model_validator(mode="after")
    def _check(self) -> Self:
        _ = self.template
        return self

    @property
    def template(self) -> Template:
        return Template.from_tokens(self.tokens, self.text)

    def save(self, folder: str | Path) -> None:
        """Write prompt.json, which `relvec train --prompt` reads."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        with atomic_write(Path(folder) / PROMPT_NAME) as partial:
            partial.write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """A prompt that was saved, without its history."""
        path = expanded(folder) / PROMPT_NAME
        if not path.is_file():
            problem = f"There is no learned prompt in {folder} (no {PROMPT_NAME})"
            raise RelvecError(f"{problem}; make one with `relvec prompt autoprompt -o {folder}`.")
        return cls.from_json(path, fix="remove it and learn the prompt again")

    @classmethod
    def found_in(cls, folder: Path) -> Self | None:
        """The prompt that a folder has; None if it has none, or if the model that P-tuning made is gone."""
        if not (folder / PROMPT_NAME).is_file():
            return None
        found = cls.load(folder)
        return found if found.method != "ptuning" or any(folder.glob("*.safetensors")) else None


def readable(tokens: Sequence[str], join: Callable[[list[str]], str]) -> str:
    """The tokens of a template as text; `join` makes text of the tokens between two slots.

    >>> readable(["to", "##day", "[h]", "[t]", "."], lambda tokens: " ".join(tokens).replace(" ##", ""))
    'today [h] [t] .'
    """
    stretches: list[str] = []
    for is_fixed, group in groupby(tokens, key=lambda token: token in (HEAD, TAIL, MASK)):
        stretch = list(group)
        stretches += stretch if is_fixed else [join(stretch).strip()]
    return " ".join(stretches)
