"""A small relation dataset that the tests of training share."""

import pytest

from relvec.data.rated import RatedRelation

WORDS = {
    "opposites/hot": ["hot:cold", "big:small", "up:down", "old:young", "wet:dry", "fast:slow"],
    "opposites/buyer": ["buyer:seller", "host:guest", "giver:taker", "doctor:patient", "king:subject", "boss:worker"],
    "kinds/oak": ["oak:tree", "rose:flower", "cat:animal", "tea:drink", "red:color", "car:vehicle"],
    "kinds/tree": ["tree:pine", "flower:lily", "animal:dog", "drink:milk", "color:blue", "vehicle:bus"],
    "makers/baker": ["baker:bread", "barista:coffee", "poet:poem", "potter:vase", "tailor:suit", "brewer:beer"],
    "makers/cook": ["cook:kitchen", "judge:court", "nurse:hospital", "monk:abbey", "clerk:office", "actor:stage"],
}


def _pairs(texts: list[str]) -> tuple[tuple[str, str], ...]:
    return tuple((head, tail) for head, tail in (text.split(":") for text in texts))


@pytest.fixture
def relations() -> list[RatedRelation]:
    """Six relations in three categories, six positives each, and their reverses as hard negatives."""
    made = []
    for name, texts in WORDS.items():
        positives = _pairs(texts)
        made.append(RatedRelation(name, name.split("/")[0], positives, tuple((t, h) for h, t in positives)))
    return made
