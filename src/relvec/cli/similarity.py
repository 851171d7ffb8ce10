"""relvec similarity: how alike are the relations of several pairs to that of the first?"""

from typing import Annotated

import typer

from relvec.cli.options import BackendOption, Device, Json, Model, ScoringOption, load_model
from relvec.cli.output import pair_json, print_json, print_table
from relvec.errors import RelvecError
from relvec.hub.catalogue import DEFAULT_MODEL
from relvec.pairs import parse_pair


def similarity(
    pairs: Annotated[list[str], typer.Argument(help="The query and the pairs to compare it with, as head:tail.")],
    model: Model = DEFAULT_MODEL,
    scoring: ScoringOption = "forward",
    device: Device = None,
    backend: BackendOption = "auto",
    json: Json = False,
) -> None:
    """Rank pairs by how alike their relation is to that of the first pair."""
    query, *others = [parse_pair(pair) for pair in pairs]
    if not others:
        raise RelvecError("Only one pair was given; add at least one to compare it with.")
    loaded = load_model(model, device, backend=backend)
    from relvec.similarity import check_scoring

    found = loaded.rank(query, others, scoring=check_scoring(scoring))
    rows = [(pair, score) for pair, score in found if isinstance(pair, tuple)]
    if json:
        ranking = [{**pair_json(pair), "score": score} for pair, score in rows]
        print_json({"query": ":".join(query), "ranking": ranking})
    else:
        table = [[":".join(pair), f"{score:.3f}"] for pair, score in rows]
        print_table(["pair", "similarity"], table, title=f"related as {':'.join(query)} is")
