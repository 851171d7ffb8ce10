"""The pairs that a student learns from: gathered, sampled, re-paired, reversed, and some held out."""

import random
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from relvec.data.overlap import benchmark_pairs, inflected, pairs_for_testing, unordered, without_testing
from relvec.data.rated import RatedRelation
from relvec.data.sources import DEFAULT_SOURCE, describe, load
from relvec.distillation.wordnet import read_wordnet
from relvec.errors import RelvecError, counted
from relvec.io.files import expanded
from relvec.io.tables import read_pairs
from relvec.pairs import Pair
from relvec.settings import Settings, setting

HELD_OUT_SHARE = 0.02
HELD_OUT_AT_LEAST = 4
HELD_OUT_AT_MOST = 2000  # beyond that an evaluation only takes longer
FEWEST = 10

_Groups = dict[Pair, list[Pair]]
"""Pairs of the same two words, by those words in any order and case: they are held out together or not at all."""


class Sources(Settings):
    """Where the pairs come from, and how many of them are taken.

    `limit` counts word pairs before they are reversed; those of WordNet are the first to be left out.
    `scrambled` pairs ask the student what relations do to pairs that do not belong together.
    `shuffled` is the number of re-pairings (the head of one pair, the tail of another) as a share of the pairs. With a
    folder of `benchmarks`, their pairs are left out, in these or other forms of the words. The pairs of relations
    that are kept for testing are always left out.
    """

    files: tuple[str, ...] = setting((), "a file of pairs; may be repeated", "--pairs")
    data: tuple[str, ...] = setting(
        lambda known: () if known["files"] else (DEFAULT_SOURCE,),
        "relations whose pairs are taken, as in `relvec train`; bundled if there are no --pairs",
    )
    wordnet: Path | None = setting(None, "a folder with data.noun and its like: adds WordNet")
    limit: int = setting(100_000, "how many pairs at most; WordNet gives what the rest leaves free", ge=FEWEST)
    scrambled: int = setting(0, "pairs to add of each relation of --data, made by scrambling its positives", ge=0)
    shuffled: float = setting(0.2, "random pairs of their words to add, as a share", ge=0)
    both_directions: bool = True
    data_dir: Path | None = None
    benchmarks: Path | None = None

    def described(self) -> str:
        """What a model card says of the data; of the user's own files only the names."""
        names = [Path(name).name if expanded(name).exists() else describe(name) for name in self.data]
        names += [Path(path).name for path in self.files] + (["WordNet"] if self.wordnet else [])
        if self.scrambled:
            names.append(f"scrambled pairs of their relations, {self.scrambled} each")
        if self.shuffled:
            names.append(f"random pairs of their words, {self.shuffled:.0%} more")
        text = "; ".join(names) + (", each in both directions" if self.both_directions else "")
        return f"{text}; without the pairs of the benchmarks" if self.benchmarks else text


@dataclass(frozen=True)
class Pool:
    """Distinct pairs to learn from and to be measured by, which share no two words, and how many came from where."""

    train: list[Pair]
    held_out: list[Pair]
    counts: dict[str, int]


def make_pool(sources: Sources, seed: int = 0) -> Pool:
    """Read the sources and draw the pool; the same sources and seed give the same pool.

    >>> pool = make_pool(Sources(shuffled=0, limit=100))
    >>> len(pool.train), len(pool.held_out)
    (192, 8)
    """
    draw = random.Random(seed)
    # How well a pair fits its relation is of no matter here: all are taken.
    relations = load(sources.data, data_dir=sources.data_dir, top=sys.maxsize)
    benchmarks = pairs_for_testing(relations)
    if sources.benchmarks:
        benchmarks |= {inflected(pair) for pair in benchmark_pairs(sources.benchmarks)}
    given = _grouped(_given(sources, without_testing(relations), seed), benchmarks)
    wordnet = _grouped(read_wordnet(sources.wordnet) if sources.wordnet else (), benchmarks)
    known = given.keys() | wordnet.keys()
    own = _sample(given, sources.limit, draw)
    more = _sample({key: wordnet[key] for key in wordnet if key not in given}, sources.limit - len(own), draw)
    pairs = {**own, **more}
    if len(pairs) < FEWEST:
        fix = "give more with --pairs, --data or --wordnet"
        problem = f"There is too little to learn from: {counted(len(pairs), 'pair')} where {FEWEST} are needed"
        raise RelvecError(f"{problem}; {fix}.")
    shuffled = _shuffled(list(pairs.values()), round(sources.shuffled * len(pairs)), known, benchmarks, draw)
    pairs |= shuffled
    keys = list(pairs)
    draw.shuffle(keys)
    size = min(max(round(HELD_OUT_SHARE * len(keys)), HELD_OUT_AT_LEAST), HELD_OUT_AT_MOST)
    return Pool(
        train=_written_out((pairs[key] for key in keys[size:]), sources.both_directions),
        held_out=_written_out((pairs[key] for key in keys[:size]), sources.both_directions),
        counts={"given_pairs": len(own), "pairs_of_WordNet": len(more), "re-paired_words": len(shuffled)},
    )


def _given(sources: Sources, relations: Sequence[RatedRelation], seed: int) -> Iterator[Pair]:
    for path in sources.files:
        yield from read_pairs(path)
    for relation in relations:
        yield from relation.pairs
    if sources.scrambled:
        yield from _scrambled(relations, sources.scrambled, seed)


def _scrambled(relations: Sequence[RatedRelation], count: int, seed: int) -> Iterator[Pair]:
    import torch

    from relvec.training.samplers import Scrambler

    scrambler, generator = Scrambler(relations), torch.Generator().manual_seed(seed)
    for relation in relations:
        yield from scrambler(relation, count, generator)


def _grouped(pairs: Iterable[Pair], benchmarks: Container[Pair]) -> _Groups:
    groups: _Groups = {}
    for pair in dict.fromkeys(pairs):
        if inflected(pair) not in benchmarks:
            groups.setdefault(unordered(pair), []).append(pair)
    return groups


def _sample(groups: Mapping[Pair, list[Pair]], size: int, draw: random.Random) -> _Groups:
    keys = list(groups) if len(groups) <= size else draw.sample(list(groups), size)
    return {key: groups[key] for key in keys}


def _shuffled(
    groups: Sequence[Sequence[Pair]],
    size: int,
    known: Container[Pair],
    benchmarks: Container[Pair],
    draw: random.Random,
) -> _Groups:
    """Words of different pairs put together, such that no source has them together."""
    made: _Groups = {}
    for _ in range(10 * size):  # few words may not have so many new pairs among them
        if len(made) == size:
            break
        pair = (draw.choice(draw.choice(groups))[0], draw.choice(draw.choice(groups))[1])
        key = unordered(pair)
        if key[0] != key[1] and key not in known and inflected(pair) not in benchmarks:
            made[key] = [pair]
    return made


def _written_out(groups: Iterable[Sequence[Pair]], both_directions: bool) -> list[Pair]:
    pairs: dict[Pair, None] = {}
    for group in groups:
        pairs.update(dict.fromkeys(group))
        if both_directions:
            pairs.update(dict.fromkeys((tail, head) for head, tail in group))
    return list(pairs)
