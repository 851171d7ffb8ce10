"""Whether a file holds a record: what people edit or merge by hand is checked before tables are made of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from relvec.errors import RelvecError

TEXTS = ("task", "system", "dataset", "part", "fingerprint", "command", "data", "version")
OBJECTS = ("settings", "metrics", "facts")
REQUIRED = ("task", "system", "dataset", "part", "fingerprint", "settings", "metrics")

TASKS = ("analogy", "classification", "mapping", "loss")
COUNTS = ("questions", "ties", "problems", "relations", "triples")
SHARES = ("accuracy", "solved", "macro_f1", "micro_f1", "loss", "in_order")

Check = Callable[[Any], bool]


def read_fields(path: Path) -> dict[str, Any]:
    """The fields of the record in a file; the first that is missing, unknown or of a wrong kind is named.

    >>> _ = Path("record.json").write_text('{"task": "analogy", "settings": null}')
    >>> read_fields(Path("record.json"))
    Traceback (most recent call last):
    ...
    relvec.errors.RelvecError: record.json has no "system"; write it, or remove the file.
    """
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RelvecError(f"Cannot read {path}: {error.strerror}; mend or remove it.") from error
    except (ValueError, RecursionError) as error:
        raise RelvecError(f"{path} is no result of relvec ({error}); remove it.") from error
    if not isinstance(fields, dict):
        raise RelvecError(f"{path} is no result of relvec (it holds no object); remove it.")
    for name in REQUIRED:
        if name not in fields:
            raise RelvecError(f'{path} has no "{name}"; write it, or remove the file.')
    for name in fields:
        if name not in (*TEXTS, *OBJECTS):
            raise RelvecError(f'{path} has "{name}", which no result of relvec has; remove the key, or the file.')
    _require(path, fields, "", dict.fromkeys(TEXTS, _TEXT) | dict.fromkeys(OBJECTS, _OBJECT))
    _require(path, fields, "", {"task": (f"one of {', '.join(TASKS)}", TASKS.__contains__)})
    _require(path, fields.get("facts", {}), "facts.", {"kind": _TEXT, "base": _TEXT})
    _require(path, fields["metrics"], "metrics.", _metrics_of(fields["task"]))
    return fields


def _metrics_of(task: str) -> dict[str, tuple[str, Check]]:
    """What each number that a table may show must be; a share that could not be computed is null."""
    checks: dict[str, tuple[str, Check]] = {
        **dict.fromkeys(SHARES, ("a number", lambda value: value is None or _is_number(value))),
        **dict.fromkeys(COUNTS, _COUNT),
        **dict.fromkeys(("by_category", "by_relation", "by_type"), ("an object of objects of numbers", _is_table)),
        "by_class": ('an object of objects with "f1" and "pairs"', _is_class_table),
        "interval": ("a list of two numbers", _is_interval),
    }
    if task == "classification":
        return {**checks, "pairs": ("an object of whole numbers", _is_object_of_counts)}
    return {**checks, "pairs": _COUNT, "out_of_vocabulary": _COUNT}


def _require(path: Path, fields: dict[str, Any], where: str, checks: dict[str, tuple[str, Check]]) -> None:
    for name, (kind, is_right) in checks.items():
        if name in fields and not is_right(fields[name]):
            found = json.dumps(fields[name], ensure_ascii=False)
            shown = found if len(found) <= 40 else f"{found[:37]}..."
            raise RelvecError(f'{path}: "{where}{name}" is {shown}, not {kind}; mend it, or remove the file.')


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_object_of_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_count, value.values()))


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(row, dict) and all(map(_is_number, row.values())) for row in value.values()
    )


def _is_class_table(value: Any) -> bool:
    return _is_table(value) and all({"f1", "pairs"} <= row.keys() for row in value.values())


def _is_interval(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))


_TEXT = ("a text", _is_text)
_OBJECT = ("an object", _is_object)
_COUNT = ("a whole number", _is_count)
