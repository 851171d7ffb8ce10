"""relvec merge: an adapter and its base become one plain model."""

from pathlib import Path
from typing import Annotated

import typer


def merge(
    adapter: Annotated[str, typer.Argument(help="A model saved as an adapter: a name, a folder or a hub id.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the plain model.")],
) -> None:
    """Write an adapter merged into its base, in the published format that loads anywhere."""
    from relvec.model import RelBERT

    RelBERT.from_pretrained(adapter, device="cpu").save_pretrained(output)
    typer.echo(str(output))
