"""relvec verify knows whatever relvec stores with a checksum, and notices one changed byte in it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from relvec import PairIndex, RelBERT
from relvec.bulk import embed_files
from relvec.evaluation.records import Record, save_record
from relvec.io.checksums import write_checksums
from relvec.io.vectors import write_pair_file
from relvec.storage.cache import Cache
from relvec.storage.journal import Journal

PAIRS = [("Paris", "France"), ("cup", "tea")]
VECTORS = np.random.default_rng(0).normal(size=(2, 2000)).astype(np.float32)  # most of its file


def model(folder: Path, tiny: Path) -> Path:
    shutil.copytree(tiny, folder / "model")
    write_checksums(folder / "model")
    return folder / "model" / "model.safetensors"


def index(folder: Path, tiny: Path) -> Path:
    return PairIndex.of(RelBERT.from_pretrained(tiny), PAIRS).save(folder / "index").vectors_file(folder / "index")


def shards(folder: Path, tiny: Path) -> Path:
    (folder / "pairs.csv").write_text("Paris,France\ncup,tea\n")
    embed_files(folder / "pairs.csv", folder / "shards", model=tiny, workers=1)
    return folder / "shards" / "part-00000.parquet"


def manifest(folder: Path, tiny: Path) -> Path:
    shards(folder, tiny)
    return folder / "shards" / "manifest.jsonl"


def npz(folder: Path, tiny: Path) -> Path:
    write_pair_file(folder / "vectors.npz", PAIRS, lambda start, stop: VECTORS[start:stop])
    return folder / "vectors.npz"


def parquet(folder: Path, tiny: Path) -> Path:
    write_pair_file(folder / "vectors.parquet", PAIRS, lambda start, stop: VECTORS[start:stop])
    return folder / "vectors.parquet"


def journal(folder: Path, tiny: Path) -> Path:
    Journal(folder / "history.jsonl", "job").add({"loss": 0.5, "text": "x" * 100})
    return folder / "history.jsonl"


def records(folder: Path, tiny: Path) -> Path:
    about: dict[str, Any] = {"fingerprint": "a1", "settings": {}, "metrics": {"accuracy": 50.0}}
    save_record(Record(task="analogy", system="tiny" * 30, dataset="sat", part="test", **about), folder / "runs")
    return folder / "runs" / "records.jsonl"


def cache(folder: Path, tiny: Path) -> Path:
    Cache("space", folder=folder).add({"key": bytes(200_000)})
    return folder / "cache.sqlite"


def checkpoint(folder: Path, tiny: Path) -> Path:
    torch.save({"weights": torch.zeros(1000)}, folder / "checkpoint.pt")
    return folder / "checkpoint.pt"


STORED = (model, index, shards, manifest, npz, parquet, journal, records, cache, checkpoint)


@pytest.mark.parametrize("make", STORED)
def test_what_was_stored_is_whole_until_a_byte_of_it_changes(
    make: Callable[[Path, Path], Path],
    relvec: Callable[..., Any],
    refused: Callable[..., str],
    tiny_folder: Path,
    tmp_path: Path,
) -> None:
    file = make(tmp_path, tiny_folder)
    compared = json.loads(relvec("verify", tmp_path, "--json").out)
    assert all(row["compared"] and row["state"] == "whole" for row in compared)
    assert any(file.is_relative_to(row["path"]) or file.parent == Path(row["path"]).parent for row in compared)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert file.name in refused("verify", tmp_path)


def test_what_has_no_checksums_is_not_called_whole(relvec: Callable[..., Any], tiny_folder: Path) -> None:
    (row,) = json.loads(relvec("verify", tiny_folder, "--json").out)
    assert row == {"path": str(tiny_folder), "compared": 0, "state": "no checksums are stored"}


def test_an_adapter_is_verified_with_its_base(
    relvec: Callable[..., Any], refused: Callable[..., str], tiny_folder: Path, tmp_path: Path
) -> None:
    base = model(tmp_path, tiny_folder)
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    shutil.copy(tiny_folder / "config.json", adapter)
    settings = {"peft_type": "LORA", "base_model_name_or_path": str(base.parent), "r": 2, "lora_alpha": 6}
    (adapter / "adapter_config.json").write_text(json.dumps(settings))
    write_checksums(adapter)
    compared = json.loads(relvec("verify", adapter, "--json").out)
    assert [Path(row["path"]).parent for row in compared] == [adapter, base.parent]
    base.write_bytes(b"damaged")
    assert "is not what was stored" in refused("verify", adapter)


def test_a_damaged_description_of_an_index_is_noticed(
    refused: Callable[..., str], tiny_folder: Path, tmp_path: Path
) -> None:
    meta = index(tmp_path, tiny_folder).parent / "meta.json"
    meta.write_text(meta.read_text().replace('"format"', '"gormat"'))
    assert f"{meta} cannot be read (its checksum does not match)" in refused("verify", tmp_path)
