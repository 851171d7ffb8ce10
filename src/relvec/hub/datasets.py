"""Where benchmark files are: below the data folder, else on the hub."""

from pathlib import Path

from relvec.data.sources import data_folder
from relvec.errors import RelvecError
from relvec.hub.network import hub_answers


def benchmark_file(path: str, hub_id: str, hub_path: str, data_dir: str | Path | None = None) -> Path:
    """The file `path` below the data folder, or `hub_path` of the dataset `hub_id`, through the hub's own cache."""
    folder = data_folder(data_dir)
    if folder is not None and (folder / path).is_file():
        return folder / path
    from huggingface_hub import hf_hub_download

    try:
        online = hub_answers()
        return Path(hf_hub_download(hub_id, hub_path, repo_type="dataset", local_files_only=not online))
    except Exception as error:  # whatever the reason, the file is not to be had and the remedy is the same
        looked = f"below {folder}" if folder is not None else "here (neither --data-dir nor RELVEC_DATA is set)"
        fix = f"get the dataset {hub_id} and put the file at {path} below your data folder"
        raise RelvecError(f"There is no {path} {looked}, and the hub did not send it; {fix}.") from error
