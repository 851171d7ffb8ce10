"""Write the tables of experiments/neighbours.md: the paper's nearest neighbours beside those of the bundled index.

python tools/make_neighbours.py [--model NAME] [--index FOLDER] [--page FILE]
python tools/make_neighbours.py --reranker relvec-large --dtype bfloat16

The second form fills the table of counts for a better model that ranks the 1,000 candidates of the first.
"""

import argparse
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from make_tables import filled

from relvec import RelBERT
from relvec.hub.catalogue import DEFAULT_MODEL
from relvec.index import PairIndex
from relvec.pairs import Pair, parse_pair

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
SEARCHED = 20
SHOWN = 10


@dataclass(frozen=True)
class Target:
    """A pair whose neighbours the paper prints, some in section 6.3 too; `known` are those that the index has."""

    category: str
    pair: Pair
    paper: tuple[Pair, ...]
    known: frozenset[Pair]
    ours: tuple[Pair, ...]
    is_in_section: bool = False

    @property
    def found(self) -> set[Pair]:
        """The paper's neighbours that are among ours."""
        return set(self.paper) & set(self.ours)


def targets(model: RelBERT, index: PairIndex, reranker: RelBERT | None = None) -> list[Target]:
    """The paper's targets with their neighbours there and here; case makes no other pair."""
    listed = tomllib.loads((EXPERIMENTS / "paper_neighbours.toml").read_text(encoding="utf-8"))["target"]
    vocabulary = {_folded(pair) for pair in index.pairs.pairs()}
    pairs = [parse_pair(row["pair"]) for row in listed]
    searched = index.neighbours_of_each(
        model, pairs, SEARCHED, reranker=reranker, shared_words=True, show_progress=None
    )
    found = []
    for row, pair, ours in zip(listed, pairs, searched, strict=True):
        paper = tuple(map(parse_pair, row["neighbours"]))
        known = frozenset(vocabulary.intersection(paper) - {(pair[1], pair[0])})
        ours_folded = tuple(_folded(neighbour.pair) for neighbour in ours)
        found.append(Target(row["category"], pair, paper, known, ours_folded, row.get("in_section", False)))
    return found


def _folded(pair: Pair) -> Pair:
    return pair[0].casefold(), pair[1].casefold()


def neighbours(rows: Sequence[Target]) -> list[list[str]]:
    """In bold what both have; in italics what this vocabulary lacks (or what is the target turned round)."""
    head = ["target", "the paper", f"relvec, the first {SHOWN}"]
    return [head, *([_text(row.pair), _paper(row), _listed(row.ours[:SHOWN], bold=row.paper)] for row in rows)]


def agreement(rows: Sequence[Target]) -> list[list[str]]:
    """How many of the paper's neighbours are here at all, and how many of those are found."""
    head = ["category", "targets", "the paper's", "in the vocabulary", f"among the first {SEARCHED}", "share"]
    categories = dict.fromkeys(row.category for row in rows)
    parts = [_counts(name, [row for row in rows if row.category == name]) for name in categories]
    in_section = _counts("those of section 6.3", [row for row in rows if row.is_in_section])
    return [head, *parts, _counts("all", rows), in_section]


def _counts(name: str, rows: Sequence[Target]) -> list[str]:
    known, found = sum(len(row.known) for row in rows), sum(len(row.found) for row in rows)
    share = f"{found / known:.0%}" if known else "-"
    return [name, str(len(rows)), str(sum(len(row.paper) for row in rows)), str(known), str(found), share]


def _paper(row: Target) -> str:
    marks = {pair: "*" for pair in row.paper if pair not in row.known} | dict.fromkeys(row.found, "**")
    return ", ".join(f"{marks.get(pair, '')}{_text(pair)}{marks.get(pair, '')}" for pair in row.paper)


def _listed(pairs: Iterable[Pair], bold: Iterable[Pair]) -> str:
    return ", ".join(f"**{_text(pair)}**" if pair in set(bold) else _text(pair) for pair in pairs)


def _text(pair: Pair) -> str:
    return ":".join(pair)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="a name, a folder or a hub id")
    parser.add_argument("--index", type=Path, help="an index of that model; by default the bundled one")
    parser.add_argument("--reranker", help="a better model to rank the candidates")
    parser.add_argument("--dtype", default="float32", help="precision of the reranker")
    parser.add_argument(
        "--page", type=Path, default=EXPERIMENTS / "neighbours.md", help="the page whose tables are filled"
    )
    options = parser.parse_args()
    index = PairIndex.load(options.index)
    reranker = RelBERT.from_pretrained(options.reranker, dtype=options.dtype) if options.reranker else None
    rows = targets(RelBERT.from_pretrained(options.model), index, reranker)
    tables = {"neighbours": partial(neighbours, rows), "agreement": partial(agreement, rows)}
    if reranker:
        tables = {"reranked": partial(agreement, rows)}
    options.page.write_text(filled(options.page.read_text(encoding="utf-8"), tables), encoding="utf-8")
    sys.stderr.write(f"{options.page}: {' | '.join(agreement(rows)[-2])}\n")


if __name__ == "__main__":
    main()
