import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from relvec import RelvecError
from relvec.model.adapter import is_adapter
from relvec.model.merging import average
from relvec.model.torch_backend import TorchRelBERT
from relvec.training.adapters import LEFT_OUT, add_lora, low_rank, save_low_rank

PAIRS = [("Paris", "France"), ("bread", "baker"), ("cat", "animals")]


def tuned(folder: Path, seed: int, rank: int = 2) -> TorchRelBERT:
    """The tiny model, each linear layer of its blocks changed by a random matrix of some rank."""
    model = TorchRelBERT.from_pretrained(folder)
    generator = torch.Generator().manual_seed(seed)
    for name, module in model.encoder.named_modules():
        if isinstance(module, torch.nn.Linear) and "layer" in name:
            rows, columns = module.weight.shape
            change = torch.randn(rows, rank, generator=generator) @ torch.randn(rank, columns, generator=generator)
            module.weight.data += 0.05 * change
    model.training_record = {"base": str(folder)}
    return model


def test_no_other_product_of_that_rank_is_nearer() -> None:
    generator = torch.Generator().manual_seed(0)
    change = torch.randn(6, 9, generator=generator)
    up, down = low_rank(change, 2)
    singular = torch.linalg.svdvals(change)
    torch.testing.assert_close((change - up @ down).norm(), singular[2:].norm())


@pytest.mark.parametrize("shape", [(6, 9), (9, 6)])
def test_a_change_of_lower_rank_than_asked_for_comes_out_whole(shape: tuple[int, int]) -> None:
    change = torch.zeros(shape)
    change[1, 2], change[3, 4] = 5.0, 1e-3
    up, down = low_rank(change, 5)
    assert (up.shape, down.shape) == ((shape[0], 5), (5, shape[1]))
    assert up.isfinite().all()
    assert down.isfinite().all()
    torch.testing.assert_close(up @ down, change)
    ones = torch.ones(shape)  # here the further eigenvalues are not 0, but rounding
    up, down = low_rank(ones, 5)
    torch.testing.assert_close(up.half() @ down.half(), ones.half())
    assert max(up.abs().max(), down.abs().max()) < 3


def test_an_adapter_of_enough_rank_is_the_model(tiny_folder: Path, tmp_path: Path) -> None:
    model = tuned(tiny_folder, seed=1)
    save_low_rank(model, str(tiny_folder), 2, tmp_path / "adapter")
    assert is_adapter(tmp_path / "adapter")
    loaded = TorchRelBERT.from_pretrained(tmp_path / "adapter")
    np.testing.assert_allclose(loaded.encode(PAIRS), model.encode(PAIRS), atol=5e-3)  # it is saved in half precision
    assert not np.allclose(loaded.encode(PAIRS), TorchRelBERT.from_pretrained(tiny_folder).encode(PAIRS), atol=0.05)


def test_too_small_a_rank_loses_something(tiny_folder: Path, tmp_path: Path) -> None:
    model = tuned(tiny_folder, seed=1)
    save_low_rank(model, str(tiny_folder), 1, tmp_path / "adapter")
    loaded = TorchRelBERT.from_pretrained(tmp_path / "adapter")
    assert np.abs(loaded.encode(PAIRS) - model.encode(PAIRS)).max() > 0.02
    assert 0.01 < loaded.training_record["metrics"][LEFT_OUT] < 1


def test_peft_reads_the_adapter(tiny_folder: Path, tmp_path: Path) -> None:
    from peft import PeftModel

    model = tuned(tiny_folder, seed=1)
    save_low_rank(model, str(tiny_folder), 2, tmp_path / "adapter")
    base = TorchRelBERT.from_pretrained(tiny_folder)
    PeftModel.from_pretrained(base.encoder, str(tmp_path / "adapter"))
    np.testing.assert_allclose(base.encode(PAIRS), model.encode(PAIRS), atol=5e-3)


def test_without_peft_an_adapter_asks_for_it(tiny: TorchRelBERT, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(RelvecError, match=r"pip install 'relvec\[train\]'"):
        add_lora(tiny.encoder, 2)


def test_a_model_that_is_its_base_has_nothing_to_adapt(tiny_folder: Path, tmp_path: Path) -> None:
    model = TorchRelBERT.from_pretrained(tiny_folder)
    with pytest.raises(RelvecError, match="nothing to adapt"):
        save_low_rank(model, str(tiny_folder), 2, tmp_path / "adapter")


def test_the_record_says_what_share_of_the_change_was_left_out(tiny_folder: Path, tmp_path: Path) -> None:
    model = tuned(tiny_folder, seed=1)
    save_low_rank(model, str(tiny_folder), 2, tmp_path / "whole")
    assert "metrics" not in TorchRelBERT.from_pretrained(tmp_path / "whole").training_record
    before = TorchRelBERT.from_pretrained(tiny_folder).encoder.state_dict()
    linears = sum(float((w - before[name]).square().sum()) for name, w in model.encoder.state_dict().items())
    bias = model.encoder.get_parameter("encoder.layer.0.attention.self.query.bias")
    with torch.no_grad():
        bias.add_((linears / bias.numel()) ** 0.5)  # as much as all that was changed before
    save_low_rank(model, str(tiny_folder), 2, tmp_path / "half")
    assert TorchRelBERT.from_pretrained(tmp_path / "half").training_record["metrics"] == {LEFT_OUT: 0.5}
    assert "metrics" not in model.training_record


def test_a_model_with_tokens_of_its_own_cannot_become_an_adapter(tiny_folder: Path, tmp_path: Path) -> None:
    model = tuned(tiny_folder, seed=1)
    model.tokenizer.add_tokens(["<v0>"])
    model.encoder.resize_token_embeddings(len(model.tokenizer))
    with pytest.raises(RelvecError, match="another vocabulary"):
        save_low_rank(model, str(tiny_folder), 2, tmp_path / "adapter")


def test_the_average_has_the_mean_of_the_weights(tiny_folder: Path) -> None:
    name = "encoder.layer.0.attention.self.query.weight"
    models = [tuned(tiny_folder, seed) for seed in range(3)]
    expected = torch.stack([model.encoder.get_parameter(name).detach() for model in models]).mean(dim=0)
    torch.testing.assert_close(average(models).encoder.get_parameter(name).detach(), expected)


def test_models_that_do_not_agree_have_no_average(tiny_folder: Path, tiny_folders: Callable[[str], Path]) -> None:
    model = TorchRelBERT.from_pretrained(tiny_folder)
    with pytest.raises(RelvecError, match="prompt or pooling"):
        average([model, TorchRelBERT.from_pretrained(tiny_folder, pooling="mask")])
    other = TorchRelBERT.from_pretrained(tiny_folders("bert"), template=model.template, pooling=model.pooling)
    with pytest.raises(RelvecError, match="architecture"):
        average([model, other])


def test_the_average_names_the_data_of_all(tiny_folder: Path) -> None:
    models = [TorchRelBERT.from_pretrained(tiny_folder) for _ in range(4)]
    for model, data in zip(models, ("mine.csv", "yours.csv", "mine.csv"), strict=False):
        model.training_record = {"data": data}
    assert average(models).training_record["data"] == "mine.csv; yours.csv"
