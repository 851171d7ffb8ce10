from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from relvec import RelvecError
from relvec.learned_prompts.ptuning import TriggerEncoder, add_tokens, embedding_table, rows_replaced
from relvec.model.torch_backend import TorchRelBERT
from relvec.prompts import Template

WORDS = ["Paris", " Paris", "ice cream", "o'clock", "東京", "relvec-1", "<relvec", "a<b", "-less", " é"]
PAIRS = [("Paris", "France"), ("ice cream", "tea"), ("dogs'", "o'clock")]


def with_new_tokens(folder: Path) -> tuple[TorchRelBERT, list[int]]:
    """A model whose prompt is four new tokens around the words."""
    base = TorchRelBERT.from_pretrained(folder)
    names = add_tokens(base.encoder, base.tokenizer, 4)
    template = Template.from_tokens([*names[:2], "[h]", names[2], "[t]", names[3]])
    return TorchRelBERT(base.encoder, base.tokenizer, template), [base.tokenizer.get_vocab()[name] for name in names]


def rows_for(model: TorchRelBERT) -> torch.Tensor:
    return torch.randn(4, embedding_table(model.encoder).embedding_dim, generator=torch.Generator().manual_seed(1))


def test_new_tokens_change_no_weight_and_no_word(any_folder: Path) -> None:
    base = TorchRelBERT.from_pretrained(any_folder)
    model, ids = with_new_tokens(any_folder)
    for name, weight in base.encoder.state_dict().items():
        torch.testing.assert_close(model.encoder.state_dict()[name][: len(weight)], weight, atol=0, rtol=0)
    assert ids == list(range(len(base.tokenizer), len(base.tokenizer) + 4))
    assert model.tokenizer(WORDS)["input_ids"] == base.tokenizer(WORDS)["input_ids"]


def test_the_template_as_text_gives_the_tokens_of_the_template(any_folder: Path) -> None:
    model, _ = with_new_tokens(any_folder)
    sentences = [model.template.fill(pair) for pair in PAIRS]
    assert model.tokenizer(sentences)["input_ids"] == model.token_ids(PAIRS)


def test_replaced_rows_act_as_written_ones(any_folder: Path) -> None:
    model, ids = with_new_tokens(any_folder)
    rows = rows_for(model)
    plain = model.encode(PAIRS)
    with rows_replaced(model.encoder, ids, rows):
        replaced = model.encode(PAIRS)
    np.testing.assert_array_equal(model.encode(PAIRS), plain)
    embedding_table(model.encoder).weight.data[ids] = rows
    np.testing.assert_array_equal(model.encode(PAIRS), replaced)
    assert np.abs(replaced - plain).max() > 1e-3


def test_gradients_reach_replaced_rows_and_agree_with_finite_differences(any_folder: Path) -> None:
    model, ids = with_new_tokens(any_folder)
    model.encoder.double().requires_grad_(False)
    tokens = model.token_ids(PAIRS)

    def value(rows: torch.Tensor) -> torch.Tensor:
        with rows_replaced(model.encoder, ids, rows):
            return model.vectors_of_tokens(tokens).square().sum()

    rows = rows_for(model).double().requires_grad_()
    assert torch.autograd.gradcheck(value, (rows,), eps=1e-6, atol=1e-4)


def test_a_saved_model_loads_in_plain_transformers(any_folder: Path, tmp_path: Path) -> None:
    model, ids = with_new_tokens(any_folder)
    rows = rows_for(model)
    embedding_table(model.encoder).weight.data[ids] = rows
    model.save_pretrained(tmp_path / "saved")
    encoder, tokenizer = (
        AutoModel.from_pretrained(tmp_path / "saved"),
        AutoTokenizer.from_pretrained(tmp_path / "saved"),
    )
    assert encoder.config.vocab_size == len(tokenizer) == ids[-1] + 1
    torch.testing.assert_close(encoder.get_input_embeddings().weight[ids], rows, atol=0, rtol=0)
    sentences = [model.template.fill(pair) for pair in PAIRS]
    assert tokenizer(sentences)["input_ids"] == model.token_ids(PAIRS)


def test_names_in_use_are_passed_over(tiny: TorchRelBERT) -> None:
    assert add_tokens(tiny.encoder, tiny.tokenizer, 1) == ["<relvec-1>"]
    assert add_tokens(tiny.encoder, tiny.tokenizer, 2) == ["<relvec-2>", "<relvec-3>"]


def test_spare_rows_of_an_encoder_are_used(tiny: TorchRelBERT) -> None:
    tiny.encoder.resize_token_embeddings(len(tiny.tokenizer) + 3, mean_resizing=False)
    names = add_tokens(tiny.encoder, tiny.tokenizer, 2)
    assert embedding_table(tiny.encoder).num_embeddings == len(tiny.tokenizer) + 1
    assert tiny.tokenizer.convert_tokens_to_ids(names) == [len(tiny.tokenizer) - 2, len(tiny.tokenizer) - 1]


def test_embeddings_that_are_scaled_when_read_are_refused(tiny: TorchRelBERT) -> None:
    class Scaled(torch.nn.Embedding):
        pass

    tiny.encoder.set_input_embeddings(Scaled(10, 16))
    with pytest.raises(RelvecError, match="no plain table"):
        embedding_table(tiny.encoder)


@pytest.mark.parametrize("size", [8, 7])
def test_triggers_start_around_the_given_embedding_at_the_scale_of_the_vocabulary(size: int) -> None:
    vocabulary = 0.05 * torch.randn(200, size)
    embeddings = TriggerEncoder(6, vocabulary, start=vocabulary[3] + 1)().detach()
    assert embeddings.shape == (6, size)
    assert float((embeddings - vocabulary[3] - 1).square().mean().sqrt()) == pytest.approx(0.05, rel=0.1)


def test_the_seed_alone_decides_what_is_drawn() -> None:
    vocabulary = torch.randn(50, 8)
    state = torch.random.get_rng_state()
    first, again, other = (TriggerEncoder(3, vocabulary, vocabulary[0], seed)() for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_every_trigger_knows_its_neighbours() -> None:
    vocabulary = torch.randn(50, 8)
    encoder = TriggerEncoder(4, vocabulary, vocabulary[0])
    encoder()[0].sum().backward()
    assert encoder.inputs.grad is not None
    assert bool((encoder.inputs.grad.abs().sum(dim=1) > 0).all())
