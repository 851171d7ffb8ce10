"""The wheel has all of the package, as its record says, and is built without deflating weights."""

import csv
import importlib
import io
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

pytest.importorskip("flit_core")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        patch.chdir(ROOT)
        name = importlib.import_module("build_backend").build_wheel(folder)
    with zipfile.ZipFile(folder / name) as opened:
        yield opened


def test_every_file_of_the_package_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    package = (path for path in (ROOT / "src" / "relvec").rglob("*") if path.is_file() and path.suffix != ".pyc")
    members = {name for name in wheel.namelist() if name.startswith("relvec/")}
    assert members == {path.relative_to(ROOT / "src").as_posix() for path in package}


def test_the_record_has_the_checksum_of_every_file(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("/RECORD"))
    recorded = {row[0]: row[1] for row in csv.reader(io.StringIO(wheel.read(name).decode()))}
    assert recorded.pop(name) == ""
    digests = {member: sha256(wheel.read(member)).digest() for member in wheel.namelist() if member != name}
    assert recorded == {
        member: f"sha256={urlsafe_b64encode(digest).decode().rstrip('=')}" for member, digest in digests.items()
    }


def test_only_weights_are_stored_as_they_are(wheel: zipfile.ZipFile) -> None:
    stored = {Path(member.filename).suffix for member in wheel.infolist() if member.compress_type == zipfile.ZIP_STORED}
    assert stored == {".faiss", ".npz", ".safetensors"}
