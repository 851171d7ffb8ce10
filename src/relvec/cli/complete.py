"""relvec complete: a is to b as c is to what?"""

from pathlib import Path
from typing import Annotated

import typer

from relvec.cli.neighbours import Index
from relvec.cli.options import BackendOption, Device, Json, Model, load_model, start_quickly
from relvec.cli.output import show
from relvec.errors import RelvecError
from relvec.hub.catalogue import DEFAULT_MODEL
from relvec.pairs import Pair, as_word, parse_pair


def complete(
    analogy: Annotated[list[str], typer.Argument(help="a:b :: c:?  (the :: and the :? may be left out).")],
    k: Annotated[int, typer.Option("--top", "-k", min=1, help="How many words.")] = 10,
    index: Index = None,
    word_vectors: Annotated[
        Path | None, typer.Option(help="A word2vec or GloVe file that gives more candidates: words near c.")
    ] = None,
    model: Model = DEFAULT_MODEL,
    device: Device = None,
    backend: BackendOption = "auto",
    json: Json = False,
) -> None:
    """Complete an analogy: which word is to c as b is to a?"""
    (a, b), c = parse_analogy(analogy)
    start_quickly()
    from relvec.index import PairIndex
    from relvec.index import complete as completed

    opened = PairIndex.load(index)
    found = completed(load_model(model, device, backend=backend), opened, a, b, c, k, word_vectors=word_vectors)
    words = [{"word": word, "score": score} for word, score in found]
    table = [[word, f"{score:.3f}"] for word, score in found]
    answer = {"pair": f"{a}:{b}", "head": c, "words": words}
    show(json, answer, ["word", "score"], table, title=f"{a} is to {b} as {c} is to")


def parse_analogy(parts: list[str]) -> tuple[Pair, str]:
    """
    >>> parse_analogy(["barista:coffee", "::", "sommelier:?"]), parse_analogy(["ice cream:cone", "tea"])
    ((('barista', 'coffee'), 'sommelier'), (('ice cream', 'cone'), 'tea'))
    """
    halves = " ".join(parts).split("::") if any("::" in part for part in parts) else parts
    if len(halves) != 2:
        raise RelvecError(f"{' '.join(parts)!r} is no open analogy; write a:b :: c:?.")
    third = halves[1].strip().removesuffix("?").rstrip().removesuffix(":")
    if ":" in third:
        raise RelvecError(f"{halves[1].strip()!r} leaves nothing open; write it as {third.partition(':')[0]}:?.")
    return parse_pair(halves[0].strip()), as_word(third, f"in {' '.join(parts)!r} ")
