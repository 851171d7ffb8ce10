"""Properties over generated inputs: indexes against brute force, readers against writers, any text as a word."""

import csv
import io
import json
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from outputs import Case
from world import World

from relvec import PairIndex, RelBERT
from relvec.errors import RelvecError, UnknownWordsWarning
from relvec.io.tables import read_pairs, tsv_cell
from relvec.pairs import as_word
from relvec.similarity import cosine

LETTERS = some.characters(exclude_categories=["Cs"])
# Words of control characters alone are refused; readers must give them back all the same.
KNOWN = some.text("abc déß東'-", min_size=1, max_size=12)
TEXT = some.text(LETTERS, min_size=1, max_size=12)
CALM = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None, "derandomize": True}


def _is_word(text: str) -> bool:
    return bool(text.strip()) and bool(" ".join(text.split()))


WORD = TEXT.filter(_is_word).map(as_word)
PAIR = some.tuples(WORD, WORD)
KNOWN_PAIR = some.tuples(KNOWN.filter(_is_word).map(as_word), KNOWN.filter(_is_word).map(as_word))


def properties(world: World, examples: int) -> Iterator[Case]:
    """Each property over so many examples; what hypothesis finds is the problem."""
    warnings.simplefilter("ignore", UnknownWordsWarning)
    model = RelBERT.from_pretrained(world.model, backend="numpy")
    tried = {"index": 0, "readers": 0, "words": 0}

    @settings(max_examples=examples, **CALM)  # type: ignore[arg-type]
    @given(
        some.lists(KNOWN_PAIR, min_size=3, max_size=12, unique=True),
        some.lists(KNOWN_PAIR, max_size=4, unique=True),
        some.data(),
    )
    def index_agrees_with_brute_force(
        pairs: list[tuple[str, str]], more: list[tuple[str, str]], data: some.DataObject
    ) -> None:
        tried["index"] += 1
        labels = [data.draw(some.sampled_from(["", "a", "b"])) for _ in pairs]
        index = PairIndex.of(model, pairs, relations=labels)
        kept = dict(zip(pairs, labels, strict=True))
        index.add(model, more, relations=["a"] * len(more))
        kept |= {pair: "a" for pair in more if pair not in kept}
        gone = data.draw(some.lists(some.sampled_from(sorted(kept)), max_size=len(kept) - 1, unique=True))
        index.remove(gone)
        for pair in gone:
            del kept[pair]
        with tempfile.TemporaryDirectory() as folder:
            index.save(Path(folder) / "index")
            index = PairIndex.load(Path(folder) / "index")
        wanted = data.draw(some.sampled_from([None, *sorted({label for label in kept.values() if label})]))
        query = data.draw(KNOWN_PAIR)
        found = index.neighbours(model, query, len(kept), relation=wanted)
        words = {word.casefold() for word in query}
        allowed = [
            pair
            for pair, label in kept.items()
            if (wanted is None or label == wanted) and not words & {word.casefold() for word in pair}
        ]
        assert {each.pair for each in found} == set(allowed)
        if allowed:
            scores = cosine(model.encode([query], truncate=True), model.encode(allowed, truncate=True))[0]
            exact = dict(zip(allowed, scores, strict=True))
            np.testing.assert_allclose([each.score for each in found], [exact[each.pair] for each in found], atol=1e-4)
            assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
        assert all(each.relation == kept[each.pair] for each in found)

    @settings(max_examples=examples, **CALM)  # type: ignore[arg-type]
    @given(some.lists(PAIR, min_size=1, max_size=8))
    def readers_read_what_was_written(pairs: list[tuple[str, str]]) -> None:
        tried["readers"] += 1
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            text = io.StringIO(newline="")
            csv.writer(text).writerows([("head", "tail"), *pairs])
            (folder / "pairs.csv").write_text(text.getvalue(), encoding="utf-8", newline="")
            rows = [("head", "tail"), *pairs]
            lines = "".join(f"{tsv_cell(head)}\t{tsv_cell(tail)}\n" for head, tail in rows)
            (folder / "pairs.tsv").write_text(lines, encoding="utf-8", newline="")
            objects = [json.dumps({"head": head, "tail": tail}, ensure_ascii=False) for head, tail in pairs]
            (folder / "pairs.jsonl").write_text("\n".join(objects), encoding="utf-8", newline="")
            heads, tails = zip(*pairs, strict=True)
            pyarrow.parquet.write_table(pyarrow.table({"head": heads, "tail": tails}), folder / "pairs.parquet")
            for file in sorted(folder.iterdir()):
                assert read_pairs(file) == pairs, file.name

    @settings(max_examples=examples, **CALM)  # type: ignore[arg-type]
    @given(some.text(LETTERS, max_size=60), some.text(LETTERS, max_size=60))
    def any_text_is_a_word_or_refused(head: str, tail: str) -> None:
        tried["words"] += 1
        try:
            vector = model.encode((head, tail), truncate=True)
        except RelvecError:  # it is empty, or nothing of it is in the vocabulary
            return
        assert _is_word(head)
        assert _is_word(tail)
        assert np.isfinite(vector).all()
        again = model.encode([("a", "b"), (head, tail)], truncate=True)[1]
        np.testing.assert_allclose(again, vector, atol=1e-5)

    checks = {"index": index_agrees_with_brute_force, "readers": readers_read_what_was_written}
    for name, check in {**checks, "words": any_text_is_a_word_or_refused}.items():
        problem = ""
        try:
            check()
        except Exception as error:
            problem = f"{type(error).__name__}: {str(error)[:300]}"
        yield f"{name}, {tried[name]} examples", problem
        for number in range(1, tried[name]):
            yield f"{name}, example {number}", ""
