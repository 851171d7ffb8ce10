"""relvec neighbours and complete: what an index knows of a relation."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relvec.cli.explain import LEAST_RELATEDNESS, sentence_of
from relvec.cli.options import Encoder, Index, Json, start_quickly, with_shared_options
from relvec.cli.output import Table, pair_json, show
from relvec.errors import RelvecError
from relvec.pairs import Pair, as_word, parse_pair

if TYPE_CHECKING:
    from relvec.model.relation_model import RelBERT

Reranker = Annotated[
    str | None,
    typer.Option(help="A better model to rank the 1,000 best candidates of the index's own model (--model)."),
]


@with_shared_options
def neighbours(
    pairs: Annotated[list[str], typer.Argument(help="One or more examples of a relation, as head:tail.")],
    *,
    k: Annotated[int, typer.Option("--top", "-k", min=1, help="How many neighbours.")] = 10,
    index: Index = None,
    shared_words: Annotated[
        bool, typer.Option("--shared-words", help="Also pairs that share a word with the examples.")
    ] = False,
    relation: Annotated[
        list[str] | None, typer.Option(help="Only pairs with this relation label; may be repeated.")
    ] = None,
    rerank: Annotated[
        int | None,
        typer.Option(
            min=0, help="How many candidates are encoded again: 0, or at least k; by default 32, or 2k if that is more."
        ),
    ] = None,
    reranker: Reranker = None,
    encoder: Encoder,
    json: Json = False,
) -> None:
    """Find the pairs of an index with the most similar relation."""
    query = [parse_pair(pair) for pair in pairs]
    start_quickly()
    from relvec.index import PairIndex

    opened = PairIndex.load(index)
    model, judge = encoder.load(), load_reranker(reranker, encoder)
    found = opened.neighbours(
        model, query, k, rerank=rerank, reranker=judge, shared_words=shared_words, relation=relation
    )
    texts = in_words(judge or model, [pair for pair, _, _ in found])
    rows = [
        {**pair_json(pair), "score": score, "relation": label or None, "in_words": text}
        for (pair, score, label), text in zip(found, texts, strict=True)
    ]
    optional = [name for name in ("relation", "in_words") if any(row[name] for row in rows)]
    columns = ["pair", "score", *optional]
    table = [[f"{row[name]:.3f}" if name == "score" else row[name] for name in columns] for row in rows]
    names = [":".join(pair) for pair in query]
    title = f"nearest to {', '.join(names)}"
    show(json, {"query": names, "neighbours": rows}, Table([name.replace("_", " ") for name in columns], table, title))


@with_shared_options
def complete(
    analogy: Annotated[list[str], typer.Argument(help="a:b :: c:?  (the :: and the :? may be left out).")],
    *,
    k: Annotated[int, typer.Option("--top", "-k", min=1, help="How many words.")] = 10,
    index: Index = None,
    word_vectors: Annotated[
        Path | None, typer.Option(help="A word2vec or GloVe file, for more candidates: words near c.")
    ] = None,
    reranker: Reranker = None,
    encoder: Encoder,
    json: Json = False,
) -> None:
    """Complete an analogy: which word is to c as b is to a?"""
    (a, b), c = parse_analogy(analogy)
    start_quickly()
    from relvec.index import PairIndex
    from relvec.index import complete as completed

    opened = PairIndex.load(index)
    model, judge = encoder.load(), load_reranker(reranker, encoder)
    found = completed(model, opened, a, b, c, k, word_vectors=word_vectors, reranker=judge)
    texts = in_words(judge or model, [(c, word) for word, _ in found])
    words = [{"word": word, "score": score, "in_words": text} for (word, score), text in zip(found, texts, strict=True)]
    columns = ["word", "score"] + ["in words"] * any(texts)
    table = [[word, f"{score:.3f}", text][: len(columns)] for (word, score), text in zip(found, texts, strict=True)]
    title = f"{a} is to {b} as {c} is to"
    show(json, {"pair": f"{a}:{b}", "head": c, "words": words}, Table(columns, table, title))


def in_words(model: "RelBERT", pairs: Sequence[Pair]) -> list[str | None]:
    """How each pair is related; None where no relation is known, or the model has no catalogue yet."""
    catalogue = model.existing_catalogue
    if catalogue is None or not pairs:
        return [None] * len(pairs)
    vectors = model.encode(pairs, truncate=True)
    best = zip(catalogue.explain(pairs, vectors, 1), catalogue.related(vectors), strict=True)
    return [sentence_of(first) if related >= LEAST_RELATEDNESS else None for (first,), related in best]


def load_reranker(name: str | None, encoder: Encoder) -> "RelBERT | None":
    """The model that ranks what the index's own has found."""
    return replace(encoder, model=name).load("batch") if name else None


def parse_analogy(parts: list[str]) -> tuple[Pair, str]:
    """
    >>> parse_analogy(["barista:coffee", "::", "sommelier:?"]), parse_analogy(["ice cream:cone", "tea"])
    ((('barista', 'coffee'), 'sommelier'), (('ice cream', 'cone'), 'tea'))
    """
    halves = " ".join(parts).split("::") if any("::" in part for part in parts) else parts
    if len(halves) != 2:
        raise RelvecError(f"{' '.join(parts)!r} is not an open analogy; write a:b :: c:?.")
    third = halves[1].strip().removesuffix("?").rstrip().removesuffix(":")
    if ":" in third:
        raise RelvecError(f"{halves[1].strip()!r} leaves nothing open; write it as {third.partition(':')[0]}:?.")
    return parse_pair(halves[0].strip()), as_word(third, f"in {' '.join(parts)!r} ")
