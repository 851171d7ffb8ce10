"""A teacher, a student of half its dimension, and pairs that the tests of distillation share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel, BertConfig

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


@pytest.fixture(scope="session")
def small_folder(tiny_folders: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain BERT of 8 dimensions; the tiny teacher has 16."""
    tokenizer = TorchRelBERT.from_pretrained(tiny_folders("bert")).tokenizer
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=66,
        pad_token_id=tokenizer.pad_token_id,
    )
    folder = tmp_path_factory.mktemp("small") / "small-bert"
    torch.manual_seed(1)
    encoder = AutoModel.from_config(config)
    with torch.no_grad():
        for name, weight in encoder.named_parameters():
            if "norm" not in name.lower():
                weight.normal_(0, 0.5)
    encoder.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


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
        pool = make_pool(Sources(files=(str(pairs_file),)))
        settings = DistillationSettings(**QUICK | changes)
        base = str(small_folder) if settings.lora_rank else "small-bert"
        return Distiller(teacher, student, pool, settings, tmp_path / output, base=base, data="my pairs")

    return make
