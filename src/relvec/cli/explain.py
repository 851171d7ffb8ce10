"""relvec explain, relations and find: relations in words."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relvec.cli.options import (
    BatchEncoder,
    Encoder,
    Index,
    Json,
    output_option,
    start_quickly,
    with_shared_options,
    workload_of,
)
from relvec.cli.output import Table, message, pair_json, show
from relvec.errors import RelvecError
from relvec.io.tables import TABLES, kind_of, read_pairs, tsv_cell
from relvec.pairs import Pair, parse_pair

if TYPE_CHECKING:
    from relvec.data.rated import RatedRelation
    from relvec.model.relation_model import RelBERT
    from relvec.naming import Explanation

LEAST_RELATEDNESS = 0.5
"""Below this probability of any relation at all, the answer is that there is none."""

NOT_SHARED = 0.1
"""Below this probability of the best relation, several pairs have none in common."""

SHOWN = 0.01
"""Less probable relations than this are not shown after the first."""

SHOWN_EXAMPLES = 3

COLUMNS = ("head", "tail", "relation", "probability", "related", "sentence")


@dataclass(frozen=True)
class OwnRelations:
    """Relations of the user's own, to be named in place of the bundled ones."""

    catalogue: Annotated[
        str | None,
        typer.Option(help="Your own relations: a file of pairs with a column relation, or a .toml with definitions."),
    ] = None
    threshold: Annotated[
        float | None, typer.Option(help="The lowest score of a pair of --catalogue that stands in its relation.")
    ] = None

    def name_by(self, model: "RelBERT") -> None:
        """Let the model name these relations, if there are any."""
        if self.catalogue is None and self.threshold is not None:
            raise RelvecError("A threshold is for the pairs of a catalogue; add --catalogue, or leave it out.")
        if self.catalogue is not None:
            from relvec.data.sources import load
            from relvec.model.relation_namer import RelationNamer

            relations = load(self.catalogue, threshold=self.threshold)
            labelled = [(pair, relation.name) for relation in relations for pair in relation.positives]
            pairs, labels = zip(*labelled, strict=True) if labelled else ((), ())
            definitions = {relation.name: relation.sentence for relation in relations if relation.sentence}
            symmetric = [relation.name for relation in relations if relation.is_symmetric]
            namer = RelationNamer(model, definitions=definitions, symmetric=symmetric)
            model.catalogue = namer.fit(list(pairs), labels).catalogue_


@with_shared_options
def explain(
    pairs: Annotated[
        list[str], typer.Argument(help="A pair as head:tail, several, or one file of pairs (- for stdin).")
    ],
    *,
    output: Annotated[Path | None, output_option("The .tsv file to write for a file of pairs.")] = None,
    top: Annotated[
        int | None, typer.Option("--top", "-k", min=1, help="How many relations of a pair; by default 3, for a file 1.")
    ] = None,
    own: OwnRelations,
    encoder: BatchEncoder,
    json: Json = False,
) -> None:
    """Say in words how two words are related.

    Of several pairs, it says what they have in common; of a file, how each pair is related. Probabilities assume that
    half of all pairs are related.
    """
    if len(pairs) == 1 and _is_file(pairs[0]):
        _explain_file(pairs[0], output, encoder, own, top or 1, json)
        return
    if output is not None:
        raise RelvecError("An output is for a file of pairs; give one, or leave out --output.")
    query = [parse_pair(pair) for pair in pairs]
    start_quickly()
    model = encoder.load()
    own.name_by(model)
    found = model.explain(query, top=top or 3, truncate=encoder.truncate)
    related = float(min(model.relatedness(query, truncate=encoder.truncate)))
    names = [":".join(pair) for pair in query]
    value = {"pairs": names, "related": related, "relations": [_json(each) for each in found]}
    title = ", ".join(names)
    best = found[0]
    is_common = len(query) == 1 or best.probability >= NOT_SHARED
    is_seen, note = sys.stdout.isatty() and not json, ""
    if related < LEAST_RELATEDNESS or not is_common:
        none = "no relation that relvec knows" if is_common else "no relation in common that relvec knows"
        note = f"{title}: {none} (best guess {best.probability:.2f}: {sentence_of(best)})"
        if is_seen:
            typer.echo(note)
            return
    shown = [each for each in found if each is best or each.probability >= SHOWN]
    rows = [[sentence_of(each), each.relation, f"{each.probability:.2f}", _examples(each.examples)] for each in shown]
    columns = ["in words", "relation", "probability", "as in"]
    if not is_seen:  # lines are filtered by it
        columns, rows = [*columns, "related"], [[*row, f"{related:.2f}"] for row in rows]
    show(json, value, Table(columns, rows, title), note=note)


def _is_file(text: str) -> bool:
    """Whether this is a file of pairs, rather than a pair."""
    with suppress(OSError):  # a pair may be longer than a file name can be
        return text == "-" or kind_of(text) in TABLES or Path(text).is_file()
    return False


def _explain_file(
    source: str, output: Path | None, encoder: BatchEncoder, own: OwnRelations, top: int, json: bool
) -> None:
    pairs = read_pairs(source)
    workload = workload_of(len(pairs))
    if workload == "quick":
        start_quickly()
    from relvec.io.files import check_place
    from relvec.model.cached_vectors import ModelVectors
    from relvec.storage.job import atomic_write_once
    from relvec.storage.lock import output_lock

    if output is not None:
        check_place(output, source)
        if output.suffix != ".tsv":
            raise RelvecError(f"{output} would be tab-separated; give it a name that ends in .tsv.")
    model = encoder.load(workload)
    own.name_by(model)
    vectors = ModelVectors(model, batch_size=encoder.batch_size)
    vectors.prepare(pairs, truncate=encoder.truncate)
    rows = _named(model, pairs, vectors.rows(pairs), top)
    if output is None:
        named = list(rows)
        shown = [[*row[:3], f"{row[3]:.2f}", f"{row[4]:.2f}", row[5]] for row in named]
        show(json, [dict(zip(COLUMNS, row, strict=True)) for row in named], Table(COLUMNS, shown))
        return
    with output_lock(output), atomic_write_once(output) as partial, partial.open("w", encoding="utf-8") as file:
        file.write("\t".join(COLUMNS) + "\n")
        for head, tail, relation, probability, related, sentence in rows:
            cells = [tsv_cell(head), tsv_cell(tail), relation, f"{probability:.4f}", f"{related:.4f}"]
            file.write("\t".join([*cells, tsv_cell(sentence)]) + "\n")
    message(f"{len(pairs):,} pairs -> {output}")


def _named(
    model: "RelBERT", pairs: Sequence[Pair], vectors: Any, top: int
) -> Iterator[tuple[str, str, str, float, float, str]]:
    """The best names of each pair; a reversed relation is said so."""
    from relvec.naming.catalogue import PAIRS_PER_STEP

    for start in range(0, len(pairs), PAIRS_PER_STEP):
        step = pairs[start : start + PAIRS_PER_STEP]
        found = vectors[start : start + len(step)]
        explained = model.catalogue.explain(step, found, top)
        for (head, tail), names, related in zip(step, explained, model.catalogue.related(found), strict=True):
            for each in names:
                name = f"{each.relation} (reversed)" if each.is_reversed else each.relation
                yield head, tail, name, each.probability, float(related), each.sentence


@with_shared_options
def relations(
    about: Annotated[
        str, typer.Argument(help="A word of a relation's name, definition or examples, or a pair as head:tail.")
    ] = "",
    *,
    encoder: Encoder,
    json: Json = False,
) -> None:
    """Browse the catalogue of relations: definitions and examples."""
    from relvec.data.sources import DEFAULT_SOURCE, load
    from relvec.naming.entries import bundled_groups, entries_of

    known = entries_of(load(DEFAULT_SOURCE), bundled_groups()).listed
    if ":" in about:
        names = [each.relation for each in encoder.load().explain(parse_pair(about), top=10)]
        found = [relation for name in dict.fromkeys(names) for relation in known if relation.name == name]
    else:
        found = [relation for relation in known if _mentions(relation, about.casefold())]
    if not found:
        raise RelvecError(f"No relation is about {about!r}; try another word, or none for all relations.")
    listed = [
        {
            "relation": relation.name,
            "category": relation.category,
            "definition": relation.definition,
            "sentence": relation.sentence,
            "examples": [":".join(pair) for pair in relation.positives],
        }
        for relation in found
    ]
    rows = [[r.name, r.category, r.definition, _examples(r.positives)] for r in found]
    show(json, listed, Table(["relation", "category", "definition", "examples"], rows))


def _mentions(relation: "RatedRelation", word: str) -> bool:
    words = {part.casefold() for pair in relation.positives for part in pair}
    texts = (relation.name, relation.category, relation.definition)
    return word in words or any(word in text.casefold() for text in texts)


@with_shared_options
def find(
    definition: Annotated[str, typer.Argument(help='A relation in words, such as "Y is a tool of X".')],
    *,
    words: Annotated[str | None, typer.Option(help="Only pairs with one of these words, separated by commas.")] = None,
    k: Annotated[int, typer.Option("--top", "-k", min=1, help="How many pairs.")] = 10,
    index: Index = None,
    encoder: Encoder,
    json: Json = False,
) -> None:
    """Find pairs of an index by a description of their relation.

    The description is matched with the definitions in the catalogue. The probability of a pair is that of the best
    matches, weighted by how well they match.
    """
    start_quickly()
    from relvec.index import PairIndex
    from relvec.index.finding import find as found_pairs

    wanted = [word.strip() for word in words.split(",") if word.strip()] if words else None
    matched, found = found_pairs(encoder.load(), PairIndex.load(index), definition, k, words=wanted)
    meant = [{"relation": each.relation.name, "definition": each.relation.definition} for each in matched]
    pairs = [{**pair_json(pair), "probability": score, "sentence": said} for pair, score, said in found]
    rows = [[":".join(pair), f"{score:.2f}", said] for pair, score, said in found]
    note = f"understood as {', '.join(each['relation'] for each in meant)}"
    if not pairs:
        note += "; no pair of the index has one of the words"
    value = {"definition": definition, "relations": meant, "pairs": pairs}
    show(json, value, Table(["pair", "probability", "in words"], rows), note=note)


def sentence_of(explanation: "Explanation") -> str:
    """The sentence of a relation, which may hold the other way round."""
    return f"reversed: {explanation.sentence}" if explanation.is_reversed else explanation.sentence


def _examples(pairs: Sequence[Pair]) -> str:
    return ", ".join(":".join(pair) for pair in pairs[:SHOWN_EXAMPLES])


def _json(explanation: "Explanation") -> dict[str, Any]:
    examples = [":".join(pair) for pair in explanation.examples]
    return {
        "relation": explanation.relation,
        "probability": explanation.probability,
        "sentence": explanation.sentence,
        "reversed": explanation.is_reversed,
        "examples": examples,
    }
