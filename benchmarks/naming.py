"""How well relations are named, whether "no relation" is noticed, and what the probabilities are worth.

python benchmarks/naming.py [-m relvec-mpnet] [--data-dir FOLDER] [--dtype bfloat16] [--figure FILE] > naming.jsonl

Held-out pairs of the bundled relations: by the first of each everything was chosen and calibrated, the second is
measured here, beside as many scrambled pairs and random ones. With the folder of the benchmarks, relatedness is also
measured on the random class of those that have one, on at most 500 pairs of the validation part and of the test part.
The definitions of `experiments/definitions.tsv` say relations in other words. Own relations, for `RelationNamer`, are
those that the model was not trained on; the catalogue is then made without them.
"""

import argparse
import csv
import json
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relvec import RelationNamer, RelBERT
from relvec.data.benchmarks.classification import load_labelled
from relvec.data.rated import RatedRelation, split
from relvec.data.sources import load
from relvec.io.files import data_folder
from relvec.model.cached_vectors import ModelVectors
from relvec.model.catalogues import encoded_texts, with_texts
from relvec.naming import Catalogue
from relvec.naming.building import EvaluationPairs, build_catalogue, held_out, is_named
from relvec.naming.catalogue import Prototypes
from relvec.naming.entries import Entries, bundled_groups, entries_of
from relvec.naming.relation_space import means_of
from relvec.similarity import Vectors, cosine

DEFINITIONS = Path(__file__).parents[1] / "experiments" / "definitions.tsv"
WITH_RANDOM_CLASS = ("bless", "cogalexv", "khn", "root09")
BENCHMARK_PAIRS = 500
MEANS_OF = 16
EXAMPLES = (1, 2, 4, 8, 16)
NAMED = 20_000
ENCODED = 512
BINS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", default="relvec-mpnet")
    parser.add_argument("--dtype", default="float32", help="what the model computes in")
    parser.add_argument("--data-dir", help="the folder with the benchmarks; by default $RELVEC_DATA")
    parser.add_argument("--figure", help="the .svg file of the reliability diagram")
    options = parser.parse_args()
    model = RelBERT.from_pretrained(options.model, dtype=options.dtype)
    source = ModelVectors(model)
    relations = load("bundled")
    asked = held_out(relations, 1)
    vectors = [source.vectors(pairs)[0] for pairs in (asked.related, asked.scrambled, asked.random)]
    catalogue, entries = model.catalogue, entries_of(relations, bundled_groups())
    calibrated = calibration(catalogue, entries, asked, vectors)
    show("naming", naming(catalogue, entries, relations, asked, vectors[0]))
    fine = build_catalogue(relations, lambda pairs: source.vectors(pairs)[0])
    show("naming, each relation by itself", naming(fine, entries_of(relations), relations, asked, vectors[0]))
    show("naming by the mean of 16 pairs and cosine", naming_by_means(relations, asked, vectors[0], source))
    for name, others in (("scrambled", vectors[1]), ("random", vectors[2])):
        show(f"relatedness, AUC against {name} pairs", auc(catalogue.related(vectors[0]), catalogue.related(others)))
    show("calibration", calibrated)
    show("naming of reversed pairs", naming_reversed(catalogue, entries, asked, source))
    show("definitions in other words", by_definition(with_texts(catalogue), relations, entries))
    show("own relations", own_relations(model, relations, source))
    show("pairs per second", rates(model, catalogue, relations))
    if options.figure:
        draw(calibrated, options.figure)
    if data_folder(options.data_dir) is not None:
        for name in WITH_RANDOM_CLASS:
            found = on_benchmark(catalogue, name, source, options.data_dir)
            show(f"relatedness, AUC against the random class of {name}", found)


def show(name: str, value: Any) -> None:
    print(json.dumps({name: value}), flush=True)


def naming(
    catalogue: Catalogue, entries: Entries, relations: Sequence[RatedRelation], asked: EvaluationPairs, vectors: Vectors
) -> dict[str, Any]:
    """How often the right entry is named first, and among the first five."""
    ranks = ranks_of(catalogue.names(vectors), is_named(catalogue.answers, entries, asked.labels))
    kept = np.array([relations[label].is_for_testing for label in asked.labels])
    forward = with_rows(catalogue, len(relations))
    known = ranks_of(forward.names(vectors), is_named(forward.answers, entries, asked.labels))
    return {
        "entries": len(catalogue.relations),
        "all": hits(ranks),
        "all, if the direction is known": hits(known),
        "relations that the model may have been trained on": hits(ranks[~kept]),
        "relations kept for testing": hits(ranks[kept]),
    }


def with_rows(catalogue: Catalogue, count: int) -> Catalogue:
    """The catalogue with its first rows only: those of the relations, without those of their reverses."""
    rows, kept = catalogue.prototypes, slice(count)
    first = Prototypes(
        rows.means[kept], rows.counts[kept], rows.relations[kept], rows.is_reversed[kept], rows.wordings[kept]
    )
    return replace(catalogue, prototypes=first)


def naming_reversed(
    catalogue: Catalogue, entries: Entries, asked: EvaluationPairs, source: ModelVectors
) -> dict[str, float]:
    """The same of the pairs turned round: named right if it is said that the relation is reversed."""
    vectors = source.vectors([pair[::-1] for pair in asked.related])[0]
    numbers, is_reversed = catalogue.answers
    is_right = is_named((numbers, ~is_reversed), entries, asked.labels)
    has_one = is_right.any(axis=1)  # a symmetric relation has no other direction
    return hits(ranks_of(catalogue.names(vectors[has_one]), is_right[has_one]))


def naming_by_means(
    relations: Sequence[RatedRelation], asked: EvaluationPairs, vectors: Vectors, source: ModelVectors
) -> dict[str, float]:
    """What a catalogue is compared with: one mean vector a relation, and the best cosine."""
    pairs = [(pair, n) for n, r in enumerate(split(relations, "train")) for pair in r.positives[:MEANS_OF]]
    listed, numbers = zip(*pairs, strict=True)
    means = means_of(source.vectors(listed)[0], np.array(numbers))
    return hits(ranks_of(cosine(vectors, means), np.arange(len(relations)) == asked.labels[:, None]))


def calibration(
    catalogue: Catalogue, entries: Entries, asked: EvaluationPairs, vectors: Sequence[Vectors]
) -> dict[str, Any]:
    """Of names among related pairs, of names among related and other pairs, and of relatedness itself."""
    names = [catalogue.names(each) for each in vectors]
    related = [catalogue.related(each) for each in vectors]
    right = is_named(catalogue.answers, entries, asked.labels)
    is_right = right[np.arange(len(vectors[0])), names[0].argmax(axis=1)]
    nothing = np.zeros(len(vectors[1]) // 2 + len(vectors[2]) // 2, dtype=bool)
    # As many related pairs as others.
    joint = [n.max(axis=1) * r for n, r in zip(names, related, strict=True)]
    halves = [each[: len(each) // 2] for each in joint[1:]]
    said = {
        "name, of related pairs": (names[0].max(axis=1), is_right),
        "name, of related and unrelated pairs": (
            np.concatenate([joint[0], *halves]),
            np.concatenate([is_right, nothing]),
        ),
        "related at all": (
            np.concatenate([related[0], *(each[: len(each) // 2] for each in related[1:])]),
            np.concatenate([np.ones(len(related[0]), dtype=bool), nothing]),
        ),
    }
    return {
        name: {"expected calibration error": calibration_error(*each), "said, true, pairs": reliability(*each)}
        for name, each in said.items()
    }


def reliability(probabilities: NDArray[np.floating], is_true: NDArray[np.bool_]) -> list[tuple[float, float, int]]:
    """Of each tenth of the probabilities: the mean of what was said, how often it was true, and how many there are.

    >>> reliability(np.array([0.72, 0.78, 0.1]), np.array([True, False, False]))
    [(0.1, 0.0, 1), (0.75, 0.5, 2)]
    """
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    found = [(probabilities[bins == each], is_true[bins == each]) for each in np.unique(bins)]
    return [(float(said.mean()), float(true.mean()), len(said)) for said, true in found]


def calibration_error(probabilities: NDArray[np.floating], is_true: NDArray[np.bool_]) -> float:
    """The expected calibration error: how far what was said is from what was true, over ten bins."""
    rows = reliability(probabilities, is_true)
    return sum(count * abs(said - true) for said, true, count in rows) / len(probabilities)


def draw(calibrated: dict[str, Any], path: str) -> None:
    """The reliability diagram: how often what was said with some probability was true; a dot's area is its pairs."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5, 5))
    axes.plot([0, 1], [0, 1], color="lightgrey")
    for name, each in calibrated.items():
        said, true, pairs = zip(*each["said, true, pairs"], strict=True)
        label = f"{name} (error {each['expected calibration error']:.3f})"
        axes.scatter(said, true, s=[count / 2 for count in pairs], label=label, alpha=0.7)
    axes.set(xlabel="probability that was said", ylabel="share that was true", xlim=(0, 1), ylim=(0, 1))
    axes.legend(loc="upper left", fontsize="small")
    figure.savefig(path, metadata={"Date": None})


def by_definition(catalogue: Catalogue, relations: Sequence[RatedRelation], entries: Entries) -> dict[str, Any]:
    """The rank of the right entry for definitions that the catalogue lacks."""
    rows = list(read_definitions())
    number = {relation.name: entry for relation, entry in zip(relations, entries.numbers, strict=True)}
    vectors = encoded_texts([text for _, text in rows], catalogue.text_encoder)
    labels = np.array([number[name] for name, _ in rows])
    ranks = ranks_of(catalogue.by_text(vectors), np.arange(len(entries.listed)) == labels[:, None])
    return {"mean reciprocal rank": float(np.mean(1 / ranks)), **hits(ranks)}


def read_definitions() -> list[tuple[str, str]]:
    with DEFINITIONS.open(encoding="utf-8") as file:
        return [(row["relation"], row["definition"]) for row in csv.DictReader(file, delimiter="\t")]


def own_relations(model: RelBERT, relations: Sequence[RatedRelation], source: ModelVectors) -> dict[str, float]:
    """How often a namer is right on relations that are new to model and catalogue, by pairs and by definitions."""
    own = [relation for relation in relations if relation.is_for_testing]
    others = [relation for relation in relations if not relation.is_for_testing]
    made = build_catalogue(others, lambda pairs: source.vectors(pairs)[0], groups=bundled_groups())
    catalogue, model.catalogue = model.catalogue, with_texts(replace(made, text_encoder=model.catalogue.text_encoder))
    asked = [(pair, relation.name) for relation in split(own, "valid") for pair in relation.positives]
    found: dict[str, float] = {"relations": len(own), "pairs": len(asked)}
    by_definition = RelationNamer(model, definitions={relation.name: relation.definition for relation in own}).fit()
    found["definitions only"] = by_definition.score(*zip(*asked, strict=True))
    for count in EXAMPLES:
        known = [(pair, relation.name) for relation in split(own, "train") for pair in relation.positives[:count]]
        found[f"{count} pairs"] = RelationNamer(model).fit(*zip(*known, strict=True)).score(*zip(*asked, strict=True))
    model.catalogue = catalogue
    return found


def rates(model: RelBERT, catalogue: Catalogue, relations: Sequence[RatedRelation]) -> dict[str, float]:
    """Encoding of pairs, and naming of pairs whose vectors are known."""
    pairs = [pair for relation in relations for pair in relation.positives]
    start = time.perf_counter()
    vectors = model.encode(random.Random(0).sample(pairs, ENCODED))
    encoded = time.perf_counter()
    for _ in catalogue.explain(pairs[:NAMED], np.resize(vectors, (NAMED, model.dim)), 1):
        pass
    return {"encoded": ENCODED / (encoded - start), "named": NAMED / (time.perf_counter() - encoded)}


def on_benchmark(catalogue: Catalogue, name: str, source: ModelVectors, data_dir: str | None) -> dict[str, float]:
    """Related pairs of a classification dataset against those of its random class."""
    found: dict[str, float] = {}
    for part, data in load_labelled(name, data_dir).items():
        if part != "train":
            chosen = random.Random(0).sample(range(len(data.pairs)), min(BENCHMARK_PAIRS, len(data.pairs)))
            related = catalogue.related(source.vectors([data.pairs[at] for at in chosen])[0])
            is_random = np.array([data.labels[at] == "random" for at in chosen])
            found |= {part: auc(related[~is_random], related[is_random]), f"pairs of {part}": len(chosen)}
    return found


def ranks_of(scores: NDArray[np.floating], is_right: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The place of the right one in each row, from 1."""
    best = np.where(is_right, scores, -np.inf).max(axis=1, keepdims=True)
    return (scores > best).sum(axis=1) + 1


def hits(ranks: NDArray[np.int64]) -> dict[str, float]:
    return {"first": float(np.mean(ranks == 1)), "among five": float(np.mean(ranks <= 5)), "pairs": len(ranks)}


def auc(related: NDArray[np.floating], others: NDArray[np.floating]) -> float:
    """The probability that a related pair scores higher than another one; a tie counts half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, related, side="left")
    not_above = np.searchsorted(ordered, related, side="right")
    return float((below + not_above).mean() / 2 / len(others))


if __name__ == "__main__":
    main()
