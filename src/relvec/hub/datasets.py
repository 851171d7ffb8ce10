"""Datasets of the hub: benchmark files and rated pairs, through the hub's own cache."""

from collections.abc import Sequence
from pathlib import Path

from relvec.errors import RelvecError
from relvec.hub.network import hub_answers, is_refusal, offline
from relvec.io.paths import data_folder


def dataset_folder(dataset: str, patterns: Sequence[str], revision: str | None = None) -> Path:
    """The files of a dataset that match the patterns: of the commit `revision`, else the newest."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = snapshot_download(
            dataset,
            repo_type="dataset",
            revision=revision,
            allow_patterns=list(patterns),
            local_files_only=not hub_answers(),
        )
    except LocalEntryNotFoundError as error:
        reason = "the network is switched off" if offline() else "the hub does not answer"
        raise RelvecError(f"There is no data {dataset} here, and {reason}; check the name or the network.") from error
    except Exception as error:  # the transport's own errors are not the hub library's
        problem = f"The hub broke off while sending {dataset}; try again, or give a file"
        if is_refusal(error):
            problem = f"The hub has no dataset {dataset}, or none for you; check the name"
        raise RelvecError(f"{problem}.") from error
    return Path(folder)


def benchmark_file(
    path: str, dataset: str, hub_path: str, data_dir: str | Path | None = None, revision: str | None = None
) -> Path:
    """The file `path` below the data folder, or `hub_path` of a dataset of the hub."""
    folder = data_folder(data_dir)
    if folder is not None and (folder / path).is_file():
        return folder / path
    try:
        file = dataset_folder(dataset, [hub_path], revision) / hub_path
    except RelvecError:
        file = Path()
    if not file.is_file():
        looked = f"below {folder}" if folder is not None else "here (neither --data-dir nor RELVEC_DATA is set)"
        fix = f"get the dataset {dataset} and put the file at {path} below your data folder"
        raise RelvecError(f"There is no {path} {looked}, and the hub did not send it; {fix}.")
    return file
