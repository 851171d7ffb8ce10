"""relvec models, fetch, merge and export: which models there are, bring one here, write one in another form."""

from pathlib import Path
from typing import Annotated

import typer

from relvec.cli.options import Json
from relvec.cli.output import Table, show
from relvec.errors import RelvecError
from relvec.hub.models import model_rows, resolve

_COLUMNS = ("name", "kind", "parameters", "download", "speed", "analogies (%)", "here", "source", "description")


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
    from relvec.model.adapter import holds
    from relvec.model.merging import average
    from relvec.model.saving import check_no_model
    from relvec.model.torch_backend import TorchRelBERT

    for model in models:
        if holds(output, model):
            raise RelvecError(f"{output} holds {model}, or what it stands on; choose another output.")
    check_no_model(output)
    merged = average([TorchRelBERT.from_pretrained(model, device="cpu") for model in models])
    merged.name = output.name
    if lora:
        from relvec.training.adapters import save_over_base

        save_over_base(merged, models[0], lora, output)
    else:
        merged.save_pretrained(output)
    typer.echo(str(output))


def export(
    model: Annotated[str, typer.Argument(help="A model: a name, a folder or a hub id.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    onnx: Annotated[bool, typer.Option("--onnx", help="Write a model.onnx for other programs.")] = False,
    int8: Annotated[bool, typer.Option("--int8", help="Weights of one byte: a quarter of the size.")] = False,
) -> None:
    """Write a whole model, without its base: as ONNX for other programs, as int8 to take little room, or as both."""
    from relvec.model.adapter import holds
    from relvec.model.saving import check_no_model

    if not onnx and not int8:
        raise RelvecError("There is no form to export to; add --onnx or --int8 (`relvec merge` writes plain weights).")
    if holds(output, model):
        raise RelvecError(f"{output} holds {model}, or what it stands on; choose another output.")
    check_no_model(output)
    if onnx:
        from relvec.model.onnx_backend.export import export_onnx
        from relvec.model.onnx_backend.model import OnnxRelBERT

        export_onnx(OnnxRelBERT.from_pretrained(model, dtype="int8" if int8 else "float32"), output)
    else:
        from relvec.model.torch_backend import TorchRelBERT

        whole = TorchRelBERT.from_pretrained(model, device="cpu")
        whole.name = output.name
        whole.save_int8(output)
    typer.echo(str(output))
