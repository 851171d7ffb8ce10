"""Hard negatives made by scrambling a relation's own positives.

A model that only knows what kind of word the head is, and what kind the tail, cannot tell (h_i, t_j) from (h_i, t_i).
These negatives ask whether the two words belong together.
"""

from collections.abc import Collection, Sequence

import torch

from relvec.data.overlap import inflected
from relvec.data.rated import RatedRelation
from relvec.pairs import Pair

# How often each kind is tried: of pairs (h_i, t_i) and (h_j, t_j), which words make the negative.
KINDS = {"scrambled": 0.4, "heads": 0.2, "tails": 0.2, "reversed": 0.2}
TRIES_PER_NEGATIVE = 8


class Scrambler:
    """Makes negatives of the positives of a relation.

    None has the same word twice, is a positive of a `known` relation (in either order, if that one is symmetric), or
    has one of the `excluded` keys (see `relvec.data.overlap.inflected`), such as those of benchmark pairs.
    """

    def __init__(self, known: Sequence[RatedRelation], excluded: Collection[Pair] = ()) -> None:
        self._positives = {pair for relation in known for pair in relation.positives}
        self._positives |= {(tail, head) for r in known if r.is_symmetric for head, tail in r.positives}
        self._excluded = excluded

    def __call__(self, relation: RatedRelation, count: int, generator: torch.Generator) -> list[Pair]:
        """Up to `count` distinct negatives; fewer where a few tries find no more."""
        found: dict[Pair, None] = {}
        kinds = torch.tensor([0.0 if k == "reversed" and relation.is_symmetric else KINDS[k] for k in KINDS])
        for _ in range(TRIES_PER_NEGATIVE * count):
            if len(found) == count:
                break
            kind = list(KINDS)[int(torch.multinomial(kinds, 1, generator=generator))]
            first, second = torch.randint(len(relation.positives), (2,), generator=generator).tolist()
            pair = scrambled(kind, relation.positives[first], relation.positives[second])
            if self.is_negative(pair):
                found[pair] = None
        return list(found)

    def is_negative(self, pair: Pair) -> bool:
        if pair[0] == pair[1] or pair in self._positives:
            return False
        return not self._excluded or inflected(pair) not in self._excluded


def scrambled(kind: str, first: Pair, second: Pair) -> Pair:
    """
    >>> [scrambled(kind, ("baker", "bread"), ("brewer", "beer")) for kind in KINDS]
    [('baker', 'beer'), ('baker', 'brewer'), ('bread', 'beer'), ('bread', 'baker')]
    """
    return {
        "scrambled": (first[0], second[1]),
        "heads": (first[0], second[0]),
        "tails": (first[1], second[1]),
        "reversed": (first[1], first[0]),
    }[kind]
