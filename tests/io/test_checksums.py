import os
import shutil
import subprocess
from pathlib import Path

import pytest

from relvec import PairIndex, RelBERT, RelvecError
from relvec.hub.catalogue import BUNDLED_MODELS
from relvec.index.storage import BUNDLED, read_meta
from relvec.io import checksums
from relvec.io.checksums import check_folder, write_checksums


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    copy = Path(shutil.copytree(tiny_folder, tmp_path / "model"))
    write_checksums(copy)
    return copy


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
@pytest.mark.parametrize("backend", ["torch", "numpy"])
def test_a_model_with_one_changed_bit_does_not_load(folder: Path, name: str, backend: str) -> None:
    data = bytearray((folder / name).read_bytes())
    data[-20] ^= 1  # a number, or a letter within quotes
    (folder / name).write_bytes(data)
    with pytest.raises(RelvecError, match=f"{name} (is not what was stored|describes no encoder)"):
        RelBERT.from_pretrained(folder, backend=backend)


def test_the_readme_may_be_edited(folder: Path) -> None:
    (folder / "README.md").write_text("mine")
    assert check_folder(folder, every=True) > 2


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs sha256sum")
def test_sha256sum_reads_the_checksums(folder: Path) -> None:
    assert subprocess.run(["sha256sum", "--check", "--status", "checksums.sha256"], cwd=folder).returncode == 0


def test_a_large_file_is_read_only_if_it_is_newer_than_its_checksum(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checksums, "CHEAP_BYTES", 0)
    weights, manifest = folder / "model.safetensors", folder / "checksums.sha256"
    weights.write_bytes(b"damaged")
    os.utime(weights, ns=(0, manifest.stat().st_mtime_ns))
    assert check_folder(folder) == 0
    os.utime(weights, ns=(0, manifest.stat().st_mtime_ns + 1))
    with pytest.raises(RelvecError, match="is not what was stored"):
        check_folder(folder)


@pytest.mark.parametrize("name", ["vectors-1.faiss", "pairs-1.npz"])
@pytest.mark.parametrize("place", [60, 150, -20])
def test_a_changed_index_does_not_load(tiny_folder: Path, tmp_path: Path, name: str, place: int) -> None:
    model = RelBERT.from_pretrained(tiny_folder)
    PairIndex.of(model, [("Paris", "France"), ("cup", "tea"), ("cats", "dogs")]).save(tmp_path / "index")
    data = bytearray((tmp_path / "index" / name).read_bytes())
    data[place] ^= 1
    (tmp_path / "index" / name).write_bytes(data)
    with pytest.raises(RelvecError, match="is not what was stored; build the index again"):
        PairIndex.load(tmp_path / "index")


@pytest.mark.parametrize("name", BUNDLED_MODELS)
def test_a_bundled_model_is_what_was_stored(name: str) -> None:
    assert check_folder(BUNDLED_MODELS[name].folder, every=True) > 2


def test_the_bundled_index_is_what_was_stored() -> None:
    assert read_meta(BUNDLED).check_files(BUNDLED, every=True) == 2
