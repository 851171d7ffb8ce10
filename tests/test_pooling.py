import pytest
import torch

from relvec.errors import RelvecError
from relvec.pooling import POOLINGS, check_pooling, pool

OUTPUT = torch.arange(24, dtype=torch.float32).reshape(2, 4, 3)
IS_TOKEN = torch.tensor([[True, True, True, True], [True, True, True, False]])
IS_MASK = torch.tensor([[False, True, False, True], [False, False, True, False]])
COUNTED = {
    "average": ([0, 1, 2, 3], [0, 1, 2]),
    "average_no_mask": ([0, 2], [0, 1]),
    "mask": ([1, 3], [2]),
    "last": ([3], [2]),
}


@pytest.mark.parametrize("name", POOLINGS)
def test_pooling_is_the_mean_of_the_counted_tokens(name: str) -> None:
    expected = torch.stack([OUTPUT[row, tokens].mean(dim=0) for row, tokens in enumerate(COUNTED[name])])
    torch.testing.assert_close(pool(name, OUTPUT, IS_TOKEN, IS_MASK), expected)


@pytest.mark.parametrize("given", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_the_mean_has_32_bits_or_more(given: torch.dtype) -> None:
    near_one = torch.tensor([[[1.0], [1.0078125]]]).to(given)  # neighbours in bfloat16: their mean is not there
    pooled = pool("average", near_one, torch.ones(1, 2, dtype=torch.bool), torch.zeros(1, 2, dtype=torch.bool))
    assert pooled.dtype == (torch.float64 if given == torch.float64 else torch.float32)
    assert pooled.item() == pytest.approx(1.00390625)


def test_an_unknown_pooling_is_refused() -> None:
    with pytest.raises(RelvecError, match="average, average_no_mask, mask"):
        check_pooling("cls")
