"""relvec fetch: bring a model and what it stands on into the cache, for later use without a network."""

from typing import Annotated

import typer

from relvec.hub.models import resolve
from relvec.model.adapter import adapters_and_base


def fetch(model: Annotated[str, typer.Argument(help="A model name or a hub id.")]) -> None:
    """Download a model now, so that later calls need no network; print its folder."""
    folder = resolve(model)
    adapters_and_base(folder)  # fetches the base of an adapter
    typer.echo(str(folder))
