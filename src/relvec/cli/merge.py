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
    from relvec.errors import RelvecError
    from relvec.model.averaging import average
    from relvec.model.base import holds
    from relvec.model.saving import check_unused
    from relvec.model.torch_backend import TorchRelBERT

    for model in models:
        if holds(output, model):
            raise RelvecError(f"{output} holds {model}, or what it stands on; choose another output.")
    check_unused(output)
    loaded = [TorchRelBERT.from_pretrained(model, device="cpu") for model in models]
    merged = average(loaded)
    merged.name = output.name
    if not lora:
        merged.save_pretrained(output)
    else:
        from relvec.hub.models import resolve
        from relvec.model.adapter import adapter_config, is_adapter, plain_base
        from relvec.training.adapters import save_low_rank

        folder = resolve(models[0])
        recorded = merged.training_record.get("base")
        # An adapter's own name of its base holds in any working directory; the recorded one is as it was typed.
        base = adapter_config(folder).base_model_name_or_path if is_adapter(folder) else recorded
        if not base:
            raise RelvecError(f"{models[0]} does not say what base it was trained from; write it with --lora 0.")
        plain = plain_base(base)
        if plain != base:  # an adapter on an adapter becomes one
            recipe = merged.training_record.get("recipe", {}) | {"started_from": recorded or base}
            merged.training_record |= {"base": plain, "recipe": recipe}
        save_low_rank(merged, plain, lora, output)
    typer.echo(str(output))
