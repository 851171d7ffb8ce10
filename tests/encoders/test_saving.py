import json
from collections.abc import Callable
from pathlib import Path

from relvec import RelBERT


def test_a_model_saved_over_another_keeps_none_of_its_tokenizer(
    tiny_folders: Callable[[str], Path], tmp_path: Path
) -> None:
    old = {
        "special_tokens_map.json": json.dumps({"mask_token": "<mask>", "pad_token": "<pad>"}),
        "added_tokens.json": json.dumps({"<old>": 5}),
        "merges.txt": "#version: 0.2\n",
        "sentencepiece.bpe.model": "",
        "spiece.model": "",
    }
    for name, content in {**old, "notes.model": "mine"}.items():
        (tmp_path / name).write_text(content)
    model = RelBERT.from_pretrained(tiny_folders("bert"))
    model.save_pretrained(tmp_path)
    assert RelBERT.from_pretrained(tmp_path).fingerprint == model.fingerprint
    assert not [name for name in old if (tmp_path / name).exists()]
    assert (tmp_path / "notes.model").exists()
