"""A plan of experiments as data: which commands make which tables, and what each has to wait for."""

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from relvec.errors import RelvecError, did_you_mean, one_of
from relvec.evaluation.records import file_name, last_part
from relvec.settings import Settings

MODELS = "language_models"
"""The list of a plan that `--base` replaces."""

Values = Mapping[str, Any]
"""What stands for the words in braces."""


class StepPattern(Settings):
    """One step, or one for each entry of some lists. In its texts, {words in braces} are filled in.

    A word of the command that is nothing but {a name} may stand for several words. Some steps belong to some profiles
    only. What follows `data` is for the estimate of time and disk.
    """

    name: str
    command: list[str]
    each: list[str] = Field(default_factory=list)
    needs: list[str] = Field(default_factory=list)
    inputs: list[str] = Field(default_factory=list)
    profiles: list[str] = Field(default_factory=list)
    tables: list[str] = Field(default_factory=list)
    data: list[str] = Field(default_factory=list)
    encodings: int | str = 0
    tokens: int = 30
    trains: bool = False
    saved_models: int = 0
    minutes: float = 0.0


class Profile(Settings):
    """How much is done: values for the commands, and whether that takes a GPU."""

    description: str = ""
    needs_gpu: bool = False
    values: dict[str, Any] = Field(default_factory=dict)


class Plan(Settings):
    """All that a TOML file says: values, lists to repeat steps over, profiles, files that users may add, steps."""

    values: dict[str, Any] = Field(default_factory=dict)
    lists: dict[str, list[dict[str, Any]]] = Field(default_factory=dict)
    profiles: dict[str, Profile] = Field(default_factory=dict)
    inputs: dict[str, str] = Field(default_factory=dict)
    steps: list[StepPattern]

    @classmethod
    def load(cls, path: Path | None = None) -> Self:
        """A plan from a file; by default that of the paper."""
        source = path or files(__package__).joinpath("paper.toml")
        try:
            return cls.checked(tomllib.loads(source.read_text(encoding="utf-8")), where=f"{source}: ")
        except (OSError, UnicodeDecodeError) as error:
            raise RelvecError(f"Cannot read the plan {source}: {error}; check the path.") from error
        except tomllib.TOMLDecodeError as error:
            raise RelvecError(f"{source} is not TOML: {error}; fix it.") from error

    def profile(self, name: str) -> Profile:
        """The profile of that name; a plan without profiles has one way to be run."""
        return self.profiles[one_of("profile", name, self.profiles)] if self.profiles else Profile()


@dataclass(frozen=True)
class Step:
    """A command to run: its words after `relvec`, the steps before it, and what of the paper it is for."""

    name: str
    command: tuple[str, ...]
    needs: tuple[str, ...]
    inputs: tuple[str, ...]
    tables: tuple[str, ...]
    encodings: int
    values: Values
    pattern: StepPattern


def steps_of(
    plan: Plan,
    profile: str,
    values: Values,
    *,
    bases: Sequence[str] = (),
    only: Collection[str] = (),
    given: Collection[str] = (),
) -> tuple[list[Step], list[Step]]:
    """The steps to run, each after those that it needs; and those left out for want of an input that was not given.

    `values` are those of this run, such as the seed. `bases` take the place of the plan's language models. `only` are
    names of tables; what these need is run too. `given` are the names of inputs that there are.
    """
    lists = dict(plan.lists)
    if bases:
        known = {entry["base"]: entry for entry in lists.get(MODELS, [])}
        lists[MODELS] = [known.get(base, {"base": base}) for base in bases]
    unknown = {name: f"<{name}>" for name in plan.inputs}
    filled = {**plan.values, **plan.profile(profile).values, **unknown, **values}
    patterns = [pattern for pattern in plan.steps if not pattern.profiles or profile in pattern.profiles]
    steps = [step for pattern in patterns for step in _steps(pattern, lists, filled)]
    by_name = {step.name: step for step in steps}
    if twice := [step.name for step in steps if by_name[step.name] is not step]:
        raise RelvecError(f"Two steps of the plan are called {twice[0]!r}; give each a name of its own.")
    order = _ordered(by_name)
    lacking = {step.name for step in order if not set(step.inputs) <= set(given)}
    for step in order:  # in their order, so that what needs a step that is left out is left out too
        if lacking.intersection(step.needs):
            lacking.add(step.name)
    wanted = _wanted(order, only)
    return (
        [step for step in order if step.name in wanted and step.name not in lacking],
        [step for step in order if step.name in wanted and step.name in lacking],
    )


def _steps(pattern: StepPattern, lists: Mapping[str, Sequence[Values]], values: Values) -> Iterator[Step]:
    for name in pattern.each:
        one_of("list of the plan", name, lists)
    for entries in product(*(lists[name] for name in pattern.each)):
        filled = dict(values)
        for entry in entries:
            filled |= {key: _filled(each, values) if isinstance(each, str) else each for key, each in entry.items()}
        if "base" in filled:
            filled["short"] = file_name(last_part(str(filled["base"])).rpartition("/")[2])
            filled.setdefault("title", f"RelBERT, {filled['short']}")
        yield Step(
            name=_filled(pattern.name, filled),
            command=tuple(_words(pattern.command, filled)),
            needs=tuple(_filled(name, filled) for name in pattern.needs),
            inputs=tuple(_filled(name, filled) for name in pattern.inputs),
            tables=tuple(pattern.tables),
            encodings=int(_filled(str(pattern.encodings), filled)),
            values=filled,
            pattern=pattern,
        )


def _words(command: Iterable[str], values: Values) -> Iterator[str]:
    for word in command:
        whole = values.get(word[1:-1]) if word.startswith("{") and word.endswith("}") else None
        if isinstance(whole, list):
            yield from (_filled(str(each), values) for each in whole)
        else:
            yield _filled(word, values)


def _filled(text: str, values: Values) -> str:
    """
    >>> _filled("train {base}", {"base": "roberta-large"})
    'train roberta-large'
    """
    try:
        return text.format_map(values)
    except (KeyError, ValueError, IndexError) as error:
        raise RelvecError(f"The plan has no value for {text!r} ({error}); add it to the plan.") from error


def _ordered(steps: Mapping[str, Step]) -> list[Step]:
    """The steps that make a table in the order of the plan, each right after what it needs."""
    ordered: dict[str, Step] = {}

    def add(step: Step, waiting: tuple[str, ...]) -> None:
        if step.name in waiting:
            circle = " -> ".join([*waiting, step.name])
            raise RelvecError(f"Steps of the plan need each other ({circle}); take out one of the needs.")
        for name in step.needs:
            if name not in steps:
                advice = did_you_mean(name, steps, otherwise="add such a step")
                raise RelvecError(f"The step {step.name!r} of the plan needs {name!r}, which is none; {advice}.")
            add(steps[name], (*waiting, step.name))
        ordered.setdefault(step.name, step)

    for step in steps.values():
        if step.tables:
            add(step, ())
    return list(ordered.values())


def _wanted(order: Sequence[Step], only: Collection[str]) -> set[str]:
    tables = {table for step in order for table in step.tables}
    for name in only:
        one_of("table of the plan", name, sorted(tables))
    wanted = {step.name for step in order if not only or set(only).intersection(step.tables)}
    for step in reversed(order):
        if step.name in wanted:
            wanted.update(step.needs)
    return wanted
