import json
from collections.abc import Callable
from pathlib import Path

import pytest

from relvec import RelBERT, RelvecError
from relvec.model.saving import check_model_output


def test_a_model_saved_over_another_keeps_none_of_its_tokenizer(
    tiny_folders: Callable[[str], Path], tmp_path: Path
) -> None:
    old = {
        "config.json": json.dumps({"model_type": "roberta"}),
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
    assert [name for name in old if (tmp_path / name).exists()] == ["config.json"]
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "bert"
    assert (tmp_path / "notes.model").exists()


@pytest.mark.parametrize(
    "mine",
    [
        {"README.md": "My project", "config.json": '{"mine": 1}', "vocab.txt": "my words"},
        {"vocab.txt": "my words", "config.json": "{"},
        {"model-00001-of-00002.safetensors": "mine"},
    ],
)
def test_files_with_the_names_of_a_models_are_not_lost(tiny: RelBERT, tmp_path: Path, mine: dict[str, str]) -> None:
    for name, content in mine.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(RelvecError, match=r"has a .* that is not a model's; choose another folder"):
        tiny.save_pretrained(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == mine


@pytest.mark.parametrize(
    "files",
    [
        {"README.md": "A model", "config.json": '{"model_type": "bert"}'},
        {"README.md": "A model", "adapter_config.json": '{"peft_type": "LORA"}'},
        {"checkpoint.pt": "", "history.jsonl": "", "notes.txt": ""},
    ],
)
def test_an_older_model_and_a_folder_of_other_files_take_a_model(tmp_path: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    check_model_output(tmp_path)
