"""Training pairs that are tested on too (a fair evaluation has none), and what else is wrong with a dataset."""

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from relvec.data.benchmarks.analogy import as_question
from relvec.data.benchmarks.registry import BENCHMARKS
from relvec.data.rated import Problem, RatedRelation, exclude, has_training_positives, problems, split
from relvec.data.sources import DEFAULT_SOURCE, load
from relvec.errors import LeftOutWarning, RelvecError, counted, needed_for
from relvec.io.files import data_folder, expanded
from relvec.io.tables import read_rows
from relvec.pairs import Pair, parts_of

FOLDERS = ("analogy", "lexrel")


def unordered(pair: Pair) -> Pair:
    """The same key for both orders and any case.

    >>> unordered(("Paris", "France")) == unordered(("france", "paris"))
    True
    """
    head, tail = (word.lower() for word in pair)
    return (head, tail) if head <= tail else (tail, head)


def inflected(pair: Pair) -> Pair:
    """The same key for both orders, and for other forms and spellings of the words.

    >>> inflected(("light bulbs", "Shining")) == inflected(("shine", "lightbulb"))
    True
    """
    head, tail = (_stem(word) for word in pair)
    return (head, tail) if head <= tail else (tail, head)


@cache
def _stem(word: str) -> str:
    with needed_for("The comparison with the benchmarks"):
        from snowballstemmer import stemmer
    return str(stemmer("english").stemWord("".join(parts_of(word.lower()))))


def benchmark_folder(data_dir: str | Path | None) -> Path:
    """Where the benchmarks are whose pairs shall be left out."""
    folder = data_folder(data_dir)
    if folder is None:
        raise RelvecError(
            "Leaving out benchmark pairs needs the benchmarks; give their folder with --data-dir or RELVEC_DATA."
        )
    return folder


def benchmark_pairs(data_dir: str | Path, *, required: bool = True) -> dict[Pair, set[str]]:
    """Every pair of the benchmarks' validation and test parts, unordered, and the benchmarks it is in."""
    found: dict[Pair, set[str]] = {}
    for folder in FOLDERS:
        for part in ("valid", "test"):
            for path in sorted(expanded(data_dir).glob(f"{folder}/*/{part}.jsonl")):
                for pair in _pairs(path):
                    found.setdefault(unordered(pair), set()).add(f"{folder}/{path.parent.name}")
    if required and not found:
        places = "analogy/*/test.jsonl and lexrel/*/test.jsonl"
        raise RelvecError(f"There is no benchmark below {data_dir}; give the folder that holds {places}.")
    tested = [each.collection.path.partition("/")[0] + f"/{each.folder}" for each in BENCHMARKS.values()]
    known = {place for each in found.values() for place in each}
    lacking = [place for place in dict.fromkeys(tested) if place.startswith(FOLDERS) and place not in known]
    if found and lacking:
        problem = f"{data_dir} lacks {', '.join(lacking)}, so nothing is compared with these"
        warnings.warn(LeftOutWarning(f"{problem}; put them there."), stacklevel=2)
    return found


def _pairs(path: Path) -> Iterator[Pair]:
    """Stem and choices of a question, or the pair of a classification row."""
    for row in read_rows(path):
        if "stem" in row.values:
            question = as_question(row)
            yield from (question.stem, *question.choices)
        else:
            yield row.pair()


def audit(relations: Sequence[RatedRelation], known: Mapping[Pair, set[str]] | None = None) -> list[Problem]:
    """All problems of a dataset, and those of its pairs that are among the `known` ones of the benchmarks.

    >>> pairs = ("Castor", "Pollux"), ("Apollo", "Artemis"), ("Romulus", "Remus"), ("Castor", "Pollux")
    >>> audit([RatedRelation("twins", "", pairs, ())])
    [Problem(relation='twins', pair='Castor:Pollux', problem='is twice positive')]
    """
    known = known or {}
    shared = [
        Problem(relation.name, ":".join(pair), f"in {', '.join(sorted(known[unordered(pair)]))}")
        for relation in relations
        for pair in relation.pairs
        if unordered(pair) in known
    ]
    return [*problems(relations), *shared]


def near_pairs(relations: Iterable[RatedRelation], known: Collection[Pair]) -> set[Pair]:
    """The pairs of the relations that are among the `known` ones only in other forms of the words."""
    forms = {inflected(pair) for pair in known}
    pairs = {pair for relation in relations for pair in relation.pairs}
    return {pair for pair in pairs if unordered(pair) not in known and inflected(pair) in forms}


def without_benchmarks(
    relations: Iterable[RatedRelation], data_dir: str | Path, *, needs_negatives: bool = False
) -> list[RatedRelation]:
    """The relations without the pairs that a benchmark has, in these or other forms of the words.

    A relation left with fewer than two training positives goes. If it `needs_negatives`, so does one left without a
    training negative.
    """
    fair = _without(relations, {inflected(pair) for pair in benchmark_pairs(data_dir)})
    return [relation for relation in fair if not needs_negatives or split([relation], "train")[0].negatives]


def pairs_for_testing(relations: Iterable[RatedRelation] = ()) -> set[Pair]:
    """The positives of the relations that are kept for testing, bundled ones and others, as `inflected` keys."""
    return _keys_for_testing(relations) | _bundled_for_testing()


@cache
def _bundled_for_testing() -> frozenset[Pair]:
    return frozenset(_keys_for_testing(load(DEFAULT_SOURCE)))


def _keys_for_testing(relations: Iterable[RatedRelation]) -> set[Pair]:
    return {inflected(pair) for relation in relations if relation.is_for_testing for pair in relation.positives}


def without_testing(relations: Sequence[RatedRelation]) -> list[RatedRelation]:
    """The relations to train on: none that is kept for testing, and no pair that is a positive of one.

    These are the relations kept for testing among the given and among the bundled ones. A relation left with fewer than
    two training positives goes.

    >>> twins = RatedRelation("twins", "", (("Castor", "Pollux"), ("Romulus", "Remus")), (), is_for_testing=True)
    >>> pairs = ("Remus", "Romulus"), ("Cain", "Abel"), ("Jacob", "Esau"), ("Moses", "Aaron"), ("Atreus", "Thyestes")
    >>> [len(relation.positives) for relation in without_testing([twins, RatedRelation("brothers", "", pairs, ())])]
    [4]
    """
    tested = pairs_for_testing(relations)
    return _without((relation for relation in relations if not relation.is_for_testing), tested)


def load_for_training(
    data: str | Path | Sequence[str],
    data_dir: str | Path | None = None,
    *,
    exclude_categories: Iterable[str] = (),
    exclude_relations: Iterable[str] = (),
    exclude_benchmark_pairs: bool = False,
    train_on_held_out: bool = False,
    needs_negatives: bool = False,
    **selection: Any,
) -> list[RatedRelation]:
    """Relations by name, file or folder, without what is excluded and what is kept for testing.

    The `selection` of positives and negatives is that of `relvec.data.sources.load`: `top`, `bottom` and `threshold`.
    """
    loaded = load(data, data_dir=data_dir, **selection)
    relations = loaded if train_on_held_out else without_testing(loaded)
    _warn_of_tested(loaded, relations)
    relations = exclude(relations, exclude_categories, exclude_relations)
    if exclude_benchmark_pairs:
        relations = without_benchmarks(relations, benchmark_folder(data_dir), needs_negatives=needs_negatives)
    return relations


def _warn_of_tested(loaded: Sequence[RatedRelation], kept: Sequence[RatedRelation]) -> None:
    """That bundled relations lose pairs is no news; that others do is."""
    left = {pair for relation in kept for pair in relation.positives}
    bundled = {relation.name for relation in load(DEFAULT_SOURCE)}
    others = (relation for relation in loaded if not relation.is_for_testing and relation.name not in bundled)
    lost = [pair for relation in others for pair in relation.positives if pair not in left]
    if lost:
        problem = f"{counted(len(lost), 'pair')} such as {':'.join(lost[0])} are kept for testing and left out"
        warnings.warn(LeftOutWarning(f"{problem}; train_on_held_out includes them."), stacklevel=3)


def _without(relations: Iterable[RatedRelation], keys: Collection[Pair]) -> list[RatedRelation]:
    def kept(pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
        return tuple(pair for pair in pairs if inflected(pair) not in keys)

    fair = ((r, replace(r, positives=kept(r.positives), negatives=kept(r.negatives))) for r in relations)
    # One that was too small before is left to be refused.
    return [relation for whole, relation in fair if relation == whole or has_training_positives(relation)]
