"""The quick encoder gives RelBERT's vectors."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from relvec import RelBERT, RelvecError
from relvec.model.numpy_backend.model import NumpyRelBERT
from relvec.model.numpy_backend.transformer import gelu, position_bucket
from relvec.pooling import POOLINGS
from relvec.similarity import cosine

PAIRS = [
    ("Paris", "France"),
    ("ice cream", "a long name that nobody has read about, in any encyclopedia"),
    ("Tokyo", "Japan"),
    ("o'clock", "東京"),
    ("dogs' bones", "São Paulo"),
]


def both(folder: Path) -> tuple[NumpyRelBERT, RelBERT]:
    return NumpyRelBERT.from_pretrained(folder), RelBERT.from_pretrained(folder)


def assert_same(quick: NumpyRelBERT, model: RelBERT) -> None:
    expected = model.encode(PAIRS)
    found = quick.encode(PAIRS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=5e-5)  # an adapter on an adapter makes large vectors
    assert np.diag(cosine(found, expected)).min() > 0.99999


def with_settings(folder: Path, target: Path, **settings: object) -> Path:
    """A copy of a model whose prompt or pooling is another."""
    shutil.copytree(folder, target)
    config = json.loads((target / "config.json").read_text())
    config["relbert_config"] |= settings
    (target / "config.json").write_text(json.dumps(config))
    return target


@pytest.mark.parametrize("pooling", POOLINGS)
def test_vectors_are_those_of_relbert_for_every_pooling(quick_folder: Path, tmp_path: Path, pooling: str) -> None:
    folder = with_settings(quick_folder, tmp_path / "model", aggregation_mode=pooling)
    quick, model = both(folder)
    assert (quick.pooling, quick.template, quick.dim, quick.name) == (pooling, model.template, model.dim, model.name)
    assert_same(quick, model)


def test_a_long_prompt_and_a_learned_one_give_the_same_vectors(quick_folder: Path, tmp_path: Path) -> None:
    text = "I wasn’t aware of it, but I just read in the encyclopedia that [h] is the <mask> of [t], of all things"
    assert_same(*both(with_settings(quick_folder, tmp_path / "long", template=text)))
    learned = {"template": "x", "template_tokens": ["the", "<subj>", "<mask>", "of", "<obj>"]}
    assert_same(*both(with_settings(quick_folder, tmp_path / "learned", **learned)))


def test_an_encoder_that_was_never_tuned_gets_the_papers_prompt(quick_folder: Path, tmp_path: Path) -> None:
    folder = with_settings(quick_folder, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    del config["relbert_config"]
    (folder / "config.json").write_text(json.dumps(config))
    assert_same(*both(folder))


def test_adapters_are_applied_one_upon_another(quick_folder: Path, adapted: Callable[[Path], Path]) -> None:
    lower = adapted(quick_folder)
    upper = adapted(lower)
    for folder in (lower, upper):
        assert_same(*both(folder))
    plain, one, two = (NumpyRelBERT.from_pretrained(each).encode(PAIRS) for each in (quick_folder, lower, upper))
    assert np.abs(one - plain).max() > 0.01
    assert np.abs(two - one).max() > 0.01


def test_weights_of_half_precision_are_read(quick_folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = with_settings(quick_folder, tmp_path / "model")
    tensors = {name: tensor.half() for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    assert_same(*both(folder))


def test_pairs_shared_among_threads_keep_their_order(quick_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick, model = both(quick_folder)
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    many = [(f"{head} {number}", tail) for number in range(9) for head, tail in PAIRS[:3]]
    np.testing.assert_allclose(quick.encode(many), model.encode(many), atol=1e-5)


def test_comparisons_are_those_of_relbert(quick_folder: Path) -> None:
    quick, model = both(quick_folder)
    assert quick.solve(PAIRS[0], PAIRS[1:]).scores == pytest.approx(model.solve(PAIRS[0], PAIRS[1:]).scores, abs=1e-5)
    assert quick.encode(quick.prototype(PAIRS)) == pytest.approx(model.encode(model.prototype(PAIRS)), abs=1e-5)


def test_a_pair_too_long_gets_relberts_message_or_is_cut_alike(quick_folder: Path) -> None:
    quick, model = both(quick_folder)
    long = ("Paris " * 100, "France")
    with pytest.raises(RelvecError) as found:
        quick.encode(long)
    with pytest.raises(RelvecError) as expected:
        model.encode(long)
    assert str(found.value) == str(expected.value)
    np.testing.assert_allclose(quick.encode(long, truncate=True), model.encode(long, truncate=True), atol=1e-5)


def test_the_fingerprint_tells_models_apart(
    quick_folder: Path, tmp_path: Path, adapted: Callable[[Path], Path]
) -> None:
    folders = [
        quick_folder,
        adapted(quick_folder),
        with_settings(quick_folder, tmp_path / "m", aggregation_mode="mask"),
        shutil.copytree(quick_folder, tmp_path / "n"),
    ]
    config = json.loads((tmp_path / "n/config.json").read_text())
    (tmp_path / "n/config.json").write_text(json.dumps(config | {"layer_norm_eps": 0.1}))
    prints = [NumpyRelBERT.from_pretrained(folder).fingerprint for folder in folders]
    prints.append(NumpyRelBERT.from_pretrained(quick_folder, layers=1).fingerprint)
    assert len(set(prints)) == 5
    assert prints[0] == NumpyRelBERT.from_pretrained(quick_folder).fingerprint


def test_buckets_of_positions_are_those_of_mpnet() -> None:
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

    distances = np.arange(-520, 521)
    expected = MPNetEncoder.relative_position_bucket(torch.from_numpy(distances))
    np.testing.assert_array_equal(position_bucket(distances), expected.numpy())


def test_gelu_is_exact_to_float32() -> None:
    numbers = np.concatenate([np.linspace(-12, 12, 9999), [0.0]]).astype(np.float32)
    expected = torch.nn.functional.gelu(torch.from_numpy(numbers).double()).numpy()
    np.testing.assert_allclose(gelu(numbers.copy()), expected, atol=1e-6)
