"""Which training pairs also occur in a benchmark: a fair evaluation has none."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from relvec.data.benchmarks.analogy import as_question
from relvec.data.rated import RatedRelation, has_training_negatives, has_training_positives
from relvec.errors import RelvecError
from relvec.io.paths import data_folder, expanded
from relvec.io.tables import read_rows
from relvec.pairs import Pair

_ENDINGS = ("ies", "es", "s", "ing", "ed", "ly", "y", "e")
_SHORTEST_STEM = 3


@dataclass(frozen=True)
class Overlap:
    """A pair of a relation and the benchmarks that have it, in this order or the other."""

    relation: str
    pair: Pair
    benchmarks: tuple[str, ...]


def unordered(pair: Pair) -> Pair:
    """The same key for both orders and any case.

    >>> unordered(("Paris", "France")) == unordered(("france", "paris"))
    True
    """
    head, tail = (word.lower() for word in pair)
    return (head, tail) if head <= tail else (tail, head)


def inflected(pair: Pair) -> Pair:
    """The same key for both orders and for other forms of the words, by cutting off common endings.

    >>> inflected(("Bakers", "baking")) == inflected(("bakes", "baker"))
    True
    """
    head, tail = (_stem(word) for word in unordered(pair))
    return (head, tail) if head <= tail else (tail, head)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word.removesuffix(ending)
    return word


def benchmark_folder(data_dir: str | Path | None) -> Path:
    """Where the benchmarks are whose pairs shall be left out."""
    folder = data_folder(data_dir)
    if folder is None:
        raise RelvecError(
            "Leaving out benchmark pairs needs the benchmarks; give their folder with --data-dir or RELVEC_DATA."
        )
    return folder


def benchmark_pairs(data_dir: str | Path) -> dict[Pair, set[str]]:
    """Every pair of the benchmarks' validation and test parts, unordered, and the benchmarks it is in."""
    found: dict[Pair, set[str]] = {}
    for folder in ("analogy", "lexrel"):
        for part in ("valid", "test"):
            for path in sorted(expanded(data_dir).glob(f"{folder}/*/{part}.jsonl")):
                for pair in _pairs(path):
                    found.setdefault(unordered(pair), set()).add(f"{folder}/{path.parent.name}")
    if not found:
        places = "analogy/*/test.jsonl and lexrel/*/test.jsonl"
        raise RelvecError(f"There is no benchmark below {data_dir}; give the folder that holds {places}.")
    return found


def _pairs(path: Path) -> Iterator[Pair]:
    """Stem and choices of a question, or the pair of a classification row."""
    for row in read_rows(path):
        if "stem" in row.values:
            question = as_question(row)
            yield from (question.stem, *question.choices)
        else:
            yield row.pair()


def overlap(relations: Iterable[RatedRelation], data_dir: str | Path) -> list[Overlap]:
    """The pairs of the relations, positive or negative, that a benchmark has in either order."""
    known = benchmark_pairs(data_dir)
    return [
        Overlap(relation.name, pair, tuple(sorted(known[unordered(pair)])))
        for relation in relations
        for pair in (*relation.positives, *relation.negatives)
        if unordered(pair) in known
    ]


def near_pairs(relations: Iterable[RatedRelation], data_dir: str | Path) -> set[Pair]:
    """The pairs of the relations that no benchmark has, but for other forms of the words."""
    exact = benchmark_pairs(data_dir)
    known = {inflected(pair) for pair in exact}
    pairs = {pair for relation in relations for pair in (*relation.positives, *relation.negatives)}
    return {pair for pair in pairs if unordered(pair) not in exact and inflected(pair) in known}


def without_benchmarks(
    relations: Iterable[RatedRelation], data_dir: str | Path, *, needs_negatives: bool = False
) -> list[RatedRelation]:
    """The relations without the pairs that a benchmark has, in these or other forms of the words.

    A relation left with fewer than two positives to train on, besides those held out, goes. If it `needs_negatives`, so
    does one left without a negative to train on.
    """
    known = {inflected(pair) for pair in benchmark_pairs(data_dir)}

    def kept(pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
        return tuple(pair for pair in pairs if inflected(pair) not in known)

    fair = [replace(r, positives=kept(r.positives), negatives=kept(r.negatives)) for r in relations]
    return [
        relation
        for relation in fair
        if has_training_positives(relation) and (not needs_negatives or has_training_negatives(relation))
    ]
