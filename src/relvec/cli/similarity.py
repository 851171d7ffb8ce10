"""relvec similarity and solve: which pairs are related as the first one is?"""

from typing import Annotated

import typer

from relvec.cli.options import Encoder, Json, with_shared_options
from relvec.cli.output import Table, pair_json, show
from relvec.errors import RelvecError
from relvec.pairs import Pair, parse_pair

ScoringOption = Annotated[str, typer.Option(help="forward, reverse or bidirectional.")]


@with_shared_options
def similarity(
    pairs: Annotated[list[str], typer.Argument(help="The query and the pairs to compare it with, as head:tail.")],
    *,
    scoring: ScoringOption = "forward",
    encoder: Encoder,
    json: Json = False,
) -> None:
    """Rank pairs by how similar their relation is to the first one."""
    query, others = _first_and_rest(pairs, "Only one pair was given; add at least one to compare it with.")
    found = encoder.load().rank(query, others, scoring=scoring)  # type: ignore[arg-type]  # the model checks it
    rows = [(pair, score) for pair, score in found if isinstance(pair, tuple)]
    ranking = [{**pair_json(pair), "score": score} for pair, score in rows]
    table = [[":".join(pair), f"{score:.3f}"] for pair, score in rows]
    title = f"similarity to {':'.join(query)}"
    show(json, {"query": ":".join(query), "ranking": ranking}, Table(["pair", "similarity"], table, title))


@with_shared_options
def solve(
    pairs: Annotated[list[str], typer.Argument(help="The stem and then the choices, as head:tail.")],
    *,
    scoring: ScoringOption = "forward",
    encoder: Encoder,
    json: Json = False,
) -> None:
    """Answer an analogy question; the first pair is the stem."""
    stem, choices = _first_and_rest(pairs, "The question has no choices; give them after the stem.")
    solution = encoder.load().solve(stem, choices, scoring=scoring)  # type: ignore[arg-type]
    names = [":".join(choice) for choice in choices]
    scored = list(zip(names, choices, solution.scores, strict=True))
    listed = [{"choice": name, "head": head, "tail": tail, "score": score} for name, (head, tail), score in scored]
    answer = {"stem": ":".join(stem), "answer": names[solution.answer], "index": solution.answer, "choices": listed}
    rows = [
        ["->" if index == solution.answer else "", name, f"{score:.3f}"]
        for index, (name, _, score) in enumerate(scored)
    ]
    show(json, answer, Table(["", "choice", "similarity"], rows, f"similarity to {':'.join(stem)}"))


def _first_and_rest(texts: list[str], problem: str) -> tuple[Pair, list[Pair]]:
    first, *rest = [parse_pair(text) for text in texts]
    if not rest:
        raise RelvecError(problem)
    return first, rest
