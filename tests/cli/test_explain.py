"""relvec explain, relations and find, and what is behind them.

A few bundled relations stand for all, and a count of words for a text encoder, so that catalogues are made at once.
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relvec import PairIndex, RelBERT, RelvecError
from relvec.cli.explain import LEAST_RELATEDNESS
from relvec.data.rated import RatedRelation
from relvec.data.sources import load
from relvec.naming.building import build_catalogue
from relvec.similarity import Vectors

Relvec = Callable[..., Any]
Refused = Callable[..., str]

pytestmark = pytest.mark.usefixtures("_few_relations")

NAMES = ("worker-to-tool", "worker-to-workplace", "country-to-currency", "gradable-antonym-adjectives")
CAPITALS = [("Paris", "France"), ("Tokyo", "Japan"), ("Rome", "Italy")]


@pytest.fixture(scope="session")
def few_relations() -> list[RatedRelation]:
    return [relation for relation in load("bundled") if relation.name in NAMES]


@pytest.fixture
def _few_relations(few_relations: list[RatedRelation], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relvec.model.catalogues.load", lambda _: few_relations)
    for module in ("model.catalogues", "model.relation_namer", "index.finding"):
        monkeypatch.setattr(f"relvec.{module}.encoded_texts", count_words)


def count_words(texts: Sequence[str], encoder: str) -> Vectors:
    vectors = np.zeros((len(texts), 512), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in text.lower().replace('"', "").split():
            vectors[row, sum(word.encode()) % 512] += 1
    return vectors


def test_a_pair_is_explained_for_people_and_machines(relvec: Relvec, tiny_folder: Path) -> None:
    answer = json.loads(relvec("explain", "surgeon:scalpel", "-m", tiny_folder, "--json").out)
    assert [each["probability"] for each in answer["relations"]] == sorted(
        (each["probability"] for each in answer["relations"]), reverse=True
    )
    said = relvec("explain", "surgeon:scalpel", "-m", tiny_folder)
    assert ("no relation that relvec knows (best guess" in said.err) == (answer["related"] < LEAST_RELATEDNESS)
    assert "surgeon" in said.out


def test_a_pair_without_a_relation_is_tab_separated_lines_when_piped_and_a_sentence_on_a_terminal(
    relvec: Relvec, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("explain", "music:pizza", "-m", tiny_folder)
    monkeypatch.setattr("relvec.cli.explain.LEAST_RELATEDNESS", 0.0)
    related = relvec(*command)
    monkeypatch.setattr("relvec.cli.explain.LEAST_RELATEDNESS", 1.1)
    unrelated = relvec(*command)
    assert unrelated.out == related.out
    header, first, *_ = (line.split("\t") for line in unrelated.out.splitlines())
    assert header == ["in words", "relation", "probability", "as in", "related"]
    assert 0 <= float(first[2]) <= float(first[4]) <= 1
    sentence = "music:pizza: no relation that relvec knows (best guess"
    assert sentence in unrelated.err
    assert sentence not in related.err
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert relvec(*command).out.startswith(sentence)


def test_a_pair_may_be_longer_than_the_name_of_a_file(relvec: Relvec, tiny_folder: Path) -> None:
    result = relvec("explain", f"{'long ' * 60}:tea", "-m", tiny_folder, "--truncate")
    assert result.code == 0, result


def test_several_pairs_are_explained_by_what_they_have_in_common(tiny: RelBERT, relvec: Relvec) -> None:
    alone, common = tiny.explain(CAPITALS[0]), tiny.explain(CAPITALS)
    assert "Paris" in alone[0].sentence
    assert "Paris" not in common[0].sentence
    assert tiny.explain(CAPITALS[:1]) == alone
    with pytest.raises(RelvecError, match="There is no pair to explain; give at least one"):
        tiny.explain([])


def test_the_pairs_of_a_file_are_named(relvec: Relvec, tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"{head}\t{tail}\n" for head, tail in CAPITALS))
    result = relvec("explain", tmp_path / "pairs.tsv", "-o", tmp_path / "named.tsv", "-m", tiny_folder)
    assert (result.code, result.out) == (0, "")
    header, *lines = (tmp_path / "named.tsv").read_text().splitlines()
    assert header.split("\t") == ["head", "tail", "relation", "probability", "related", "sentence"]
    listed = json.loads(relvec("explain", tmp_path / "pairs.tsv", "-m", tiny_folder, "--json").out)
    assert [line.split("\t")[:3] for line in lines] == [[row["head"], row["tail"], row["relation"]] for row in listed]


def test_a_pair_of_a_file_has_as_many_names_as_asked_for(relvec: Relvec, tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"{head}\t{tail}\n" for head, tail in CAPITALS))
    listed = json.loads(relvec("explain", tmp_path / "pairs.tsv", "-k", 2, "-m", tiny_folder, "--json").out)
    assert [row["head"] for row in listed] == ["Paris", "Paris", "Tokyo", "Tokyo", "Rome", "Rome"]
    assert all(first["probability"] >= second["probability"] for first, second in zip(*[iter(listed)] * 2, strict=True))


def test_explain_writes_over_no_other_file(relvec: Relvec, refused: Refused, tiny_folder: Path, tmp_path: Path) -> None:
    pairs, named = tmp_path / "pairs.tsv", tmp_path / "named.tsv"
    pairs.write_text("Paris\tFrance\n")
    model = ("-m", tiny_folder)
    assert relvec("explain", pairs, "-o", named, *model).code == relvec("explain", pairs, "-o", named, *model).code == 0
    assert "is the file of pairs itself" in refused("explain", pairs, "-o", pairs, *model)
    pairs.write_text("Tokyo\tJapan\n")
    assert "remove it, or choose another output" in refused("explain", pairs, "-o", named, *model)
    assert "Paris" in named.read_text()
    assert "ends in .tsv" in refused("explain", pairs, "-o", tmp_path / "named.csv", *model)


def test_own_relations_come_from_a_file(relvec: Relvec, tiny_folder: Path, tmp_path: Path) -> None:
    rows = [*(f"{head},{tail},capital" for head, tail in CAPITALS), "cup,tea,holds", "pot,coffee,holds"]
    (tmp_path / "mine.csv").write_text("\n".join(["head,tail,relation", *rows]) + "\n")
    command = ["explain", "Oslo:Norway", "--catalogue", tmp_path / "mine.csv", "-m", tiny_folder, "--json"]
    found = json.loads(relvec(*command).out)["relations"]
    assert {each["relation"] for each in found} <= {"capital", "holds"}


def test_relations_are_browsed_by_word_and_by_pair(relvec: Relvec, refused: Refused, tiny_folder: Path) -> None:
    names = {row["relation"] for row in json.loads(relvec("relations", "--json").out)}
    about = json.loads(relvec("relations", "stethoscope", "--json").out)
    assert any("physician:stethoscope" in row["examples"] for row in about)
    assert len(about) < len(names)
    of_pair = json.loads(relvec("relations", "physician:stethoscope", "-m", tiny_folder, "--json").out)
    assert {row["relation"] for row in of_pair} <= names
    assert "No relation is about 'qqq'" in refused("relations", "qqq")


def test_pairs_are_found_for_a_relation_in_words(relvec: Relvec, tiny_folder: Path, tmp_path: Path) -> None:
    pairs = [*CAPITALS, ("cup", "tea"), ("nurse", "syringe"), ("cook", "knife")]
    PairIndex.of(RelBERT.from_pretrained(tiny_folder), pairs).save(tmp_path / "my.index")
    command = ["find", "Y is the currency of the country X", "--index", tmp_path / "my.index", "-m", tiny_folder]
    answer = json.loads(relvec(*command, "--json").out)
    assert answer["relations"][0] == {
        "relation": "country-to-currency",
        "definition": "Y is the currency of the country X",
    }
    assert len(answer["pairs"]) == len(pairs)
    probabilities = [pair["probability"] for pair in answer["pairs"]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert probabilities[0] <= 1
    assert "understood as country-to-currency" in relvec(*command).err
    only = json.loads(relvec(*command, "--words", "knife,tea", "--json").out)["pairs"]
    assert sorted(pair["pair"] for pair in only) == ["cook:knife", "cup:tea"]
    assert "no pair of the index has one of the words" in relvec(*command, "--words", "qqq").err


def test_pairs_are_found_in_an_index_at_any_address(refused: Refused, tiny_folder: Path) -> None:
    pytest.importorskip("pymilvus", reason="the extra milvus is not installed")
    command = ["find", "X is a tool of Y", "--index", "milvus:nowhere//pairs.db", "-m", tiny_folder]
    assert "There is no Milvus index at milvus:nowhere//pairs.db" in refused(*command)


def test_words_that_are_too_long_are_cut_if_that_is_wanted(relvec: Relvec, refused: Refused, tiny_folder: Path) -> None:
    for pairs in ([f"{'long ' * 40}:tea"], [f"{'long ' * 40}:tea", "cup:tea"]):
        assert "tokens where the model takes" in refused("explain", *pairs, "-m", tiny_folder)
        assert relvec("explain", *pairs, "-m", tiny_folder, "--truncate").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "barista"], "has no colon"),
        (["explain", "missing.tsv"], "Cannot read missing.tsv"),
        (["explain", "a:b", "-o", "named.tsv"], "give one, or leave out --output"),
        (["explain", "a:b", "--catalogue", "missing.csv"], "There is no data missing.csv"),
        (["find", "a tool"], "write X and Y in it"),
        (["explain", "a:b", "--threshold", "0.5"], "A threshold is for the pairs of a catalogue; add --catalogue"),
    ],
)
def test_bad_input_is_one_sentence(refused: Refused, tiny_folder: Path, arguments: list[str], message: str) -> None:
    assert message in refused(*arguments, "-m", tiny_folder)


def test_a_catalogue_is_made_once(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch, few_relations: list[RatedRelation]
) -> None:
    made: list[int] = []

    def build(relations: Sequence[RatedRelation], *arguments: Any, **options: Any) -> Any:
        made.append(len(relations))
        return build_catalogue(relations, *arguments, **options)

    monkeypatch.setattr("relvec.model.catalogues.build_catalogue", build)
    for _ in range(2):
        model = RelBERT.from_pretrained(tiny_folder)
        assert (model.existing_catalogue is None) == (not made)
        assert model.relatedness(CAPITALS).shape == (3,)
        assert 0 < model.relatedness(CAPITALS[0]) < 1
        assert model.existing_catalogue is model.catalogue
    assert made == [len(few_relations)]
