"""How often open analogies are completed right, and what an unrelated candidate should cost.

python benchmarks/completion.py [-m relvec-mpnet] [--dtype bfloat16] [--questions 150] > completion.jsonl

a : b :: c : ? with a training pair (a, b) of a bundled relation and a held-out pair (c, d). The index holds
all training pairs of the bundled relations, so no answer is attested in it. The cost is chosen by the first held-out
pair of each relation, and the second is what is reported.
"""

import argparse
import json
import random
from collections.abc import Sequence

import numpy as np

from relvec import PairIndex, RelBERT
from relvec.data.rated import RatedRelation, split
from relvec.data.sources import load
from relvec.index.completion import ATTESTED, candidate_words
from relvec.model.cached_vectors import ModelVectors
from relvec.naming.building import EvaluationPairs, held_out
from relvec.similarity import cosine

COSTS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", default="relvec-mpnet")
    parser.add_argument("--dtype", default="float32", help="what the model computes in")
    parser.add_argument("--questions", type=int, default=150, help="how many to choose by, and to report")
    options = parser.parse_args()
    model = RelBERT.from_pretrained(options.model, dtype=options.dtype)
    relations = load("bundled")
    for name, place in (("to choose by", 0), ("to report", 1)):
        found = completion(model, relations, held_out(relations, place), options.questions)
        print(json.dumps({name: found}), flush=True)


def completion(
    model: RelBERT, relations: Sequence[RatedRelation], asked: EvaluationPairs, questions: int
) -> dict[str, dict[str, float]]:
    """Hits at 1 and 10 by several scores, and how often the answer is a candidate at all."""
    source = ModelVectors(model)
    trained = [relation.positives for relation in split(relations, "train")]
    known = list(dict.fromkeys(pair for pairs in trained for pair in pairs))
    index = PairIndex.of_vectors(known, source.vectors(known)[0], model=model, kind="flat")
    chosen = random.Random(0).sample(range(len(asked.related)), min(questions, len(asked.related)))
    places: dict[str, list[int]] = {}
    for at in chosen:
        (a, b), (c, d) = trained[asked.labels[at]][0], asked.related[at]
        words = candidate_words(model, index, a, b, c)
        vectors = source.vectors([(a, b), *((c, word) for word in words)])[0]
        similar, related = cosine(vectors[:1], vectors[1:])[0], model.catalogue.related(vectors[1:])
        partners = index.partners(c)
        scores = {"cosine": similar, "attested": similar + ATTESTED * np.array([word in partners for word in words])}
        scores |= {f"unrelated costs {cost}": similar - cost * (1 - related) for cost in COSTS}
        for name, score in scores.items():
            ordered = [words[place] for place in np.argsort(-score, kind="stable")]
            places.setdefault(name, []).append(ordered.index(d) + 1 if d in ordered else len(known))
    hits = {name: {f"hits at {k}": float(np.mean(np.array(p) <= k)) for k in (1, 10)} for name, p in places.items()}
    among = float(np.mean(np.array(places["cosine"]) < len(known)))
    return hits | {"questions": {"asked": len(chosen), "answer among the candidates": among}}


if __name__ == "__main__":
    main()
