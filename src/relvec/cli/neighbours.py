"""relvec neighbours: which pairs of an index are related as the given ones are?"""

from pathlib import Path
from typing import Annotated

import typer

from relvec.cli.options import BackendOption, Device, Json, Model, load_model, start_quickly
from relvec.cli.output import pair_json, show
from relvec.hub.catalogue import DEFAULT_MODEL
from relvec.pairs import parse_pair

Index = Annotated[Path | None, typer.Option(help="An index folder; by default the bundled vocabulary.")]


def neighbours(
    pairs: Annotated[list[str], typer.Argument(help="One or more examples of a relation, as head:tail.")],
    k: Annotated[int, typer.Option("--top", "-k", min=1, help="How many neighbours.")] = 10,
    index: Index = None,
    model: Model = DEFAULT_MODEL,
    shared_words: Annotated[
        bool, typer.Option("--shared-words", help="Also pairs that share a word with the examples.")
    ] = False,
    relation: Annotated[
        list[str] | None, typer.Option(help="Only pairs with this relation label; may be repeated.")
    ] = None,
    rerank: Annotated[
        int | None,
        typer.Option(
            min=0, help="How many candidates of a compressed index are encoded again: by default 32, or 2k if more."
        ),
    ] = None,
    device: Device = None,
    backend: BackendOption = "auto",
    json: Json = False,
) -> None:
    """Find the pairs of an index whose relation is most like that of the given pairs."""
    query = [parse_pair(pair) for pair in pairs]
    start_quickly()
    from relvec.index import PairIndex

    opened = PairIndex.load(index)
    loaded = load_model(model, device, backend=backend)
    found = opened.neighbours(loaded, query, k, rerank=rerank, shared_words=shared_words, relation=relation)
    rows = [{**pair_json(pair), "score": score, "relation": label or None} for pair, score, label in found]
    columns = ["pair", "similarity"] + ["relation"] * any(label for _, _, label in found)
    table = [[":".join(pair), f"{score:.3f}", label][: len(columns)] for pair, score, label in found]
    title = f"related as {', '.join(':'.join(pair) for pair in query)}"
    show(json, {"query": [":".join(pair) for pair in query], "neighbours": rows}, columns, table, title)
