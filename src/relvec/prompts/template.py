"""A prompt template: text, or vocabulary tokens, with slots for head, tail and mask."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relvec.errors import RelvecError

HEAD = "[h]"
TAIL = "[t]"
MASK = "<mask>"

# The paper's five (section 3.1), by number.
MANUAL_TEMPLATES: dict[int, str] = {
    1: "Today, I finally discovered the relation between [h] and [t] : [h] is the <mask> of [t]",
    2: "Today, I finally discovered the relation between [h] and [t] : [t] is [h]'s <mask>",
    3: "Today, I finally discovered the relation between [h] and [t] : <mask>",
    4: "I wasn’t aware of this relationship, but I just read in the encyclopedia that [h] is the <mask> of [t]",
    5: "I wasn’t aware of this relationship, but I just read in the encyclopedia that [t] is [h]’s <mask>",
}

# The template that the paper found best for RoBERTa.
DEFAULT_TEMPLATE = 4

_PUBLISHED_SLOTS = {"<subj>": HEAD, "<obj>": TAIL}


@dataclass(frozen=True)
class Template:
    """A prompt with the slots `[h]` and `[t]` (or `<subj>` and `<obj>`) and, mostly, `<mask>`.

    A manual prompt is text. A learned prompt is a sequence of vocabulary tokens between the slots, which no
    text may spell: give those as `tokens`, in the tokenizer's own spelling.

    >>> Template("<subj> is the <mask> of <obj>").text
    '[h] is the <mask> of [t]'
    >>> Template.of(3).fill(("Paris", "France"))
    'Today, I finally discovered the relation between Paris and France : <mask>'
    """

    text: str
    tokens: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        text = self.text
        for published, slot in _PUBLISHED_SLOTS.items():
            text = text.replace(published, slot)
        object.__setattr__(self, "text", text.strip())
        for slot in (HEAD, TAIL):
            if slot not in (self.text if self.tokens is None else self.tokens):
                raise RelvecError(f"The template {self.text!r} has no slot {slot}; write both [h] and [t] in it.")

    @classmethod
    def of(cls, template: "int | str | Template") -> "Template":
        """A template from its number in the paper, from text, or from itself."""
        if isinstance(template, Template):
            return template
        if isinstance(template, str) and template.strip().isdigit():
            template = int(template)
        if isinstance(template, int):
            if template not in MANUAL_TEMPLATES:
                raise RelvecError(f"There is no template {template}; choose 1 to {len(MANUAL_TEMPLATES)} or write one.")
            template = MANUAL_TEMPLATES[template]
        return cls(template)

    @classmethod
    def from_tokens(cls, tokens: Sequence[str], text: str | None = None) -> "Template":
        """A learned prompt: vocabulary tokens with `[h]` and `[t]` among them, and how people read it.

        >>> Template.from_tokens(["<s1>", "[h]", "<s2>", "[t]"]).text
        '<s1> [h] <s2> [t]'
        """
        normal = tuple(_PUBLISHED_SLOTS.get(token, token) for token in tokens)
        return cls(" ".join(normal) if text is None else text, normal)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Template":
        """The template in the `relbert_config` of a checkpoint."""
        tokens = config.get("template_tokens")
        return cls(config["template"]) if tokens is None else cls.from_tokens(tokens, config["template"])

    def to_config(self) -> dict[str, Any]:
        """The entries of `relbert_config`, in the spelling of the published checkpoints."""
        published = {slot: name for name, slot in _PUBLISHED_SLOTS.items()}
        text = re.sub(r"\[[ht]\]", lambda slot: published[slot.group()], self.text)
        return {"template": text} if self.tokens is None else {"template": text, "template_tokens": list(self.tokens)}

    @property
    def has_mask(self) -> bool:
        return MASK in (self.text if self.tokens is None else self.tokens)

    def fill(self, pair: Sequence[str]) -> str:
        """The sentence for a pair; the mask stays as `<mask>`."""
        return fill_slots(self.text, pair)


def fill_slots(text: str, pair: Sequence[str]) -> str:
    """Put head and tail into their slots in one pass, so that a word that looks like a slot stays a word."""
    return re.sub(r"\[[ht]\]", lambda slot: pair[0] if slot.group() == HEAD else pair[1], text)
