"""relvec models, fetch, merge and export: which models there are, bring one here, write one in another form."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from relvec.cli.options import Json, output_option
from relvec.cli.output import Table, message, show
from relvec.errors import RelvecError
from relvec.hub.models import model_rows, resolve
from relvec.model.adapter import adapters_and_base, check_beside_base
from relvec.storage.job import job_of
from relvec.storage.lock import output_lock

_COLUMNS = ("name", "parameters", "download", "speed", "analogies (%)", "what it is")


def models(json: Json = False) -> None:
    """List the models: name, size, speed, accuracy."""
    rows = model_rows()
    table = [
        [
            row["name"],
            _millions(row["parameters"], "M"),
            "done" if row["here"] and row["download"] else _millions(row["download"], " MB"),
            None if row["speed"] is None else f"{row['speed']:g}x",
            None if row["analogy_accuracy"] is None else f"{row['analogy_accuracy']:.1f}",
            row["description"],
        ]
        for row in rows
    ]
    nothing = [""] * 4
    table.append(["<folder>", *nothing, "any saved model"])
    table.append(["<owner/name>", *nothing, "any model of the Hugging Face hub"])
    show(json, rows, Table(_COLUMNS, table))


def _millions(number: int, unit: str) -> str | None:
    return f"{number / 1e6:.0f}{unit}" if number else None


def fetch(model: Annotated[str, typer.Argument(help="A model name or a hub id.")]) -> None:
    """Download a model, for use without a network; print its folder."""
    folder = resolve(model)
    adapters_and_base(folder)  # fetches the base of an adapter
    typer.echo(str(folder))


def merge(
    models: Annotated[list[str], typer.Argument(help="One or more models: names, folders or hub ids.")],
    output: Annotated[Path, output_option("The folder of the new model.")],
    lora: Annotated[
        int, typer.Option(min=0, help="Write an adapter of this rank over the base; 0 for plain weights.")
    ] = 0,
) -> None:
    """Write a model, or the mean of several, as plain weights. With --lora, write a small adapter instead."""
    from relvec.model.merging import average
    from relvec.model.torch_backend import TorchRelBERT

    def save(merged: TorchRelBERT, folder: Path) -> None:
        if lora:
            from relvec.training.adapters import save_over_base

            save_over_base(merged, models[0], lora, folder)
        else:
            merged.save_pretrained(folder)

    for model in models:
        check_beside_base(model, output, "new model")
    loaded = [TorchRelBERT.from_pretrained(model, device="cpu") for model in models]
    job = job_of("merge", [model.fingerprint for model in loaded], lora)
    _write_once(lambda: average(loaded), output, job, save)


def export(
    model: Annotated[str, typer.Argument(help="A model: a name, a folder or a hub id.")],
    output: Annotated[Path, output_option("The folder to write.")],
    onnx: Annotated[bool, typer.Option("--onnx", help="Write a model.onnx for other programs.")] = False,
    int8: Annotated[bool, typer.Option("--int8", help="Weights of one byte: a quarter of the size.")] = False,
) -> None:
    """Write a self-contained model: as ONNX, as int8, or both. ONNX is for other programs, int8 takes less space."""
    if not onnx and not int8:
        raise RelvecError("There is no form to export to; add --onnx or --int8 (`relvec merge` writes plain weights).")
    check_beside_base(model, output, "new model")
    whole: Any
    save: Any
    if onnx:
        from relvec.model.onnx_backend.export import export_onnx
        from relvec.model.onnx_backend.model import OnnxRelBERT

        whole, save = OnnxRelBERT.from_pretrained(model, dtype="int8" if int8 else "float32"), export_onnx
    else:
        from relvec.model.torch_backend import TorchRelBERT

        whole, save = TorchRelBERT.from_pretrained(model, device="cpu"), TorchRelBERT.save_int8
    _write_once(lambda: whole, output, job_of("export", whole.fingerprint, onnx, int8), save)


def _write_once(make: Callable[[], Any], output: Path, job: str, save: Callable[[Any, Path], None]) -> None:
    """Make and save the model of a job, unless it was saved before, and print its folder."""
    from relvec.model.saving import finished_run

    with output_lock(output):
        if finished_run(output, job):
            message(f"{output} was finished before")
        else:
            model = make()
            model.name = output.resolve().name
            model.training_record |= {"run": {"job": job}}
            save(model, output)
    typer.echo(str(output))
