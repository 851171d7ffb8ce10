"""Renames relations of an index; nothing is encoded, and its vectors stay as they are.

python vocabulary/relabel.py INDEX 'OLD=NEW' ['OLD=NEW' ...]
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from relvec.index.storage import META, read_meta, writing_index
from relvec.index.vocabulary import PairVocabulary
from relvec.io.files import atomic_write, checksum


def relabel(folder: Path, names: Mapping[str, str]) -> int:
    """Give relations another name, "" for none, and return how many pairs that changed."""
    with writing_index(folder):
        meta = read_meta(folder)
        meta.check_files(folder, every=True)
        file = meta.pairs_file(folder)
        old = PairVocabulary.read(file)
        new = PairVocabulary.of(old.pairs(), [names.get(relation, relation) for relation in old.all_relations()])
        with atomic_write(file) as partial:
            new.write(partial)
        told = meta.changed({"pairs_bytes": file.stat().st_size, "pairs_sha256": checksum(file)})
        with atomic_write(folder / META) as partial:
            partial.write_text(told.to_json(), encoding="utf-8")
    return sum(relation in names for relation in old.all_relations())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("names", nargs="+", metavar="OLD=NEW")
    options = parser.parse_args()
    count = relabel(options.index, dict(name.split("=", 1) for name in options.names))
    sys.stderr.write(f"{count:,} pairs have another relation\n")


if __name__ == "__main__":
    main()
