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


@pytest.mark.parametrize("config", ['{"mine": 1}', "{"])
def test_a_configuration_that_is_no_models_makes_no_model_of_a_folder(
    tiny: RelBERT, tmp_path: Path, config: str
) -> None:
    mine = {"README.md": "My project", "config.json": config, "vocab.txt": "my words"}
    for name, content in mine.items():
        (tmp_path / name).write_text(content, encoding="latin-1")
    with pytest.raises(RelvecError, match=r"has a README\.md that is no model's; choose another folder"):
        tiny.save_pretrained(tmp_path)
    assert {path.name: path.read_text(encoding="latin-1") for path in tmp_path.iterdir()} == mine


@pytest.mark.parametrize("name", ["README.md", "vocab.txt", "model-00001-of-00002.safetensors"])
def test_a_file_with_the_name_of_a_models_is_not_lost(tiny: RelBERT, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(RelvecError, match=f"has a {name} that is no model's"):
        tiny.save_pretrained(tmp_path)
    assert (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "settings"), [("config.json", {"model_type": "bert"}), ("adapter_config.json", {"peft_type": "LORA"})]
)
def test_an_older_model_may_be_replaced(tmp_path: Path, name: str, settings: dict[str, str]) -> None:
    (tmp_path / "README.md").write_text("A model")
    (tmp_path / name).write_text(json.dumps(settings))
    check_model_output(tmp_path)


def test_a_folder_of_other_files_takes_a_model(tmp_path: Path) -> None:
    for name in ("checkpoint.pt", "history.jsonl", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "logs").mkdir()
    check_model_output(tmp_path)
