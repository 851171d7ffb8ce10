"""The options that the evaluations share are written once."""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import pytest
import typer
import typer.main
from typer.testing import CliRunner

from relvec.cli.app import make_app
from relvec.cli.evaluate import Chosen
from relvec.cli.options import with_shared_options
from relvec.errors import RelvecError

CHOSEN = ["model", "template", "pooling", "dtype", "baseline", "settings"]
RUN = ["data_dir", "device", "json", "backend", "runs", "name"]


@cache
def options_of(name: str) -> dict[str, Any]:
    group = typer.main.get_command(make_app()).commands["evaluate"]  # type: ignore[attr-defined]
    return {option.name: option for option in group.commands[name].params}


@pytest.mark.parametrize("name", ["analogy", "classification", "mapping"])
def test_a_command_chooses_what_is_evaluated_first_and_where_it_goes_last(name: str) -> None:
    names = list(options_of(name))
    assert names[:7] == [*CHOSEN, "dataset"]
    assert names[-len(RUN) :] == RUN


def test_shared_options_are_the_same_in_every_command() -> None:
    for name in ("classification", "mapping"):
        for option in (*CHOSEN, *RUN):
            first, other = options_of("analogy")[option], options_of(name)[option]
            assert (first.opts, first.help, first.default) == (other.opts, other.help, other.default)
    assert list(options_of("loss"))[-len(RUN) :] == RUN


@dataclass(frozen=True)
class Size:
    width: Annotated[int, typer.Option("--width", "-w", help="Across.")] = 3
    height: Annotated[int, typer.Option(help="Up.")] = 4


def test_the_fields_of_a_dataclass_become_options_in_their_place() -> None:
    made = typer.Typer()

    @made.command()
    @with_shared_options
    def show(size: Size, *, times: int = 1) -> None:
        """What it does."""
        typer.echo(f"{size} {times}")

    assert CliRunner().invoke(made, ["-w", "5", "--times", "2"]).stdout == "Size(width=5, height=4) 2\n"
    text = CliRunner().invoke(made, ["--help"]).stdout
    assert text.index("What it does.") < text.index("--width") < text.index("--height") < text.index("--times")


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(RelvecError, match="--set is for baselines"):
        Chosen(settings=["a=b"]).baseline_settings("analogy")
    with pytest.raises(RelvecError, match="--baseline stands alone"):
        Chosen(pooling="mask", baseline="random").baseline_settings("analogy")
    assert Chosen().baseline_settings("analogy") is None
