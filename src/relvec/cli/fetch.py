"""relvec fetch: bring a base model into the cache, for later use without a network."""

from typing import Annotated

import typer

from relvec.encoders.catalog import BUNDLED_MODELS
from relvec.encoders.resolve import resolve


def fetch(model: Annotated[str, typer.Argument(help="A model name or a hub id.")]) -> None:
    """Download a model now, so that later calls need no network; print its folder."""
    typer.echo(str(resolve(BUNDLED_MODELS[model].base if model in BUNDLED_MODELS else model)))
