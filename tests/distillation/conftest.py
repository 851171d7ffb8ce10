"""Pairs, and a distiller, that the tests of distillation share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relvec.distillation.distiller import Distiller
from relvec.distillation.pool import Sources, make_pool
from relvec.distillation.settings import DistillationSettings
from relvec.model.cached_vectors import ModelVectors
from relvec.model.torch_backend import TorchRelBERT

WORDS = (
    *("Paris", "France", "Tokyo", "Japan", "barista", "coffee", "wine", "cup", "tea"),
    *("bread", "bone", "cat", "dog", "animal", "city", "relation", "baker", "cold"),
)
QUICK: dict[str, Any] = {"steps": 6, "batch_size": 16, "learning_rate": 3e-3, "evaluate_every": 2}


@pytest.fixture
def pairs_file(tmp_path: Path) -> Path:
    """Every word with the four that follow it in the list."""
    path = tmp_path / "pairs.txt"
    lines = [f"{head}:{tail}" for place, head in enumerate(WORDS) for tail in WORDS[place + 1 : place + 5]]
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def make_distiller(tiny_folder: Path, small_folder: Path, pairs_file: Path, tmp_path: Path) -> Callable[..., Distiller]:
    def make(output: str = "student", **changes: Any) -> Distiller:
        teacher = ModelVectors(TorchRelBERT.from_pretrained(tiny_folder, pooling="mask"), tmp_path / "cache")
        student = TorchRelBERT.from_pretrained(small_folder, template="[h] <mask> [t]", pooling="mask")
        pool = make_pool(Sources(files=(str(pairs_file),), data=()))
        settings = DistillationSettings(**QUICK | changes)
        base = str(small_folder) if settings.lora_rank else "small-bert"
        return Distiller(teacher, student, pool, settings, tmp_path / output, base=base, data="my pairs")

    return make
