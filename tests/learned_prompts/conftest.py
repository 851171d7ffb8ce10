"""A small relation dataset that the tests of learned prompts share."""

import pytest

from relvec.data.rated import RatedRelation

HEADS = ["Paris", "Tokyo", "barista", "winemaker", "cat", "ice cream", "cup", "Brazil", "o'clock", "москва", "bread"]
TAILS = ["France", "Japan", "coffee", "wine", "animal", "tea", "encyclopedia", "city", "dog", "東京", "baker"]


@pytest.fixture
def relations() -> list[RatedRelation]:
    """Nine relations in three categories, five positives each and four hard negatives, their reverses."""
    made = []
    for number in range(9):
        positives = tuple((HEADS[(number + i) % 11], TAILS[(2 * number + 3 * i) % 11]) for i in range(5))
        negatives = tuple((tail, head) for head, tail in positives[:4])
        made.append(RatedRelation(f"relation {number}", f"category {number % 3}", positives, negatives))
    return made
