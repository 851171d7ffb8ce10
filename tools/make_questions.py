"""Write the project's own analogy questions from the bundled relations that are kept for testing.

python tools/make_questions.py

One choice is right: another positive of the stem's relation. Each of the others tempts in a way of its own, and none is
a positive of that relation:

| type | what it is |
| --- | --- |
| scrambled | head and tail of two other pairs of the relation |
| same-side | two heads, or two tails, of the relation |
| reversed | a pair of the relation from tail to head; not where it is symmetric |
| sibling | a positive of another relation of the category |
| other | a positive of a relation of another category |
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from relvec.data.benchmarks.analogy import Question
from relvec.data.benchmarks.registry import BENCHMARKS
from relvec.data.rated import RatedRelation
from relvec.data.sources import load
from relvec.pairs import Pair

RIGHT = "right"
TYPES = ("scrambled", "same-side", "reversed", "sibling", "other")

QUESTIONS_PER_RELATION = 24
TRIES = 50
# The relations of these categories differ in topic alone: a sibling's pair would be another right answer.
ALIKE_WITHIN = ("class-inclusion", "coordinates", "contrast")
VALIDATION_EVERY = 3  # of the relations, so that what is chosen by some is reported on others


def make_questions(relations: Sequence[RatedRelation], part: str) -> list[Question]:
    """The questions on those of the relations that are kept for testing; always the same ones."""
    tested = [relation for relation in relations if relation.is_for_testing]
    chosen = [r for place, r in enumerate(tested) if (place % VALIDATION_EVERY == 0) == (part == "valid")]
    return [question for relation in chosen for question in _of_relation(relation, relations)]


def _of_relation(relation: RatedRelation, relations: Sequence[RatedRelation]) -> Iterator[Question]:
    rng = random.Random(relation.name)
    siblings = [] if relation.category in ALIKE_WITHIN else [r for r in relations if r.category == relation.category]
    sources = {
        "sibling": [pair for r in siblings if r is not relation for pair in r.positives],
        "other": [pair for r in relations if r.category != relation.category for pair in r.positives],
    }
    for stem in rng.sample(relation.positives, min(QUESTIONS_PER_RELATION, len(relation.positives))):
        types: dict[Pair, str] = {}
        for kind in (RIGHT, *TYPES):
            drawn = _drawn(kind, relation, sources, rng)
            fits = (pair for pair in drawn if pair not in types and not _words(pair) & _words(stem))
            types |= dict.fromkeys(islice(fits, 1), kind)
        choices = rng.sample(list(types), len(types))
        right = next(place for place, pair in enumerate(choices) if types[pair] == RIGHT)
        yield Question(stem, tuple(choices), right, relation.name, tuple(types[pair] for pair in choices))


def _drawn(
    kind: str, relation: RatedRelation, sources: Mapping[str, Sequence[Pair]], rng: random.Random
) -> Iterator[Pair]:
    """Some random choices of a type; only the right ones are positives of the relation."""
    known = {*relation.positives, *((t, h) for h, t in relation.positives if relation.is_symmetric)}
    for _ in range(TRIES):
        first, second = rng.sample(relation.positives, 2)
        side = rng.randrange(2)
        made = {
            RIGHT: first,
            "scrambled": (first[0], second[1]),
            "same-side": (first[side], second[side]),
            "reversed": (first[1], first[0]),
        }
        pair = made[kind] if kind in made else rng.choice(sources[kind]) if sources[kind] else first
        if kind == RIGHT or (pair not in known and pair[0] != pair[1]):
            yield pair


def _words(pair: Pair) -> set[str]:
    return {word.lower() for word in pair}


if __name__ == "__main__":
    for part in ("valid", "test"):
        rows = [
            {"stem": q.stem, "choice": q.choices, "answer": q.answer, "prefix": q.kind, "types": q.types}
            for q in make_questions(load("bundled"), part)
        ]
        lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows]
        BENCHMARKS["bundled"].file(part).write_text("\n".join(lines) + "\n", encoding="utf-8")
