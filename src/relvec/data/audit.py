"""Everything that is wrong with a dataset, as one list."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from relvec.data.overlap import overlap
from relvec.data.rated import RatedRelation, has_training_positives


@dataclass(frozen=True)
class Problem:
    """What is wrong with a relation, and with which of its pairs (`head:tail`, empty for the relation itself)."""

    relation: str
    pair: str
    what: str


def audit(relations: Sequence[RatedRelation], data_dir: str | Path | None = None) -> list[Problem]:
    """Repeated names and pairs, pairs both positive and negative, too few positives, overlap with the benchmarks.

    >>> pairs = ("Castor", "Pollux"), ("Apollo", "Artemis"), ("Romulus", "Remus"), ("Castor", "Pollux")
    >>> twins = RatedRelation("twins", "", pairs, ())
    >>> audit([twins])
    [Problem(relation='twins', pair='Castor:Pollux', what='twice positive')]
    """
    problems = list(_repeated_names(relations))
    for relation in relations:
        problems += _own_problems(relation)
    if data_dir is not None:
        for found in overlap(relations, data_dir):
            problems.append(Problem(found.relation, ":".join(found.pair), f"in {', '.join(found.benchmarks)}"))
    return problems


def _repeated_names(relations: Sequence[RatedRelation]) -> Iterator[Problem]:
    for name, uses in Counter(relation.name for relation in relations).items():
        if uses > 1:
            yield Problem(name, "", f"name of {uses} relations")


def _own_problems(relation: RatedRelation) -> Iterator[Problem]:
    if not has_training_positives(relation):
        yield Problem(relation.name, "", "too few positives to train on")
    for kind, pairs in (("positive", relation.positives), ("negative", relation.negatives)):
        for pair, uses in Counter(pairs).items():
            if uses > 1:
                yield Problem(relation.name, ":".join(pair), f"twice {kind}")
    for pair in dict.fromkeys(relation.positives):
        if pair in relation.negatives:
            yield Problem(relation.name, ":".join(pair), "both positive and negative")
