"""How well relations are named, whether "no relation" is noticed, and what the probabilities are worth.

python benchmarks/naming.py [-m relvec-mpnet] [--data-dir FOLDER] [--dtype bfloat16] [--figure FILE] > naming.jsonl

Held-out pairs of the bundled relations: the first of each calibrated the catalogue, the second is measured here, beside
as many scrambled pairs and random ones. With the folder of the benchmarks, relatedness is also measured on the random
class of those that have one, on at most 500 pairs of the test part. The definitions of
`experiments/definitions.tsv` say relations of the catalogue in other words.
"""

import argparse
import csv
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relvec import PairIndex, RelBERT
from relvec.data.benchmarks.classification import load_labelled
from relvec.data.rated import RatedRelation, split
from relvec.data.sources import load
from relvec.index.completion import ATTESTED, candidate_words
from relvec.io.files import data_folder
from relvec.model.cached_vectors import ModelVectors
from relvec.model.catalogues import encoded_texts, with_texts
from relvec.naming import Catalogue
from relvec.naming.building import PAIRS_PER_RELATION, Asked, held_out, is_named
from relvec.naming.calibration import calibration_error, reliability
from relvec.naming.relation_space import means_of
from relvec.similarity import Vectors, cosine

DEFINITIONS = Path(__file__).parents[1] / "experiments" / "definitions.tsv"
WITH_RANDOM_CLASS = ("bless", "cogalexv", "khn", "root09")
BENCHMARK_PAIRS = 500
MEANS_OF = 16
COMPLETIONS = 50
COSTS = (0.1, 0.2, 0.3, 0.5, 1.0)


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
    catalogue = model.catalogue
    calibrated = calibration(catalogue, asked, vectors)
    show("naming", naming(catalogue, relations, asked, vectors[0]))
    show("naming by the mean of 16 pairs and cosine", naming_by_means(relations, asked, vectors[0], source))
    for name, others in (("scrambled", vectors[1]), ("random", vectors[2])):
        show(f"relatedness, AUC against {name} pairs", auc(catalogue.related(vectors[0]), catalogue.related(others)))
    show("calibration", calibrated)
    show("naming of reversed pairs", naming_reversed(catalogue, asked, source))
    show("definitions in other words", by_definition(with_texts(catalogue)))
    if options.figure:
        draw(calibrated, options.figure)
    if data_folder(options.data_dir) is not None:
        for name in WITH_RANDOM_CLASS:
            show(
                f"relatedness, AUC against the random class of {name}",
                on_benchmark(catalogue, name, source, options.data_dir),
            )
    # The cost of being unrelated is a constant of the index; these are what others would give.
    for name, pairs in (("to choose by", held_out(relations, 0)), ("to report", asked)):
        show(f"completion, {name}", completion(model, catalogue, relations, pairs, source))


def show(name: str, value: Any) -> None:
    print(json.dumps({name: value}), flush=True)


def naming(catalogue: Catalogue, relations: Sequence[RatedRelation], asked: Asked, vectors: Vectors) -> dict[str, Any]:
    """How often the right relation is named first, and among the first five."""
    ranks = ranks_of(catalogue.names(vectors), is_named(catalogue, asked.labels))
    kept = np.array([relations[label].is_for_testing for label in asked.labels])
    forward = ~catalogue.prototypes.is_reversed
    known = ranks_of(catalogue.names(vectors)[:, forward], is_named(catalogue, asked.labels)[:, forward])
    return {
        "all": hits(ranks),
        "all, if the direction is known": hits(known),
        "relations that the model may have been trained on": hits(ranks[~kept]),
        "relations kept for testing": hits(ranks[kept]),
    }


def naming_reversed(catalogue: Catalogue, asked: Asked, source: ModelVectors) -> dict[str, float]:
    """The same of the pairs turned round: named right if it is said that the relation is reversed."""
    vectors = source.vectors([pair[::-1] for pair in asked.related])[0]
    prototypes = catalogue.prototypes
    is_right = (prototypes.relations == asked.labels[:, None]) & prototypes.is_reversed
    has_one = is_right.any(axis=1)  # a symmetric relation has no other direction
    return hits(ranks_of(catalogue.names(vectors[has_one]), is_right[has_one]))


def naming_by_means(
    relations: Sequence[RatedRelation], asked: Asked, vectors: Vectors, source: ModelVectors
) -> dict[str, float]:
    """What a catalogue is compared with: one mean vector a relation, and the best cosine."""
    pairs = [(pair, n) for n, r in enumerate(split(relations, "train")) for pair in r.positives[:MEANS_OF]]
    listed, numbers = zip(*pairs, strict=True)
    means = means_of(source.vectors(listed)[0], np.array(numbers))
    return hits(ranks_of(cosine(vectors, means), np.arange(len(relations)) == asked.labels[:, None]))


def calibration(catalogue: Catalogue, asked: Asked, vectors: Sequence[Vectors]) -> dict[str, Any]:
    """Of names among related pairs, of names among related and other pairs, and of relatedness itself."""
    names = [catalogue.names(each) for each in vectors]
    related = [catalogue.related(each) for each in vectors]
    is_right = is_named(catalogue, asked.labels)[np.arange(len(vectors[0])), names[0].argmax(axis=1)]
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


def by_definition(catalogue: Catalogue) -> dict[str, Any]:
    """The rank of the right relation for definitions that the catalogue lacks."""
    rows = list(read_definitions())
    numbers = [relation.name for relation in catalogue.relations]
    vectors = encoded_texts([text for _, text in rows], catalogue.text_encoder)
    labels = np.array([numbers.index(name) for name, _ in rows])
    ranks = ranks_of(catalogue.by_text(vectors), np.arange(len(numbers)) == labels[:, None])
    return {"mean reciprocal rank": float(np.mean(1 / ranks)), **hits(ranks)}


def read_definitions() -> list[tuple[str, str]]:
    with DEFINITIONS.open(encoding="utf-8") as file:
        return [(row["relation"], row["definition"]) for row in csv.DictReader(file, delimiter="\t")]


def on_benchmark(catalogue: Catalogue, name: str, source: ModelVectors, data_dir: str | None) -> dict[str, float]:
    """Related pairs of a classification dataset against those of its random class."""
    data = load_labelled(name, data_dir)["test"]
    chosen = random.Random(0).sample(range(len(data.pairs)), min(BENCHMARK_PAIRS, len(data.pairs)))
    related = catalogue.related(source.vectors([data.pairs[at] for at in chosen])[0])
    is_random = np.array([data.labels[at] == "random" for at in chosen])
    return {"AUC": auc(related[~is_random], related[is_random]), "pairs": len(chosen)}


def completion(
    model: RelBERT, catalogue: Catalogue, relations: Sequence[RatedRelation], asked: Asked, source: ModelVectors
) -> dict[str, Any]:
    """a : b :: c : ? with a training pair (a, b) of a relation and a held-out pair (c, d), by several scores.

    The index holds the training pairs that made the catalogue, so no answer is attested in it.
    """
    trained = [relation.positives[:PAIRS_PER_RELATION] for relation in split(relations, "train")]
    known = list(dict.fromkeys(pair for pairs in trained for pair in pairs))
    index = PairIndex.of_vectors(known, source.vectors(known)[0], model=model, kind="flat")
    chosen = random.Random(0).sample(range(len(asked.related)), COMPLETIONS)
    places: dict[str, list[int]] = {}
    for at in chosen:
        (a, b), (c, d) = trained[asked.labels[at]][0], asked.related[at]
        words = candidate_words(model, index, a, b, c)
        vectors = source.vectors([(a, b), *((c, word) for word in words)])[0]
        similar, related = cosine(vectors[:1], vectors[1:])[0], catalogue.related(vectors[1:])
        partners = {word for row in np.flatnonzero(index.pairs.with_word([c])) for word in index.pairs.pair(int(row))}
        scores = {"cosine": similar, "attested": similar + ATTESTED * np.array([word in partners for word in words])}
        scores |= {f"unrelated costs {cost}": similar - cost * (1 - related) for cost in COSTS}
        for name, score in scores.items():
            ordered = [words[place] for place in np.argsort(-score, kind="stable")]
            places.setdefault(name, []).append(ordered.index(d) + 1 if d in ordered else len(known))
    return {
        name: {f"hits at {k}": float(np.mean(np.array(found) <= k)) for k in (1, 10)} for name, found in places.items()
    } | {"questions": len(chosen)}


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
