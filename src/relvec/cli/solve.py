"""relvec solve: answer an analogy question."""

from typing import Annotated

import typer

from relvec.cli.options import BackendOption, Device, Json, Model, ScoringOption, load_model
from relvec.cli.output import print_json, print_table
from relvec.errors import RelvecError
from relvec.hub.catalogue import DEFAULT_MODEL
from relvec.pairs import parse_pair


def solve(
    pairs: Annotated[list[str], typer.Argument(help="The stem and then the choices, as head:tail.")],
    model: Model = DEFAULT_MODEL,
    scoring: ScoringOption = "forward",
    device: Device = None,
    backend: BackendOption = "auto",
    json: Json = False,
) -> None:
    """Answer an analogy question: which choice is related as the stem (the first pair) is?"""
    stem, *choices = [parse_pair(pair) for pair in pairs]
    if not choices:
        raise RelvecError("The question has no choices; give them after the stem.")
    loaded = load_model(model, device, backend=backend)
    from relvec.similarity import check_scoring

    solution = loaded.solve(stem, choices, scoring=check_scoring(scoring))
    names = [":".join(choice) for choice in choices]
    if json:
        scores = dict(enumerate(solution.scores))
        rows = [
            {"choice": name, "head": head, "tail": tail, "score": scores[index]}
            for index, (name, (head, tail)) in enumerate(zip(names, choices, strict=True))
        ]
        print_json(
            {"stem": ":".join(stem), "answer": names[solution.answer], "index": solution.answer, "choices": rows}
        )
    else:
        table = [
            ["->" if index == solution.answer else "", name, f"{solution.scores[index]:.3f}"]
            for index, name in enumerate(names)
        ]
        print_table(["", "choice", "similarity"], table, title=f"{':'.join(stem)} is as")
