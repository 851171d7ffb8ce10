"""Saving an encoder and its tokenizer so that older releases of transformers read them too."""

import json
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from relvec.encoders.loading import quiet_transformers

TOKENIZER_CONFIG = "tokenizer_config.json"

# What an older model may have left in a folder that a new one is saved to.
MODEL_FILES = (
    "*.safetensors",
    "*.safetensors.index.json",
    "pytorch_model*.bin",
    "*config.json",
    "tokenizer*",
    "vocab*",
)


def save_encoder(encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write a plain encoder folder: safetensors, configuration, tokenizer."""
    with quiet_transformers():
        encoder.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    path = folder / TOKENIZER_CONFIG
    settings = older_spelling(json.loads(path.read_text(encoding="utf-8")))
    path.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def older_spelling(settings: dict[str, Any]) -> dict[str, Any]:
    """A tokenizer's settings in the spelling that transformers 4 wrote and both 4 and 5 read.

    >>> older_spelling({"tokenizer_class": "TokenizersBackend", "extra_special_tokens": ["<v0>"], "is_local": True})
    {'tokenizer_class': 'PreTrainedTokenizerFast', 'additional_special_tokens': ['<v0>']}
    """
    kept = {name: value for name, value in settings.items() if name not in ("is_local", "local_files_only")}
    if kept.get("tokenizer_class") == "TokenizersBackend":
        kept["tokenizer_class"] = "PreTrainedTokenizerFast"
    if isinstance(kept.get("extra_special_tokens"), list):
        kept["additional_special_tokens"] = kept.pop("extra_special_tokens")
    return kept
