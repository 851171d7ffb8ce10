"""Write the catalogues of relations that are shipped with the bundled models.

python tools/make_catalogues.py [relvec-large relvec-mpnet ...] [--dtype bfloat16]

Each model and relvec-large, the teacher of all, encode some 70,000 pairs, through the cache; without names, those of
`SHIPPED` are made. A model that is retrained needs a new one: `relvec explain` uses a shipped catalogue only with the
model that made it.
"""

import argparse

from teaching import with_learned_prototypes

from relvec import RelBERT
from relvec.data.sources import DEFAULT_SOURCE, load
from relvec.io.files import atomic_write
from relvec.model.cached_vectors import ModelVectors
from relvec.model.catalogues import bundled_catalogue_path, make_catalogue, with_texts
from relvec.naming import Catalogue
from relvec.naming.entries import bundled_groups

TEACHER = "relvec-large"
SHIPPED = (TEACHER, "relvec-mpnet", "relvec-mpnet-semeval", "relvec-small")
WITH_TEXTS = ("relvec-mpnet", "relvec-small")
"""Models whose catalogue has vectors of the definitions; with the others, `relvec find` encodes them once."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=SHIPPED, help="names of bundled models, or their folders")
    parser.add_argument("--dtype", default="float32", help="what the model computes in")
    options = parser.parse_args()
    teacher = RelBERT.from_pretrained(TEACHER, dtype="bfloat16")
    for name in options.models:
        model = teacher if name == TEACHER else RelBERT.from_pretrained(name, dtype=options.dtype)
        catalogue = taught_catalogue(model, teacher)
        content = (with_texts(catalogue) if model.name in WITH_TEXTS else catalogue).to_bytes()
        bundled_catalogue_path(model.name).parent.mkdir(exist_ok=True)
        with atomic_write(bundled_catalogue_path(model.name)) as partial:
            partial.write_bytes(content)


def taught_catalogue(model: RelBERT, teacher: RelBERT) -> Catalogue:
    """The catalogue of a model, with prototypes that learned from all training pairs and what the teacher says of them.

    A model that is its own teacher learns from what it says before.
    """
    made, vectors, of_teacher = make_catalogue(model), ModelVectors(model), ModelVectors(teacher)
    names = made if teacher is model else teacher.catalogue
    return with_learned_prototypes(
        made,
        load(DEFAULT_SOURCE),
        lambda pairs: vectors.vectors(pairs)[0],
        lambda pairs: names.by_row(of_teacher.vectors(pairs)[0]),
        groups=bundled_groups(),
    )


if __name__ == "__main__":
    main()
