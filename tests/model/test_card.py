"""The card of a model says to the hub and to people what the model is, and nothing that nobody knows."""

from typing import Any

import pytest
from huggingface_hub import ModelCard

from relvec import RelBERT
from relvec.hub.catalogue import BASE_MODELS
from relvec.model.card import model_card


def head(model: RelBERT) -> dict[str, Any]:
    """What the hub reads of the card."""
    return ModelCard(model_card(model)).data.to_dict()


@pytest.mark.parametrize(
    ("base", "hub_id"),
    [
        ("minilm", BASE_MODELS["minilm"].hub_id),
        ("relvec-mpnet", BASE_MODELS["mpnet"].hub_id),
        ("relbert/relbert-roberta-base", "relbert/relbert-roberta-base"),
    ],
)
def test_a_base_of_the_catalogue_is_named_as_the_hub_knows_it(tiny: RelBERT, base: str, hub_id: str) -> None:
    tiny.training_record = {"base": base}
    assert head(tiny)["base_model"] == hub_id


def test_a_base_that_was_itself_trained_is_shown_beside_the_language_model(tiny: RelBERT) -> None:
    tiny.training_record = {"base": "soft-prompt", "language_model": "minilm"}
    assert head(tiny)["base_model"] == BASE_MODELS["minilm"].hub_id
    assert "| base | soft-prompt |\n| language model | minilm |" in model_card(tiny)


@pytest.mark.parametrize("record", [{}, {"base": "/home/me/encoder"}])
def test_an_unknown_base_is_left_out_and_a_licence_unless_its_owner_states_it(
    tiny: RelBERT, record: dict[str, Any]
) -> None:
    tiny.training_record = record
    assert head(tiny).keys() == {"language", "library_name", "pipeline_tag", "tags"}
    tiny.training_record = {"license": "mit"}
    assert head(tiny)["license"] == "mit"


@pytest.mark.parametrize(("name", "source"), [("mine", "path/to/this/folder"), ("relvec-small", "relvec-small")])
def test_the_card_says_how_the_model_is_loaded(tiny: RelBERT, name: str, source: str) -> None:
    tiny.name = name
    assert f'RelBERT.from_pretrained("{source}")' in model_card(tiny)
