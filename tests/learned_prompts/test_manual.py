from pathlib import Path

import pytest

from relvec import RelBERT, RelvecError
from relvec.data.rated import RatedRelation
from relvec.evaluation.validation_loss import validation_loss
from relvec.learned_prompts.objective import manual_losses
from relvec.prompts import MANUAL_TEMPLATES


@pytest.mark.parametrize("pooling", ["average", "mask"])
def test_each_template_has_the_validation_loss_of_a_model_with_it(
    tiny_folder: Path, relations: list[RatedRelation], pooling: str
) -> None:
    losses = manual_losses(tiny_folder, relations, pooling=pooling)
    assert [each.template for each in losses] == list(MANUAL_TEMPLATES.values())
    for each in losses:
        model = RelBERT.from_pretrained(tiny_folder, template=each.number, pooling=pooling)
        assert each.loss == validation_loss(model, relations)["loss"]


def test_the_base_s_own_template_is_no_obstacle(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    maskless = RelBERT.from_pretrained(tiny_folder, template="[h] and [t]", pooling="average")
    maskless.save_pretrained(tmp_path / "maskless")
    losses = [manual_losses(folder, relations, pooling="mask") for folder in (tiny_folder, tmp_path / "maskless")]
    assert losses[0] == losses[1]


def test_unknown_pooling_is_refused(tiny_folder: Path, relations: list[RatedRelation]) -> None:
    with pytest.raises(RelvecError, match="Unknown pooling"):
        manual_losses(tiny_folder, relations, pooling="max")
