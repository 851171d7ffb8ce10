"""The base class of settings and of stored metadata: checked by pydantic, with errors in one sentence.

Importing pydantic takes 0.1 seconds, so nothing on the way of `relvec similarity` imports this module.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from relvec.errors import RelvecError, did_you_mean, errors_as

Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]
"""The seeds that numpy and scikit-learn take."""

NameOrPath = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, Path) else value)]
"""The name of a model or dataset, or a path."""

Texts = Annotated[list[NameOrPath], BeforeValidator(lambda value: [value] if isinstance(value, str | Path) else value)]
"""Several texts; one alone needs no list."""


def setting(default: Any, description: str, option: str = "", **bounds: Any) -> Any:
    """A field of Settings: its default, or a function that makes it, what it is, and bounds such as `ge=1`.

    `option` is its name on the command line where that is another than its own.
    """
    made = {"default_factory": default} if callable(default) else {"default": default}
    return Field(description=description, json_schema_extra={"option": option}, **made, **bounds)


class Settings(BaseModel):
    """Frozen fields with a type, bounds and a description each. Text is read as the type of its field.

    >>> class Training(Settings):
    ...     steps: int = setting(150, "how many steps to train", ge=1)
    >>> Training(steps="80").steps
    80
    >>> Training(steps=0)
    Traceback (most recent call last):
    relvec.errors.RelvecError: steps is 0; use 1 or more.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, coerce_numbers_to_str=True)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            # A misspelt name comes first: it also makes a required one look missing.
            first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
            raise RelvecError(sentence(first, list(type(self).model_fields))) from error

    @classmethod
    def checked(cls, values: Mapping[str, Any], where: str = "") -> Self:
        """Settings from a file or the command line; `where` starts the message about a bad one."""
        try:
            return cls(**values)
        except RelvecError as error:
            raise RelvecError(f"{where}{error}") from error

    def changed(self, values: Mapping[str, Any], where: str = "") -> Self:
        """These settings with some of them changed; a default that depends on others follows them."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return self.checked({**given, **values}, where)

    def as_dict(self) -> dict[str, Any]:
        return self.model_dump()

    def to_json(self) -> str:
        """The text of a file that `from_json` reads, with a checksum of what it says."""
        return json.dumps(with_checksum(self.as_dict()), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, path: Path, fix: str) -> Self:
        """The settings that a JSON file holds; `fix` ends the message about a damaged file."""
        with errors_as(f"{path} cannot be read", fix, OSError, TypeError, ValueError, RelvecError):
            return cls(**verified(json.loads(path.read_text(encoding="utf-8"))))


def named_values(texts: Iterable[str], option: str = "--set") -> dict[str, str]:
    """The values of an option of the command line that is given as name=value, once or several times.

    >>> named_values(["steps=80", "loss=triplet"])
    {'steps': '80', 'loss': 'triplet'}
    """
    values = {}
    for text in texts:
        name, _, values[name] = text.partition("=")
        if not values[name]:
            raise RelvecError(f"{option} {text} has no value; write {option} name=value.")
    return values


DAMAGE = (KeyError, TypeError, ValueError, RelvecError)
"""What reading stored metadata raises where it is damaged."""

_CHECKSUM = "checksum"


def with_checksum(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A line or file of JSON with a checksum of what it says.

    >>> with_checksum({"loss": 0.5})
    {'loss': 0.5, 'checksum': '96cee10d92496ca0'}
    """
    digest = hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()
    return {**entry, _CHECKSUM: digest[:16]}


def verified(entry: Mapping[str, Any], *, is_older: bool = True) -> dict[str, Any]:
    """What was with_checksum; a ValueError if it was changed since. What an older version wrote may have no checksum.

    >>> verified({"loss": 0.6, "checksum": "96cee10d92496ca0"})
    Traceback (most recent call last):
    ValueError: its checksum does not match
    """
    plain = dict(entry)
    checksum = plain.pop(_CHECKSUM, None)
    if not (is_older and checksum is None) and checksum != with_checksum(plain)[_CHECKSUM]:
        raise ValueError("its checksum does not match")
    return plain


def verified_lines(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """The entries of JSON lines; once one has a checksum, all that follow must have one.

    >>> verified_lines([b'{"loss": 0.7}', json.dumps(with_checksum({"loss": 0.5})).encode()])
    [{'loss': 0.7}, {'loss': 0.5}]
    """
    entries = [dict(json.loads(line)) for line in lines]
    first = next((number for number, entry in enumerate(entries) if _CHECKSUM in entry), len(entries))
    return [verified(entry, is_older=number < first) for number, entry in enumerate(entries)]


_WANTED = {
    "int": "give a whole number",
    "float": "give a number",
    "finite": "give a finite number",
    "bool": "give true or false",
    "string_too_long": "use {max_length} characters or fewer",
    "string": "give a text",
    "list": "give a list",
    "dict": "give values by name",
    "model_": "give an object",
    "greater_than_equal": "use {ge} or more",
    "greater_than": "use a number above {gt}",
    "less_than_equal": "use {le} or less",
    "less_than": "use a number below {lt}",
    "literal_error": "choose {expected}",
}
"""What to do about an error of pydantic, by how the name of its type begins."""


def sentence(error: ErrorDetails, known: list[str]) -> str:
    """`{name} is {value!r}; {what it must be}.`"""
    context = error.get("ctx", {})
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        advice = did_you_mean(name, known, otherwise=f"use one of {', '.join(known)}" if known else "leave it out")
        return f"There is no setting {name!r}; {advice}."
    if error["type"] == "missing":
        return f"{name} is missing; set it."
    if isinstance(context.get("error"), RelvecError):  # a check of our own
        return str(context["error"])
    wanted = next((text for kind, text in _WANTED.items() if error["type"].startswith(kind)), error["msg"])
    return f"{name} is {error['input']!r}; {wanted.format(**context).replace(chr(39), '')}."
