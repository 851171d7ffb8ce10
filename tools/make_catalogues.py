"""Write the catalogues of relations that are shipped with the bundled models.

python tools/make_catalogues.py [relvec-mpnet ...] [--dtype bfloat16]

Each model encodes some 25,000 pairs, through the cache; without names, those of `SHIPPED` are made. A model that is
retrained needs a new one: `relvec explain` uses a shipped catalogue only with the model that made it.
"""

import argparse

from relvec import RelBERT
from relvec.io.files import written_whole
from relvec.model.catalogues import make_catalogue, shipped, with_texts

SHIPPED = ("relvec-mpnet", "relvec-mpnet-semeval", "relvec-small")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=SHIPPED, help="names of bundled models, or their folders")
    parser.add_argument("--dtype", default="float32", help="what the model computes in")
    options = parser.parse_args()
    for name in options.models:
        model = RelBERT.from_pretrained(name, dtype=options.dtype)
        content = with_texts(make_catalogue(model)).to_bytes()
        shipped(model.name).parent.mkdir(exist_ok=True)
        with written_whole(shipped(model.name)) as partial:
            partial.write_bytes(content)


if __name__ == "__main__":
    main()
