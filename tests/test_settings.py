import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, model_validator

from relvec.errors import RelvecError
from relvec.settings import NameOrPath, Seed, Settings, Texts


class Example(Settings):
    steps: Annotated[int, Field(ge=1, description="how many steps")] = 10
    rate: Annotated[float, Field(gt=0, le=1)] = 0.1
    dropout: bool = True
    base: NameOrPath = "mpnet"
    data: Texts = Field(default_factory=lambda: ["bundled"])
    schedule: Literal["linear", "constant"] = "linear"
    weights: dict[str, float] = Field(default_factory=dict)
    threshold: float | None = None
    seed: Seed = 0

    @model_validator(mode="after")
    def _check(self) -> "Example":
        if self.steps == 13:
            raise RelvecError("13 steps bring bad luck; use another number.")
        return self


def test_text_becomes_the_type_of_its_field() -> None:
    made = Example().changed({"steps": "80", "rate": "1e-2", "dropout": "false", "threshold": "0.5", "data": "mine"})
    assert (made.steps, made.rate, made.dropout, made.threshold, made.data) == (80, 0.01, False, 0.5, ["mine"])
    assert Example().changed({"base": Path("folder"), "data": [1, Path("b")]}).data == ["1", "b"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"stps": 1}, "There is no setting 'stps'; did you mean 'steps'."),
        ({"steps": "many"}, "steps is 'many'; give a whole number."),
        ({"steps": 2.5}, "steps is 2.5; give a whole number."),
        ({"steps": 0}, "steps is 0; use 1 or more."),
        ({"rate": "nan"}, "rate is 'nan'; give a finite number."),
        ({"rate": 0}, "rate is 0; use a number above 0"),
        ({"rate": 2}, "rate is 2; use 1.0 or less."),
        ({"dropout": "maybe"}, "dropout is 'maybe'; give true or false."),
        ({"base": ["a"]}, "base is ['a']; give a text."),
        ({"data": {"a": 1}}, "data is {'a': 1}; give a list."),
        ({"schedule": "cosine"}, "schedule is 'cosine'; choose linear or constant."),
        ({"weights": "x"}, "weights is 'x'; give values by name."),
        ({"weights": {"a": "x"}}, "weights.a is 'x'; give a number."),
        ({"seed": 2**32}, "seed is 4294967296; use 4294967295 or less."),
        ({"steps": 13}, "13 steps bring bad luck; use another number."),
    ],
)
def test_a_bad_value_is_one_sentence_that_says_where_what_and_how_to_mend_it(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises(RelvecError) as error:
        Example.checked(values, where="my.toml: ")
    assert str(error.value).startswith("my.toml: " + message.rstrip("."))
    with pytest.raises(RelvecError):
        Example(**values)


def test_settings_never_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Example().steps = 3


@pytest.mark.parametrize("content", ["{", "[1]", '{"steps": "x"}'])
def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path, content: str) -> None:
    path = tmp_path / "meta.json"
    path.write_text(content)
    with pytest.raises(RelvecError, match=r"meta\.json cannot be read \(.+\); build it again\.$"):
        Example.from_json(path, fix="build it again")
    path.write_text(json.dumps(Example(steps=3).as_dict()))
    assert Example.from_json(path, fix="") == Example(steps=3)


def test_the_quick_commands_do_not_import_pydantic() -> None:
    code = "import sys, relvec.cli.app, relvec.model.backends; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
