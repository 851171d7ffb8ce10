"""relvec models, fetch and merge: which models there are, bring one here, make one of several."""

from pathlib import Path
from typing import Annotated, Any

import typer

from relvec.cli.options import Json
from relvec.cli.output import Table, show
from relvec.errors import RelvecError
from relvec.hub.catalogue import BASE_MODELS, BUNDLED_MODELS, HUB_MODELS, BaseModel, BundledModel, HubModel
from relvec.hub.models import base_folder, resolve

_COLUMNS = ("name", "kind", "parameters", "download", "speed", "analogies (%)", "here", "source", "description")


def model_rows() -> list[dict[str, Any]]:
    """One row for each name in the catalogue: what it is, its size, what was measured, its source, if it is here."""
    bundled, bases, published = BUNDLED_MODELS.values(), BASE_MODELS.values(), HUB_MODELS.values()
    return [
        *(_row(each, "relation model", BASE_MODELS[each.base], f"bundled, over {each.base}") for each in bundled),
        *(_row(each, "base encoder", each, f"hub {each.hub_id}, or the package index") for each in bases),
        *(_row(each, "relation model", each, "hub") for each in published),
    ]


def _row(
    model: BundledModel | BaseModel | HubModel, kind: str, weights: BaseModel | HubModel, source: str
) -> dict[str, Any]:
    measured = model.measured
    return {
        "name": model.name,
        "kind": kind,
        "parameters": weights.parameters,
        "download": weights.download_size,
        "source": source,
        "here": isinstance(weights, BaseModel) and base_folder(weights).is_dir(),
        "description": model.description,
        "speed": measured.speed,
        "analogy_accuracy": measured.analogy_accuracy,
        "scoring": None if measured.analogy_accuracy is None else measured.scoring,
    }


def models(json: Json = False) -> None:
    """List the model names that can be used, their size and where they come from."""
    rows = model_rows()
    table = [
        [
            row["name"],
            row["kind"],
            _millions(row["parameters"], "M"),
            _millions(row["download"], " MB"),
            None if row["speed"] is None else f"{row['speed']:g}x",
            None if row["analogy_accuracy"] is None else f"{row['analogy_accuracy']:.1f} ({row['scoring']})",
            "yes" if row["here"] else "no",
            row["source"],
            row["description"],
        ]
        for row in rows
    ]
    nothing = [""] * 5
    saved = "save_pretrained, or the published format"
    table.append(["<folder>", "either", *nothing, "a saved model of yours", saved])
    table.append(["<owner/name>", "either", *nothing, "hub", "any encoder or relation model of the hub"])
    show(json, rows, Table(_COLUMNS, table))


def _millions(number: int, unit: str) -> str | None:
    return f"{number / 1e6:.0f}{unit}" if number else None


def fetch(model: Annotated[str, typer.Argument(help="A model name or a hub id.")]) -> None:
    """Download a model now, so that later calls need no network; print its folder."""
    from relvec.model.adapter import adapters_and_base

    folder = resolve(model)
    adapters_and_base(folder)  # fetches the base of an adapter
    typer.echo(str(folder))


def merge(
    models: Annotated[list[str], typer.Argument(help="One or more models: names, folders or hub ids.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the new model.")],
    lora: Annotated[int, typer.Option(help="Write an adapter of this rank over the base; 0 for plain weights.")] = 0,
) -> None:
    """Write a model as plain weights that load anywhere, or the mean of several; with --lora, as a small adapter."""
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
