from dataclasses import replace

import pytest

from relvec.data.rated import (
    RatedPair,
    RatedRelation,
    check_relations,
    exclude,
    select,
    split,
)
from relvec.errors import RelvecError


def rated(*scores: float, relation: str = "r", category: str = "") -> list[RatedPair]:
    """Pairs h0:t0, h1:t1, ... with these scores."""
    return [RatedPair(relation, category, (f"h{n}", f"t{n}"), score, f"line {n}: ") for n, score in enumerate(scores)]


def relation(name: str, category: str = "", positives: int = 2, negatives: int = 0) -> RatedRelation:
    good = tuple((f"{name}{n}", "good") for n in range(positives))
    return RatedRelation(name, category, good, tuple((f"{name}{n}", "bad") for n in range(negatives)))


def heads(pairs: tuple[tuple[str, str], ...]) -> list[str]:
    return [head for head, _ in pairs]


def test_rank_takes_both_ends_in_ascending_order() -> None:
    (found,) = select(rated(5, 1, 4, 2, 3, 6), top=2, bottom=2)
    assert heads(found.negatives) == ["h1", "h3"]
    assert heads(found.positives) == ["h0", "h5"]


def test_ties_keep_the_order_of_the_rows() -> None:
    (found,) = select(rated(2, 1, 1, 2, 1, 2), top=2, bottom=2)
    assert heads(found.negatives) == ["h1", "h2"]
    assert heads(found.positives) == ["h3", "h5"]


@pytest.mark.parametrize(("count", "positives", "negatives"), [(2, 2, 0), (9, 9, 0), (12, 10, 2), (25, 10, 10)])
def test_positives_win_where_pairs_are_few(count: int, positives: int, negatives: int) -> None:
    (found,) = select(rated(*range(count)))
    assert (len(found.positives), len(found.negatives)) == (positives, negatives)
    assert not set(found.positives) & set(found.negatives)


def test_threshold_divides_all_pairs() -> None:
    (found,) = select(rated(0.5, 0.4, 0.9, 0.1), top=2, bottom=0, threshold=0.5)
    assert heads(found.positives) == ["h0", "h2"]
    assert heads(found.negatives) == ["h3", "h1"]


def test_a_negative_scores_lower_than_every_positive() -> None:
    (found,) = select(rated(*[1] * 20, 0, 0))
    assert heads(found.negatives) == ["h20", "h21"]


def test_equal_scores_make_no_negatives() -> None:
    (found,) = select(rated(*[1] * 30))
    assert (len(found.positives), found.negatives) == (30, ())


def test_relations_keep_their_order_and_category() -> None:
    rows = rated(1, 2, relation="b", category="x") + rated(1, 2, relation="a")
    assert [(found.name, found.category) for found in select(rows)] == [("b", "x"), ("a", "")]


@pytest.mark.parametrize("given", [0, 1, 2])
def test_as_many_positives_are_asked_for_as_are_enough(given: int) -> None:
    few = select(rated(*range(5)), threshold=5 - given)
    others = [relation("a", positives=3)]
    with pytest.raises(RelvecError, match=rf"'r': has {given} positives, 3 are needed \(1 held out\)"):
        check_relations([*others, *few])
    check_relations([*others, *select(rated(*range(5)), threshold=2)])


def test_a_pair_rated_twice_is_refused() -> None:
    with pytest.raises(RelvecError, match="line 0: h0:t0 is rated twice in relation 'r'"):
        select(rated(1, 2) + rated(3))


def test_a_relation_in_two_categories_is_refused() -> None:
    with pytest.raises(RelvecError, match="'x' and 'y'"):
        select(rated(1, category="x") + rated(1, category="y"))


def test_split_gives_eight_and_two_of_ten() -> None:
    (train,), (valid,) = (split([relation("r", positives=10, negatives=20)], part) for part in ("train", "valid"))
    assert heads(train.positives) == ["r1", "r2", "r3", "r4", "r5", "r6", "r7", "r9"]
    assert heads(valid.positives) == ["r0", "r8"]
    assert heads(valid.negatives) == ["r0", "r8"]


def test_training_and_validation_share_no_pair_and_lose_none() -> None:
    whole = relation("r", positives=37, negatives=13)
    (train,), (valid,) = (split([whole], part) for part in ("train", "valid"))
    assert sorted(train.positives + valid.positives) == sorted(whole.positives)
    assert sorted(train.negatives + valid.negatives) == sorted(whole.negatives)


def test_sound_relations_pass() -> None:
    categories = {"a": "x", "b": "x", "c": "y", "d": "y", "e": ""}
    relations = [relation(name, category, positives=3) for name, category in categories.items()]
    check_relations(relations)


SOUND = relation("a", positives=3, negatives=1)


@pytest.mark.parametrize(
    ("relations", "message"),
    [
        ([], "nothing to tell apart"),
        ([relation("a", positives=5, negatives=0)], "nothing to tell apart"),
        ([relation("a", positives=3), relation("a", positives=3)], "'a': is the name of 2 relations"),
        (
            [replace(SOUND, positives=(*SOUND.positives, SOUND.positives[0]))],
            "Relation 'a': a0:good is twice positive; see `relvec data check`",
        ),
        ([replace(SOUND, negatives=SOUND.negatives * 2)], "a0:bad is twice negative"),
        ([replace(SOUND, negatives=SOUND.positives[1:])], "a1:good is both positive and negative"),
        ([relation("a", positives=3), relation("b", positives=2)], "'b': has 2 positives, 3 are needed"),
    ],
)
def test_unsound_relations_are_refused(relations: list[RatedRelation], message: str) -> None:
    with pytest.raises(RelvecError, match=message):
        check_relations(relations)


def test_what_the_data_holds_out_is_held_out_and_nothing_else() -> None:
    whole = relation("r", positives=5, negatives=3)
    whole = replace(whole, held_out=whole.positives[3:])
    (train,), (valid,) = (split([whole], part) for part in ("train", "valid"))
    assert (train.positives, valid.positives) == (whole.positives[:3], whole.positives[3:])
    assert (train.negatives, valid.negatives) == (whole.negatives[1:], whole.negatives[:1])  # nothing is said of them


def test_positives_that_are_all_held_out_are_refused() -> None:
    whole = relation("r", positives=5)
    with pytest.raises(RelvecError, match=r"'r': has 5 positives, 6 are needed \(4 held out\)"):
        check_relations([relation("a", positives=3), replace(whole, held_out=whole.positives[:4])])


def test_exclude_leaves_out_categories_and_names() -> None:
    relations = [relation("a", "x"), relation("b", "x"), relation("c", "y"), relation("d")]
    assert [left.name for left in exclude(relations, categories=["x"], names=["c"])] == ["d"]
    assert exclude(relations) == relations


def test_excluding_the_unknown_suggests_the_known() -> None:
    relations = [relation("capital-of", "places")]
    with pytest.raises(RelvecError, match="Unknown relation 'captial-of'; did you mean 'capital-of'"):
        exclude(relations, names=["captial-of"])
    with pytest.raises(RelvecError, match="Unknown category 'zzz'; choose one of places"):
        exclude(relations, categories=["zzz"])
