"""RelationNamer, with two bundled relations for a catalogue and a count of words for a text encoder."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score
from tests.cli.test_explain import count_words

from relvec import RelationNamer, RelBERT, RelvecError
from relvec.data.sources import load
from relvec.index.finding import match
from relvec.pairs import Pair

RELATIONS = [relation for relation in load("bundled") if relation.name in {"worker-to-tool", "country-to-currency"}]
PAIRS = [pair for relation in RELATIONS for pair in relation.positives[:8]]
LABELS = [relation.name for relation in RELATIONS for _ in range(8)]


@pytest.fixture
def model(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> RelBERT:
    monkeypatch.setattr("relvec.model.catalogues.load", lambda _: RELATIONS)
    for module in ("model.catalogues", "model.relation_namer", "index.finding"):
        monkeypatch.setattr(f"relvec.{module}.encoded_texts", count_words)
    return RelBERT.from_pretrained(tiny_folder)


def test_relations_that_have_definitions_only_are_told_apart_by_these(model: RelBERT) -> None:
    names, definitions = [each.name for each in RELATIONS], [each.definition for each in RELATIONS]
    namer = RelationNamer(model, definitions=dict(zip(names, definitions, strict=True))).fit()
    swapped = RelationNamer(model, definitions=dict(zip(names, definitions[::-1], strict=True))).fit()
    assert not (namer.predict(PAIRS) == swapped.predict(PAIRS)).any()
    assert namer.score(PAIRS, LABELS) > 0.6 > 0.4 > swapped.score(PAIRS, LABELS)
    (found,) = namer.explain([("Japan", "yen")], top=4)
    assert "yen is the currency of the country Japan" in [each.sentence for each in found]


def test_relations_that_have_pairs_are_told_apart_also_from_their_reverses(model: RelBERT) -> None:
    namer = RelationNamer(model).fit(PAIRS, LABELS)
    assert namer.score(PAIRS, LABELS) > 0.6
    turned: list[Pair] = [(tail, head) for head, tail in PAIRS]
    is_reversed = [best.is_reversed for (best,) in namer.explain([*PAIRS, *turned])]
    assert sum(is_reversed[: len(PAIRS)]) < len(PAIRS) / 2 < sum(is_reversed[len(PAIRS) :])


def test_some_relations_may_have_pairs_and_others_a_definition(model: RelBERT) -> None:
    namer = RelationNamer(model, definitions={"another": "Y is a tool of X"}).fit(PAIRS, LABELS)
    assert namer.classes_.tolist() == sorted({"another", *LABELS})
    assert namer.predict_proba(PAIRS[:5]).shape == (5, 3)


def test_what_nothing_can_be_learned_from_is_refused(model: RelBERT) -> None:
    with pytest.raises(RelvecError, match="2 pairs and 1 label;"):
        RelationNamer(model).fit(PAIRS[:2], ["capital"])
    with pytest.raises(RelvecError, match="no relation to learn"):
        RelationNamer(model).fit()
    with pytest.raises(RelvecError, match="'a tool' does not say which words are related; write X and Y"):
        RelationNamer(model, definitions={"tool": "a tool"}).fit()


def test_nothing_is_named_before_fit(model: RelBERT) -> None:
    namer = RelationNamer(model)
    for ask in (namer.predict, namer.predict_proba, namer.explain):
        with pytest.raises(RelvecError, match="knows no relation yet; fit it first"):
            ask(PAIRS)


def test_fewer_than_one_name_cannot_be_asked_for(model: RelBERT) -> None:
    with pytest.raises(RelvecError, match="top is 0; use 1 or more"):
        RelationNamer(model).fit(PAIRS, LABELS).explain(PAIRS, top=0)


def test_labels_keep_their_type_and_none_may_be_missing(model: RelBERT) -> None:
    numbers = [LABELS.index(label) for label in LABELS]
    namer = RelationNamer(model).fit(PAIRS, pd.Series(numbers))
    assert namer.classes_.tolist() == sorted(set(numbers))
    assert namer.score(PAIRS, numbers) > 0.6
    with pytest.raises(RelvecError, match="Pair 2 has no label; give it one, or leave the pair out"):
        RelationNamer(model).fit(PAIRS[:2], pd.Series(["a", None]))


def test_a_symmetric_relation_is_one_answer_in_both_directions(model: RelBERT) -> None:
    namer = RelationNamer(model, symmetric=["country-to-currency"]).fit(PAIRS, LABELS)
    answers = {(each.relation, each.is_reversed) for each in namer.explain(PAIRS[:1], top=9)[0]}
    assert answers == {("country-to-currency", False), ("worker-to-tool", False), ("worker-to-tool", True)}


def test_it_is_a_classifier_for_scikit_learn(model: RelBERT) -> None:
    scores = cross_val_score(RelationNamer(model), PAIRS, LABELS, cv=2)
    assert scores.shape == (2,)
    assert not np.isnan(scores).any()


def test_a_model_that_names_other_relations_still_knows_the_bundled_ones(model: RelBERT) -> None:
    definitions = {"tool": "X is a tool used by Y", "money": "Y is the money of X"}
    first = RelationNamer(model, definitions=definitions).fit()
    model.catalogue = first.catalogue_
    again = RelationNamer(model, definitions=definitions).fit()
    np.testing.assert_array_equal(again.predict_proba(PAIRS), first.predict_proba(PAIRS))
    assert [each.relation.name for each in match(model, "Y is the money of X", top=1)] == ["money"]
