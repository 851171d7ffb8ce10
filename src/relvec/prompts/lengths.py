"""How many trigger tokens a learned prompt has, and where: pi, tau and gamma of section 3.1."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from relvec.errors import RelvecError
from relvec.prompts.template import HEAD, TAIL

MOST = 512
_RANGE = re.compile(r"\s*(\d{1,99})(?:\s*-\s*(\d{1,99}))?\s*")


@dataclass(frozen=True)
class Lengths:
    """Triggers before the head (pi), between head and tail (tau) and after the tail (gamma).

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
    if any(int(number) > MOST for each in ranges if each for number in each.groups() if number):
        raise RelvecError(f"The lengths {text!r} are more than an encoder takes; give numbers up to {MOST}.")
    choices = [range(int(each[1]), int(each[2] or each[1]) + 1) for each in ranges if each]
    if not all(choices):
        raise RelvecError(f"The lengths {text!r} have a range that falls; write the smaller number first.")
    return [Lengths(*one) for one in product(*choices)]
