"""Makes the pair vocabulary that relvec ships: English words that are related in some way.

python vocabulary/make.py --wordnet FOLDER --glove glove-100.npz -o vocabulary.tsv

WordNet's relations and definitions, the bundled relations and the forms of words come first; associated words of
GloVe fill up to the size. What came from where is reported on stderr.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from associations import Associations
from glosses import met_together
from relations import Related, Relations
from words import Words

from relvec.data.sources import DEFAULT_SOURCE, load
from relvec.errors import RelvecError
from relvec.io.files import atomic_write
from relvec.pairs import Pair, parse_pair

SIZE = 226_000

# The pairs whose neighbours the paper prints, in section 6.3 and in the appendix.
TARGETS = """
barista:coffee restaurant:waitress car:garage ice:melt dolphin:swim flower:fragrant coconut:milk bag:plastic
duck:duckling man:woman cooked:raw normal:abnormal helicopter:rotor bat:wing beer:alcohol oxygen:atmosphere
chihuahua:dog pelican:bird tennis:sport dog:dogs tall:tallest spy:espionage
"""

# Everyday pairs that no source has: the bundled relations leave out what a benchmark asks.
EVERYDAY = """
baker:bread cup:coffee cook:meal bird:nest painter:painting cobbler:shoes tailor:suit farmer:crop
"""


def bundled() -> Iterator[Related]:
    for relation in load(DEFAULT_SOURCE, top=sys.maxsize):
        yield from ((pair, relation.name) for pair in relation.positives)


def sources(wordnet: Path, glove: Path) -> Iterator[tuple[str, Iterable[Related]]]:
    """Where pairs come from, the more telling relation first: that one a pair keeps."""
    with np.load(glove) as table:
        by_frequency, vectors = table["words"].tolist(), table["vectors"].astype(np.float32)
    words = Words(wordnet, by_frequency)
    associations = Associations(words, by_frequency, vectors)
    relations = Relations(words, associations)
    yield "bundled relations", bundled()
    yield "the paper's targets", ((parse_pair(target), "") for target in TARGETS.split())
    yield "everyday pairs", ((parse_pair(pair), "") for pair in EVERYDAY.split())
    yield "forms of words", (((lemma, form), kind) for lemma, form, kind in words.forms())
    yield "WordNet: pointers", relations.pointers()
    yield "WordNet: synonyms", relations.synonyms()
    yield "WordNet: broader words", relations.broader()
    yield "WordNet: inherited parts", relations.inherited_parts()
    yield "WordNet: definitions", relations.definitions()
    yield "WordNet: met together", ((pair, "") for pair in met_together(words, associations))
    yield "GloVe: associated words", ((pair, "") for pair in associations.pairs())


def gathered(parts: Iterable[tuple[str, Iterable[Related]]], size: int) -> tuple[dict[Pair, str], Counter[str]]:
    """Up to `size` distinct pairs with their relations, and how many came from where; case makes no new pair."""
    pairs: dict[Pair, str] = {}
    counts: Counter[str] = Counter()
    seen: set[Pair] = set()
    for source, related in parts:
        for (head, tail), relation in related:
            key = head.lower(), tail.lower()
            if len(pairs) < size and key[0] != key[1] and key not in seen:
                seen.add(key)
                pairs[head, tail] = relation
                counts[source] += 1
    return pairs, counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wordnet", type=Path, required=True, help="folder with its data, index and .exc files")
    parser.add_argument("--glove", type=Path, required=True, help=".npz file that benchmarks/glove.py makes")
    parser.add_argument("--size", type=int, default=SIZE, help="at most this many pairs (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, required=True, help=".tsv file to write")
    options = parser.parse_args()
    pairs, counts = gathered(sources(options.wordnet, options.glove), options.size)
    rows = (f"{head}\t{tail}\t{relation}\n" for (head, tail), relation in sorted(pairs.items()))
    with atomic_write(options.output) as draft:
        draft.write_text("head\ttail\trelation\n" + "".join(rows), encoding="utf-8")
    for source, count in counts.items():
        sys.stderr.write(f"{count:8,} {source}\n")
    sys.stderr.write(f"{len(pairs):8,} pairs in {options.output}\n")


if __name__ == "__main__":
    try:
        main()
    except RelvecError as error:
        sys.exit(f"Error: {error}")
