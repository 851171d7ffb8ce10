"""What a search for a prompt found, and the folder in which it is kept."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Self, get_origin, get_type_hints

from relvec.errors import RelvecError
from relvec.io.files import written_whole
from relvec.io.paths import expanded
from relvec.prompts.lengths import Lengths
from relvec.prompts.template import HEAD, MASK, TAIL, Template

PROMPT_NAME = "prompt.json"


@dataclass(frozen=True)
class PromptResult:
    """A learned prompt, its losses and what it cost.

    `tokens` is the whole template with `[h]` and `[t]` in it, `text` a readable form. `encodings` counts the pairs that
    went through the language model, `triple_encodings` how many it would have been with each triple evaluated by itself
    and no candidate dropped. `settings` are those of the method and where the relations are from. `history` has one
    entry a step, with at least the training `loss`.
    """

    method: str
    base: str
    pooling: str
    lengths: Lengths
    seed: int
    tokens: list[str]
    text: str
    train_loss: float
    validation_loss: float
    encodings: int
    seconds: float
    triple_encodings: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list, repr=False)

    @property
    def template(self) -> Template:
        return Template.from_tokens(self.tokens, self.text)

    def as_dict(self) -> dict[str, Any]:
        """What prompt.json holds: all but the history."""
        kept = {name: value for name, value in asdict(self).items() if name != "history"}
        return {**kept, "lengths": str(self.lengths)}

    def save(self, folder: str | Path) -> None:
        """Write prompt.json, which `relvec train --prompt` reads."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        with written_whole(Path(folder) / PROMPT_NAME) as partial:
            partial.write_text(json.dumps(self.as_dict(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """A prompt that was saved; its history stays where it is."""
        path = expanded(folder) / PROMPT_NAME
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            loaded = cls(**{**found, "lengths": Lengths.parse(str(found["lengths"]))})
            loaded._check()
            return loaded
        except FileNotFoundError as error:
            problem = f"There is no learned prompt in {folder} (no {PROMPT_NAME})"
            raise RelvecError(f"{problem}; make one with `relvec prompt autoprompt -o {folder}`.") from error
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise RelvecError(f"{path} cannot be read ({error}); remove it and learn the prompt again.") from error

    @classmethod
    def found_in(cls, folder: Path) -> Self | None:
        """The prompt that a folder has; None if it has none, or if the model that P-tuning made is gone."""
        if not (folder / PROMPT_NAME).is_file():
            return None
        found = cls.load(folder)
        return found if found.method != "ptuning" or any(folder.glob("*.safetensors")) else None

    def _check(self) -> None:
        """What a damaged file may hold in place of text, numbers and tokens."""
        for name, kind in get_type_hints(type(self)).items():
            value = getattr(self, name)
            if not isinstance(value, (int, float) if kind is float else get_origin(kind) or kind):
                raise TypeError(f"its {name} is {value!r}")
        _ = self.template


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
