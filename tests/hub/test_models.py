from pathlib import Path

import pytest

from relvec.errors import RelvecError
from relvec.hub.catalogue import BUNDLED_MODELS
from relvec.hub.models import resolve


@pytest.mark.parametrize("name", BUNDLED_MODELS)
def test_a_bundled_model_is_in_the_package(name: str) -> None:
    model = BUNDLED_MODELS[name]
    whole = "model.int8.safetensors" if model.base else "model.safetensors"
    assert (resolve(name) / (whole if model.is_whole else "adapter_model.safetensors")).is_file()


def test_a_folder_wins_over_a_hub_id(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny_folder.parent)
    assert resolve(tiny_folder.name) == Path(tiny_folder.name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("relvec-mpent", "did you mean 'relvec-mpnet'"),
        ("nobody/nothing", "see `relvec models`"),
        ("./missing/folder", "There is no model folder"),
        ("a/b/c", "There is no model folder"),
        ("~no-such-user/model", "There is no model folder"),
    ],
)
def test_an_unknown_model_gets_one_sentence_with_a_hint(name: str, message: str) -> None:
    with pytest.raises(RelvecError, match=message):
        resolve(name)
