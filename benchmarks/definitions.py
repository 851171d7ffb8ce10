"""Makes a text corpus of dictionary definitions for the baseline `pmi`, one sense a line, the headword first.

python benchmarks/definitions.py /usr/share/wordnet -o wordnet.txt                  WordNet, of Debian's wordnet-base
python benchmarks/definitions.py /usr/share/dictd/gcide.dict.dz -o gcide.txt        GCIDE, of Debian's dict-gcide

WordNet's synsets come with their words, definition and examples. GCIDE holds Webster of 1913 with its quotations.
"""

import argparse
import gzip
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from relvec.distillation.wordnet import read_synsets
from relvec.errors import RelvecError
from relvec.io.files import atomic_write

_SOURCES = re.compile(
    r"\[(1913 Webster|PJC|Webster 1913 Suppl\.|WordNet [\d.]+|Century Dict\. 1906)[^\]]*\]|\\[^\\]*\\"
)


def wordnet_lines(folder: Path) -> Iterator[str]:
    """The words of a synset, its definition and its examples."""
    for synset in read_synsets(folder).values():
        yield f"{', '.join(word.replace('_', ' ') for word in synset.words)}: {synset.definition}"


def gcide_lines(text: str) -> Iterator[str]:
    """Each paragraph of each entry, after the entry's headword; entries begin at the margin, their text does not."""
    headword = ""
    for paragraph in re.split(r"\n\s*\n", text):
        if paragraph[:1].strip():
            headword = re.split(r"[\\\[(,]", paragraph, maxsplit=1)[0].strip()
            paragraph = paragraph.removeprefix(headword)
        if told := " ".join(_SOURCES.sub(" ", paragraph).split()):
            yield f"{headword}: {told}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="the folder of WordNet's data files, or gcide.dict.dz")
    parser.add_argument("-o", "--output", type=Path, required=True, help="a text file")
    options = parser.parse_args()
    try:
        if options.source.is_dir():
            lines = wordnet_lines(options.source)
        else:
            lines = gcide_lines(gzip.decompress(options.source.read_bytes()).decode(errors="replace"))
        with atomic_write(options.output) as partial, partial.open("w", encoding="utf-8") as file:
            count = sum(1 for line in lines if file.write(f"{line}\n"))
        print(f"{options.output}: {count} lines")
    except (OSError, RelvecError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
