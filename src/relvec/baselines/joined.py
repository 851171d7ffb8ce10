"""Several vectors of a pair put end to end: word vectors with pair vectors (section 4.3 of the paper)."""

import hashlib
from collections.abc import Sequence

import numpy as np

from relvec.errors import RelvecError
from relvec.model.cached_vectors import Known, PairVectors
from relvec.pairs import Pair
from relvec.similarity import Vectors


class Joined:
    r"""The concatenation of word vectors and pair vectors, such as `diff+dot+rel`.

    For analogy questions the paper joins the vectors of (h, t); for classification it adds the pair vectors of (t, h)
    (`both_directions`), but not the word vectors', since they say the same. It follows that a classifier need not ask
    for both directions again: `has_direction` is false.

    A pair is known if its words are: a pair that the pair vectors lack gets zeros from them.

    >>> from relvec.baselines.pair_vectors import PairTable
    >>> from relvec.baselines.word_vectors import WordVectors
    >>> from pathlib import Path
    >>> _ = Path("glove.txt").write_text("tea 1 2\ncup 3 4\n")
    >>> _ = Path("rel.txt").write_text("tea__cup 7\n")
    >>> joined = Joined([WordVectors("glove.txt"), PairTable("rel.txt")], both_directions=True)
    >>> joined.name, joined.vectors([("tea", "cup")])[0].tolist()
    ('glove: diff+rel', [[2.0, 2.0, 7.0, 0.0]])
    """

    has_direction = False

    def __init__(self, members: Sequence[PairVectors], *, both_directions: bool, name: str = "") -> None:
        if all(member.has_direction for member in members):
            raise RelvecError("Pair vectors can only be joined to word vectors; give some of those too.")
        self._members = tuple(members)
        self._both_directions = both_directions
        self.name = name or "+".join(member.name for member in members)
        parts = [*(member.fingerprint for member in members), str(both_directions)]
        self.fingerprint = hashlib.sha256(" ".join(parts).encode()).hexdigest()

    def vectors(self, pairs: Sequence[Pair]) -> tuple[Vectors, Known]:
        turned = [(tail, head) for head, tail in pairs]
        known = np.ones(len(pairs), dtype=bool)
        columns = []
        for member in self._members:
            vectors, is_known = member.vectors(pairs)
            columns.append(vectors)
            if not member.has_direction:
                known &= is_known
            elif self._both_directions:
                columns.append(member.vectors(turned)[0])
        joined = np.concatenate(columns, axis=1)
        joined[~known] = 0
        return joined, known
