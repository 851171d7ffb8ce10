"""Rated pairs become relations: positives and negatives, a training and a validation part."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from relvec.errors import RelvecError, one_of
from relvec.io.tables import Part as Part
from relvec.pairs import Pair

TOP = 10
BOTTOM = 10
_VALIDATION_PLACES = (0, 8)
_TRAINING_POSITIVES = 2  # to compare
SHOWN_ROWS = 20


@dataclass(frozen=True)
class RatedPair:
    """How well a pair fits a relation; the higher, the better. `where` starts the errors about it."""

    relation: str
    category: str
    pair: Pair
    score: float
    where: str


@dataclass(frozen=True)
class RatedRelation:
    """A relation by its good examples and its bad ones; the category is empty if it belongs to none.

    `held_out` are those pairs of both kinds that the data keeps for validation, if it says so. A symmetric relation
    holds in both directions; one for testing is held out as a whole. `definition` and `sentence` say what the relation
    of X to Y is; the sentence reads as English when a head and a tail stand for X and Y.
    """

    name: str
    category: str
    positives: tuple[Pair, ...]
    negatives: tuple[Pair, ...]
    definition: str = ""
    held_out: tuple[Pair, ...] = ()
    is_symmetric: bool = False
    is_for_testing: bool = False
    sentence: str = ""

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return (*self.positives, *self.negatives)

    @cached_property
    def known_positives(self) -> frozenset[Pair]:
        """The positives, in both orders if the relation is symmetric."""
        turned = [(tail, head) for head, tail in self.positives] if self.is_symmetric else []
        return frozenset((*self.positives, *turned))


def select(
    rows: Iterable[RatedPair],
    held_out: Iterable[RatedPair] = (),
    *,
    top: int = TOP,
    bottom: int = BOTTOM,
    threshold: float | None = None,
) -> list[RatedRelation]:
    """Positives and negatives of each relation, in ascending order of the score; ties keep the order of the rows.

    By rank, the last `top` are positive and the first `bottom` negative; where there are fewer, positives are
    filled first, and a negative always scores lower than every positive. By `threshold`, a score that reaches it is
    positive and any other negative. Without a threshold, all pairs of a relation whose scores are equal (or were not
    given) are positive.

    Pairs that are `held_out` take the place of no other: they are positive if they score no lower than some positive
    of the rows, negative if they score no higher than some negative, and else left out.

    >>> rows = [RatedPair("capital", "", tuple(pair.split(":")), score, "") for pair, score in
    ...         [("Paris:France", 9), ("Tokyo:Japan", 8), ("Japan:Tokyo", -8)]]
    >>> select(rows, top=2)[0].positives
    (('Tokyo', 'Japan'), ('Paris', 'France'))
    """
    by_relation, held = _by_relation(rows), _by_relation(held_out)
    wrong = [
        problem for name, rated in by_relation.items() for problem in _wrong_rows(name, [*rated, *held.get(name, ())])
    ]
    if wrong:
        more = f"\n... and {len(wrong) - SHOWN_ROWS:,} more rows." if len(wrong) > SHOWN_ROWS else ""
        raise RelvecError("\n".join(wrong[:SHOWN_ROWS]) + more)
    relations = []
    for name, rated in by_relation.items():
        relation = _relation(name, rated, top, bottom, threshold)
        relations.append(_with_held_out(relation, rated, held.get(name, ()), threshold))
    return relations


def _by_relation(rows: Iterable[RatedPair]) -> dict[str, list[RatedPair]]:
    found: dict[str, list[RatedPair]] = {}
    for row in rows:
        found.setdefault(row.relation, []).append(row)
    return found


def _relation(name: str, rated: list[RatedPair], top: int, bottom: int, threshold: float | None) -> RatedRelation:
    ordered = sorted(rated, key=lambda row: row.score)
    pairs = tuple(row.pair for row in ordered)
    if threshold is not None:
        first_positive = sum(row.score < threshold for row in ordered)
        positives, negatives = pairs[first_positive:], pairs[:first_positive]
    elif ordered[0].score == ordered[-1].score:
        positives, negatives = pairs, ()
    else:
        first_positive = max(len(pairs) - top, 0)
        lower = sum(row.score < ordered[first_positive].score for row in ordered)
        positives, negatives = pairs[first_positive:], pairs[: min(bottom, lower)]
    return RatedRelation(name, rated[0].category, positives, negatives)


def _with_held_out(
    relation: RatedRelation, rated: Sequence[RatedPair], held_out: Sequence[RatedPair], threshold: float | None
) -> RatedRelation:
    """The relation with more pairs, judged by the scores of those it has."""
    if not held_out:
        return relation
    score = {row.pair: row.score for row in rated}
    lowest = min(score[pair] for pair in relation.positives) if threshold is None else threshold
    if threshold is None and relation.negatives:
        highest = max(score[pair] for pair in relation.negatives)
        bad = [row.pair for row in held_out if row.score <= highest]
    else:
        bad = [row.pair for row in held_out if row.score < lowest]
    good = [row.pair for row in held_out if row.score >= lowest]
    return joined(relation, replace(relation, positives=tuple(good), negatives=tuple(bad)))


def joined(trained: RatedRelation, held_out: RatedRelation) -> RatedRelation:
    """One relation of both, whose held-out pairs come first; a pair both positive and negative counts as positive."""
    positives = dict.fromkeys((*held_out.positives, *trained.positives))
    negatives = dict.fromkeys((*held_out.negatives, *trained.negatives))
    return replace(
        trained,
        positives=tuple(positives),
        negatives=tuple(pair for pair in negatives if pair not in positives),
        held_out=(*held_out.positives, *held_out.negatives),
    )


def _wrong_rows(name: str, rated: list[RatedPair]) -> Iterator[str]:
    seen: set[Pair] = set()
    for row in rated:
        if row.category != rated[0].category:
            both = f"{rated[0].category!r} and {row.category!r}"
            yield f"{row.where}relation {name!r} is in the categories {both}; keep one."
        if row.pair in seen:
            yield f"{row.where}{':'.join(row.pair)} is rated twice in relation {name!r}; keep one."
        seen.add(row.pair)


def split(relations: Iterable[RatedRelation], part: Part) -> list[RatedRelation]:
    """The part of each relation to train on, or to validate on.

    Held out is what the data says; of a list of which it says nothing, the first and the ninth pair.

    >>> capitals = RatedRelation("capital", "", (("Paris", "France"), ("Tokyo", "Japan"), ("Rome", "Italy")), ())
    >>> split([capitals], "train")[0].positives
    (('Tokyo', 'Japan'), ('Rome', 'Italy'))
    >>> split([replace(capitals, held_out=(("Rome", "Italy"),))], "train")[0].positives
    (('Paris', 'France'), ('Tokyo', 'Japan'))
    """
    return [
        replace(
            relation,
            positives=_part(relation.positives, relation.held_out, part),
            negatives=_part(relation.negatives, relation.held_out, part),
        )
        for relation in relations
    ]


def _part(pairs: tuple[Pair, ...], held_out: Sequence[Pair], part: Part) -> tuple[Pair, ...]:
    usual = {pairs[place] for place in _VALIDATION_PLACES if place < len(pairs)}
    held = set(held_out).intersection(pairs) or usual
    return tuple(pair for pair in pairs if (pair in held) == (part == "valid"))


def has_training_positives(relation: RatedRelation) -> bool:
    """Whether enough positives are left to train on, besides those that are held out."""
    return len(split([relation], "train")[0].positives) >= _TRAINING_POSITIVES


@dataclass(frozen=True)
class Problem:
    """What is wrong with a relation, and with which of its pairs (`head:tail`, empty for the relation itself)."""

    relation: str
    pair: str
    problem: str


def problems(relations: Sequence[RatedRelation]) -> Iterator[Problem]:
    """Names used twice, pairs given twice or both positive and negative, and too few positives to train on."""
    uses = Counter(relation.name for relation in relations)
    yield from (Problem(name, "", f"is the name of {count} relations") for name, count in uses.items() if count > 1)
    for relation in relations:
        for kind, pairs in (("positive", relation.positives), ("negative", relation.negatives)):
            twice = [pair for pair, count in Counter(pairs).items() if count > 1]
            yield from (Problem(relation.name, ":".join(pair), f"is twice {kind}") for pair in twice)
        for pair in dict.fromkeys(relation.positives):
            if pair in relation.negatives:
                yield Problem(relation.name, ":".join(pair), "is both positive and negative")
        if not has_training_positives(relation):
            held_out = max(1, len(split([relation], "valid")[0].positives))
            needed = f"{held_out + _TRAINING_POSITIVES} are needed ({held_out} held out)"
            yield Problem(relation.name, "", f"has {len(relation.positives)} positives, {needed}")


def check_relations(relations: Sequence[RatedRelation]) -> None:
    """Refuse what cannot be trained on."""
    if len(relations) < 2 and not any(relation.negatives for relation in relations):
        raise RelvecError("There is nothing to tell apart; give at least two relations, or one with bad pairs.")
    for found in problems(relations):
        pair = f"{found.pair} " if found.pair else ""
        raise RelvecError(f"Relation {found.relation!r}: {pair}{found.problem}; see `relvec data check`.")


def exclude(
    relations: Sequence[RatedRelation], categories: Iterable[str] = (), names: Iterable[str] = ()
) -> list[RatedRelation]:
    """Leave out whole categories, and relations by name."""
    known = [relation.category for relation in relations if relation.category]
    categories = {one_of("category", each, dict.fromkeys(known)) for each in categories}
    names = {one_of("relation", each, [relation.name for relation in relations]) for each in names}
    return [relation for relation in relations if relation.category not in categories and relation.name not in names]
