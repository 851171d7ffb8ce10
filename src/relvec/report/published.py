"""The numbers that others published, to stand beside what was measured."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class PublishedRow:
    """A row of a published table; `values` are in per cent, with keys such as `sat` and `bless/macro`."""

    system: str
    source: str
    values: dict[str, float]
    base: str = ""
    note: str = ""
    mark: str = ""

    @property
    def origin(self) -> str:
        """What a table says of where the row comes from."""
        return f"published: {self.source}" + (f" ({self.note})" if self.note else "")


def published(table: str) -> list[PublishedRow]:
    """The rows of one published table, in the order in which they were printed.

    >>> published("analogy")[1].system, published("analogy")[1].values["sat"]
    ('PMI', 23.1)
    """
    return [PublishedRow(**{**row, "values": _flat(row["values"])}) for row in _file()[table]]


def sources() -> dict[str, str]:
    """What the short names of sources stand for.

    >>> sources()["Turney 2005"]
    'Measuring Semantic Similarity by Latent Relational Analysis (IJCAI).'
    """
    return dict(_file()["sources"])


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("published.toml").read_text(encoding="utf-8"))


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, float]:
    flat: dict[str, float] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{prefix}{key}/") if isinstance(value, dict) else {f"{prefix}{key}": float(value)}
    return flat
