from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState

from relvec.data.rated import RatedRelation
from relvec.model.torch_backend import TorchRelBERT
from relvec.training.gradients import drops_units, gradients_by_threads
from relvec.training.losses import make_loss
from relvec.training.samplers import RelationBatches


@pytest.fixture
def _two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_two_threads")
@pytest.mark.parametrize("precision", ["no", "bf16"])
def test_threads_that_share_out_a_batch_give_the_gradient_of_one_pass(
    tiny_folder: Path, relations: list[RatedRelation], precision: str
) -> None:
    batch = RelationBatches(relations, 4, 3, 1, seed=0)(0)
    model = TorchRelBERT.from_pretrained(tiny_folder, device="cpu")
    loss = make_loss("contrastive", model.dim)
    AcceleratorState._reset_state()
    accelerator = Accelerator(mixed_precision=precision, cpu=True)

    def gradients() -> list[torch.Tensor]:
        found = [weight.grad.clone() for weight in model.encoder.parameters() if weight.grad is not None]
        model.encoder.zero_grad()
        return found

    value = gradients_by_threads(
        model, model.token_ids(batch.pairs), lambda vectors: loss(vectors[batch.row], batch), accelerator.autocast
    )
    shared = gradients()
    with accelerator.autocast():
        vectors = model.vectors_by_length(model.token_ids(batch.pairs)).float()
    expected = loss(vectors[batch.row], batch)
    expected.backward()
    plain = gradients()
    assert value == pytest.approx(float(expected.detach()), rel=1e-5 if precision == "no" else 0.05)
    assert len(shared) == len(plain) > 0
    for ours, theirs in zip(shared, plain, strict=True):
        tolerance = 1e-5 if precision == "no" else 0.1 * float(theirs.abs().max())
        torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=1e-3)


def test_a_model_that_drops_units_is_not_shared_out(tiny_folder: Path) -> None:
    encoder = TorchRelBERT.from_pretrained(tiny_folder, device="cpu").encoder
    assert not drops_units(encoder)
    assert drops_units(encoder.train())
