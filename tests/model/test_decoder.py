"""Decoders as relation encoders: a tiny Qwen2, read at its last token, some of its layers, trained as an adapter."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedTokenizerFast, Qwen2Config

from relvec import RelBERT, RelvecError
from relvec.data.rated import RatedRelation, split
from relvec.model.torch_backend import READ_AS_TREES, TorchRelBERT
from relvec.training.recipe import Recipe
from relvec.training.trainer import Trainer

TEMPLATE = "[h] is to [t] as"
PAIRS = [("baker", "bread"), ("a very long head", "bread"), ("oak", "tree")]


@pytest.fixture(scope="module")
def decoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four layers and byte-level tokens."""
    folder = tmp_path_factory.mktemp("decoder")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<end>"], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(["baker is to bread as brewer is to beer"], trainer)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>").save_pretrained(folder)
    config = Qwen2Config(
        vocab_size=400,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=4,
        num_attention_heads=2,
        num_key_value_heads=1,
    )
    torch.manual_seed(0)
    AutoModel.from_config(config).save_pretrained(folder)
    return folder


def test_a_pair_has_the_same_vector_alone_and_beside_a_longer_one(decoder_folder: Path) -> None:
    model = TorchRelBERT.from_pretrained(decoder_folder, template=TEMPLATE, pooling="last")
    alone = np.stack([model.encode(pair) for pair in PAIRS])
    np.testing.assert_allclose(model.encode(PAIRS), alone, atol=1e-5)
    assert model.encode(PAIRS[0]).shape == (16,)


@pytest.mark.parametrize("kind", sorted(READ_AS_TREES))
def test_shared_prefixes_are_read_once_and_the_vectors_stay_the_same(decoder_folder: Path, kind: str) -> None:
    sizes = {"vocab_size": 400, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "pad_token_id": 0}
    torch.manual_seed(0)
    encoder = AutoModel.from_config(AutoConfig.for_model(kind, **sizes, **heads, sliding_window=None))
    tokenizer = AutoTokenizer.from_pretrained(decoder_folder)
    model = TorchRelBERT(encoder, tokenizer, template=TEMPLATE, pooling="last")
    pairs = [(head, tail) for tail in ("bread", "breads", "b") for head in ("baker", "bakery", "oak")]
    token_ids = model.token_ids(pairs)
    whole = model.vectors_of_tokens(token_ids).detach().numpy()
    read: list[int] = []
    model.encoder.register_forward_pre_hook(
        lambda _, args, inputs: read.append(inputs["input_ids"].numel()), with_kwargs=True
    )
    np.testing.assert_allclose(model.encode(pairs), whole, atol=1e-5)
    assert sum(read) < 0.7 * sum(map(len, token_ids))


def test_what_does_not_see_all_before_is_read_whole(decoder_folder: Path, tiny_folder: Path) -> None:
    def is_shared(folder: Path, pooling: str, window: int | None = None) -> bool:
        model = TorchRelBERT.from_pretrained(folder, template=TEMPLATE, pooling=pooling)
        model.encoder.config.sliding_window = window
        return model.shares_prefixes

    assert is_shared(decoder_folder, "last")
    assert not is_shared(decoder_folder, "last", window=4)
    assert not is_shared(decoder_folder, "average")
    assert not is_shared(tiny_folder, "last")


@pytest.mark.parametrize("template", [TEMPLATE, "[t] is to [h] as"])
def test_pairs_that_begin_alike_are_encoded_together(decoder_folder: Path, template: str) -> None:
    model = TorchRelBERT.from_pretrained(decoder_folder, template=template, pooling="last")
    pairs = [("baker", "bread"), ("oak", "tree"), ("baker", "tree"), ("oak", "bread")]
    first = 1 if template.startswith("[t]") else 0
    words = [pairs[row][first] for row in model.encoding_order(pairs)]
    assert words[0] == words[1] != words[2] == words[3]


def test_the_last_token_is_the_templates_and_has_seen_both_words(decoder_folder: Path) -> None:
    model = TorchRelBERT.from_pretrained(decoder_folder, template=TEMPLATE, pooling="last")
    (tokens,) = model.token_ids([PAIRS[0]])
    output = model.encoder(input_ids=torch.tensor([tokens])).last_hidden_state
    np.testing.assert_allclose(model.encode(PAIRS[0]), output[0, -1].detach().numpy(), atol=1e-5)
    assert not np.allclose(model.encode(PAIRS[0]), model.encode(("brewer", "bread")))
    assert not np.allclose(model.encode(PAIRS[0]), model.encode(("bread", "baker")))


def test_the_lowest_layers_are_those_of_the_base(decoder_folder: Path) -> None:
    whole, part = (TorchRelBERT.from_pretrained(decoder_folder, template=TEMPLATE, layers=n) for n in (0, 2))
    assert part.encoder.config.num_hidden_layers == 2
    for name, weight in part.encoder.named_parameters():
        assert torch.equal(weight, whole.encoder.get_parameter(name))
    with pytest.raises(RelvecError, match="4 layers, fewer than 5"):
        TorchRelBERT.from_pretrained(decoder_folder, template=TEMPLATE, layers=5)
    with pytest.raises(RelvecError, match="A base of -1 layers is impossible; keep 1 or more, or 0 for all"):
        TorchRelBERT.from_pretrained(decoder_folder, template=TEMPLATE, layers=-1)


def test_layers_are_cut_under_whatever_name_an_architecture_counts_them(
    tiny_folders: Callable[[str], Path], tmp_path: Path
) -> None:
    whole, part = (RelBERT.from_pretrained(tiny_folders("distilbert"), backend="torch", layers=n) for n in (0, 1))
    part.save_pretrained(tmp_path / "part")
    assert not np.allclose(part.encode(PAIRS[0]), whole.encode(PAIRS[0]))
    opened = TorchRelBERT.from_pretrained(tmp_path / "part")
    np.testing.assert_allclose(opened.encode(PAIRS[0]), part.encode(PAIRS[0]), atol=1e-5)
    with pytest.raises(RelvecError, match="The base has 2 layers, fewer than 3"):
        TorchRelBERT.from_pretrained(tiny_folders("distilbert"), layers=3)


@pytest.mark.parametrize("base_dtype", ["float32", "bfloat16"])
def test_an_adapter_of_some_layers_opens_again_over_the_whole_base(
    decoder_folder: Path, tmp_path: Path, base_dtype: str
) -> None:
    words = ("baker:bread", "brewer:beer", "potter:vase", "poet:poem", "cook:meal", "tailor:suit")
    positives = tuple((head, tail) for head, tail in (text.split(":") for text in words))
    makers = RatedRelation("makers", "", positives, ())
    relations = [makers, replace(makers, name="made", positives=tuple((t, h) for h, t in positives))]
    recipe = Recipe().changed(
        {
            "base": str(decoder_folder),
            "template": TEMPLATE,
            "pooling": "last",
            "layers": 2,
            "lora_rank": 2,
            "base_dtype": base_dtype,
            "mixed_precision": "bf16" if base_dtype == "bfloat16" else "no",
            "scrambled_negatives_per_relation": 1,
            "flip_relations": True,
            "steps": 8,
            "evaluate_every": 4,
        }
    )
    model = TorchRelBERT.from_pretrained(
        decoder_folder, template=TEMPLATE, pooling="last", layers=2, dtype=recipe.base_dtype
    )
    trainer = Trainer(model, split(relations, "train"), split(relations, "valid"), recipe, tmp_path / "trained")
    assert {weight.dtype for weight in trainer.weights.values()} == {torch.float32}
    trainer.fit(show_progress=False)
    config = json.loads((tmp_path / "trained" / "config.json").read_text())
    assert config["num_hidden_layers"] == len(config["layer_types"]) == 2
    opened = TorchRelBERT.from_pretrained(tmp_path / "trained")
    assert (opened.pooling, opened.template.text) == ("last", TEMPLATE)
    np.testing.assert_allclose(
        opened.encode(PAIRS), model.encode(PAIRS), atol=0.1 if base_dtype == "bfloat16" else 1e-2
    )
