"""relvec merge: adapters, bases and runs become one model."""

from pathlib import Path
from typing import Annotated

import typer


def merge(
    models: Annotated[list[str], typer.Argument(help="One or more models: names, folders or hub ids.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the new model.")],
    lora: Annotated[int, typer.Option(help="Write an adapter of this rank over the base; 0 for plain weights.")] = 0,
) -> None:
    """Write a model as plain weights that load anywhere, or the mean of several; with --lora, as a small adapter."""
    from relvec.averaging import average
    from relvec.encoders.saving import check_output
    from relvec.errors import RelvecError
    from relvec.model import RelBERT

    check_output(output)
    loaded = [RelBERT.from_pretrained(model, device="cpu") for model in models]
    merged = average(loaded)
    merged.name = output.name
    if not lora:
        merged.save_pretrained(output)
    else:
        base = merged.training_record.get("base")
        if not base:
            raise RelvecError(f"{models[0]} does not say what base it was trained from; write it with --lora 0.")
        from relvec.encoders.resolve import plain_base
        from relvec.training.low_rank import save_low_rank

        plain = plain_base(base)
        if plain != base:  # an adapter on an adapter becomes one
            recipe = merged.training_record.get("recipe", {}) | {"started_from": base}
            merged.training_record |= {"base": plain, "recipe": recipe}
        save_low_rank(merged, plain, lora, output)
    typer.echo(str(output))
