"""Datasets of the hub: benchmark files and rated pairs, through the hub's own cache."""

from collections.abc import Sequence
from pathlib import Path

from relvec.errors import RelvecError, errors_as
from relvec.hub.network import HubError, hub_snapshot
from relvec.io.files import data_folder


def dataset_folder(dataset: str, patterns: Sequence[str]) -> Path:
    """The files of a dataset that match the patterns."""
    with errors_as(f"There is no data {dataset} here", "check the name, or give a file", HubError):
        return hub_snapshot(dataset, patterns, kind="dataset")


def benchmark_file(path: str, dataset: str, hub_path: str, data_dir: str | Path | None = None) -> Path:
    """The file `path` below the data folder, or `hub_path` of a dataset of the hub."""
    folder = data_folder(data_dir)
    if folder is not None and (folder / path).is_file():
        return folder / path
    try:
        file = dataset_folder(dataset, [hub_path]) / hub_path
    except RelvecError:
        file = Path()
    if not file.is_file():
        looked = f"below {folder}" if folder is not None else "here (neither --data-dir nor RELVEC_DATA is set)"
        fix = f"get the dataset {dataset} and put the file at {path} below your data folder"
        raise RelvecError(f"There is no {path} {looked}, and the hub did not send it; {fix}.")
    return file
