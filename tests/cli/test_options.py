"""Options that several commands share are written once."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from relvec.cli.options import with_shared_options
from relvec.settings import Settings, setting


@dataclass(frozen=True)
class Size:
    width: Annotated[int, typer.Option("--width", "-w", help="Across.")] = 3
    height: Annotated[int, typer.Option(help="Up.")] = 4


class Paint(Settings):
    colours: list[str] = setting(lambda: ["red"], "a colour; may be repeated", "--colour")
    coats: int = setting(2, "how often it is painted", ge=1)
    place: str = ""


made = typer.Typer()


@made.command()
@with_shared_options
def show(size: Size, *, times: int = 1, paint: Paint) -> None:
    """What it does."""
    typer.echo(f"{size} {times} {paint!r} {sorted(paint.model_fields_set)}")


def test_the_fields_of_dataclasses_and_settings_become_options() -> None:
    said = CliRunner().invoke(made, ["-w", "5", "--times", "2", "--colour", "blue"]).stdout
    assert said == "Size(width=5, height=4) 2 Paint(colours=['blue'], coats=2, place='') ['colours']\n"


def test_help_tells_options_in_their_place_with_description_and_default() -> None:
    text = CliRunner().invoke(made, ["--help"]).stdout
    told = ["What it does.", "--width", "--height", "--times", "--colour", "--coats", "How often it is painted.", "(2)"]
    assert sorted(told, key=text.index) == told
    assert "--place" not in text  # it has no description
