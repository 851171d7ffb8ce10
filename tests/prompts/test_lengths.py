import pytest

from relvec import RelvecError
from relvec.prompts.learned import Lengths, parse_grid


def test_the_paper_s_grid_has_eight_combinations() -> None:
    assert len(parse_grid("8-9,1-2,1-2")) == 8
    assert parse_grid("8,2,2") == [Lengths(8, 2, 2)]


@pytest.mark.parametrize("text", ["8,2", "8,2,2,2", "a,b,c", "8;2;2", "", "-1,2,2", "9-8,1,1", "0,0,0", "8-9,1,1"])
def test_lengths_that_are_no_three_numbers_are_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(RelvecError, match=r"^The lengths|^A prompt") as error:
        Lengths.parse(text)
    assert str(error.value).count(". ") == 0


def test_triggers_stand_before_between_and_after_the_words() -> None:
    assert Lengths(2, 1, 0).arranged(["a", "b", "c"]) == ["a", "b", "[h]", "c", "[t]"]
