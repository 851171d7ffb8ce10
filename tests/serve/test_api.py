"""Every endpoint gives what the library gives."""

from typing import Any

import numpy as np
import openai
import pytest

from relvec import PairIndex, RelBERT
from relvec.index import complete
from relvec.model import catalogues
from relvec.naming import Catalogue
from relvec.serve import models
from relvec.serve.batching import Batching
from relvec.serve.errors import RefusedError
from relvec.serve.metrics import Metrics

PAIRS = [("Paris", "France"), ("cup", "tea"), ("ice cream", "summer")]


@pytest.mark.parametrize("form", [":".join, list, lambda pair: {"head": pair[0], "tail": pair[1]}])
def test_embed_gives_the_vectors_of_pairs_in_any_form(client: Any, model: RelBERT, form: Any) -> None:
    answer = client.ask("/embed", {"pairs": [form(pair) for pair in PAIRS]}).json
    assert (answer["model"], answer["dimensions"]) == ("tiny-mpnet", 16)
    np.testing.assert_allclose(answer["vectors"], model.encode(PAIRS), atol=1e-5)
    unit = client.ask("/embed", {"pairs": [form(pair) for pair in PAIRS], "normalize": True}).json
    np.testing.assert_allclose(np.linalg.norm(unit["vectors"], axis=1), 1, atol=1e-5)


def test_similarity_is_a_matrix(client: Any, model: RelBERT) -> None:
    given = [":".join(pair) for pair in PAIRS]
    whole = client.ask("/similarity", {"left": given}).json["similarities"]
    np.testing.assert_allclose(whole, model.similarity(PAIRS, PAIRS), atol=1e-5)
    part = client.ask("/similarity", {"left": given[:1], "right": given[1:]}).json["similarities"]
    np.testing.assert_allclose(part, model.similarity(PAIRS[:1], PAIRS[1:]), atol=1e-5)


@pytest.mark.parametrize("scoring", ["forward", "reverse", "bidirectional"])
def test_solve_answers_as_the_model_does(client: Any, model: RelBERT, scoring: Any) -> None:
    asked = {"stem": "Tokyo:Japan", "choices": [":".join(pair) for pair in PAIRS], "scoring": scoring}
    answer = client.ask("/solve", asked).json
    expected = model.solve(("Tokyo", "Japan"), PAIRS, scoring=scoring)
    assert (answer["answer"], tuple(answer["choice"].values())) == (expected.answer, expected.choice)
    np.testing.assert_allclose(answer["scores"], expected.scores, atol=1e-5)


def test_neighbours_are_those_of_the_index(client: Any, model: RelBERT, index: PairIndex) -> None:
    answer = client.ask("/neighbours", {"pairs": ["barista:coffee", "brewer:beer"], "top": 3}).json
    expected = index.neighbours(model, [("barista", "coffee"), ("brewer", "beer")], 3)
    assert [(n["head"], n["tail"], n["relation"] or "") for n in answer["neighbours"]] == [
        (*found.pair, found.relation) for found in expected
    ]
    shared = client.ask("/neighbours", {"pairs": ["Paris:Japan"], "shared_words": True}).json["neighbours"]
    assert ("Paris", "France") in [(found["head"], found["tail"]) for found in shared]


def test_complete_gives_words(client: Any, model: RelBERT, index: PairIndex) -> None:
    answer = client.ask("/complete", {"pair": "Paris:France", "head": "Tokyo", "top": 2}).json
    expected = complete(model, index, "Paris", "France", "Tokyo", 2)
    assert [found["word"] for found in answer["words"]] == [word for word, _ in expected]


def test_explain_says_of_each_pair_what_the_model_says(client: Any, model: RelBERT) -> None:
    answer = client.ask("/explain", {"pairs": [":".join(pair) for pair in PAIRS], "top": 3}).json
    for pair, found in zip(PAIRS, answer["explanations"], strict=True):
        expected = model.explain(pair, top=3)
        assert (found["head"], found["tail"]) == pair
        assert [each["sentence"] for each in found["relations"]] == [each.sentence for each in expected]
        assert found["relations"][0]["probability"] == pytest.approx(expected[0].probability, abs=1e-4)
        assert found["relations"][0]["reversed"] == expected[0].is_reversed
        assert found["relatedness"] == pytest.approx(model.relatedness(pair), abs=1e-4)


def test_the_map_has_every_relation_at_its_distance(client: Any, model: RelBERT, catalogue: Catalogue) -> None:
    places = client.ask("/map", {"pair": "Paris:France"}).json["relations"]
    forward = [place for place in places if not place["reversed"]]
    assert {place["name"] for place in places} == {relation.name for relation in catalogue.relations}
    nearest = next(place for place in places if place["rank"] == 0)
    likeliest = model.explain(("Paris", "France"), top=1)[0]
    assert (nearest["name"], nearest["reversed"]) == (likeliest.relation, likeliest.is_reversed)
    drawn = [np.hypot(place["x"], place["y"]) for place in forward]
    assert max(drawn) <= 1.001
    point = catalogue.space(model.encode([("Paris", "France")]))
    rows = {catalogue.relations[n].name: row for row, n in enumerate(catalogue.prototypes.relations[: len(forward)])}
    true = [np.linalg.norm(catalogue.prototypes.means[rows[place["name"]]] - point) for place in forward]
    assert np.argsort(drawn).tolist() == np.argsort(true).tolist()


def test_the_client_of_openai_gets_vectors(client: Any, model: RelBERT) -> None:
    asked = openai.OpenAI(base_url=f"{client.url}/v1", api_key="any")
    choices: list[Any] = [{}, {"encoding_format": "float"}]  # by itself it asks for base64
    for options in choices:
        one = asked.embeddings.create(model="tiny-mpnet", input="Paris:France", **options)
        np.testing.assert_allclose(one.data[0].embedding, model.encode(("Paris", "France")), atol=1e-5)
    several: Any = ["Paris:France", {"head": "cup", "tail": "tea"}]
    answer = asked.embeddings.create(model="tiny-mpnet", input=several)
    np.testing.assert_allclose([each.embedding for each in answer.data], model.encode(PAIRS[:2]), atol=1e-5)
    assert answer.usage.total_tokens == sum(map(len, model.token_ids(PAIRS[:2])))
    with pytest.raises(openai.UnprocessableEntityError, match="There is no model 'tiny'"):
        asked.embeddings.create(model="tiny", input="Paris:France")


def test_models_are_listed_and_chosen_by_name(serving: Any, tiny: RelBERT, model: RelBERT, index: PairIndex) -> None:
    with serving(model, tiny) as client:
        listed = client.ask("/models").json["models"]
        assert [(each["name"], each["backend"]) for each in listed] == [
            ("tiny-mpnet", "numpy"),
            ("tiny-roberta", "torch"),
        ]
        vectors = client.ask("/embed", {"pairs": ["cup:tea"], "model": "tiny-roberta"}).json["vectors"]
        np.testing.assert_allclose(vectors, tiny.encode([("cup", "tea")]), atol=1e-5)
        assert client.ask("/neighbours", {"pairs": ["cup:tea"]}).problem == (422, "invalid_field", "model")
        unnamed = client.ask("/explain", {"pairs": ["cup:tea"], "model": "tiny-roberta"})
        assert unnamed.problem == (422, "invalid_field", "model")
        assert "run `relvec explain --model tiny-roberta cup:tea` once" in unnamed.json["error"]["message"]


def test_names_of_relations_that_were_made_once_are_served(
    serving: Any, tiny: RelBERT, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogues, "make_catalogue", lambda model: catalogue)
    catalogues.own_catalogue(tiny)
    with serving(tiny) as client:
        assert client.ask("/explain", {"pairs": ["cup:tea"]}).status == 200


def test_an_index_goes_to_the_model_that_made_it(
    tiny: RelBERT, model: RelBERT, index: PairIndex, tmp_path: Any
) -> None:
    index.save(tmp_path / "mine")
    assert [found and len(found) for found in models.matched_indexes([tiny, model], [tmp_path / "mine"])] == [None, 5]
    with pytest.raises(ValueError, match="was made by tiny-mpnet, not by tiny-roberta; add --model"):
        models.matched_indexes([tiny], [tmp_path / "mine"])


def test_a_model_takes_one_index(tiny: RelBERT, model: RelBERT, index: PairIndex, tmp_path: Any) -> None:
    folders = [tmp_path / "i1", tmp_path / "i2"]
    for folder in folders:
        index.save(folder)
    with pytest.raises(ValueError, match=r"^tiny-mpnet has two indexes, .*i1 and .*i2; give one of them\.$"):
        models.matched_indexes([tiny, model], folders)


def test_ready_means_that_a_pair_was_encoded_just_now(
    serving: Any, watched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "CANARY_SECONDS", 0.0)
    with serving(watched.model) as client:
        before = len(watched.encoded)
        assert client.ask("/ready").json["status"] == "ready"
        assert watched.encoded[before:] == [[models.CANARY]]
        assert client.ask("/health").json == {"status": "alive"}
        watched.model._encode_distinct = lambda *_: np.ones((1, 16), dtype=np.float32)  # the weights have gone bad
        assert client.ask("/ready").problem[:2] == (503, "unavailable")


def test_a_model_that_hangs_is_not_ready_but_alive(watched: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "CANARY_SECONDS", 0.0)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    served = models.Served(watched.model, None, Metrics(), Batching(8, 0), timeout_seconds=20)
    watched.may_go_on.clear()
    for _ in range(3):
        with pytest.raises(RefusedError, match="tiny-mpnet does not encode"):
            served.check_canary(timeout_seconds=0.05)
    watched.may_go_on.set()
    served.batcher.close()
    assert watched.encoded == [[models.CANARY]] * 2  # at the start and by the first check; the others were given up


def test_metrics_count_requests_failures_batches_and_durations(client: Any) -> None:
    client.ask("/embed", {"pairs": ["cup:tea", "Paris:France"]})
    client.ask("/embed", {"pairs": ["nothing"]})
    assert client.metric('relvec_requests_total{path="/embed",status="200"}') == 1
    assert client.metric('relvec_failures_total{type="invalid_field"}') == 1
    assert client.metric("relvec_batch_pairs_sum") >= 3  # and the canary
    assert client.metric("relvec_queue_seconds_count") >= 3
    assert client.metric("relvec_encoding_seconds_sum") > 0
    assert client.metric("relvec_queue_pairs") == 0


def test_the_page_and_the_reference_load_nothing_from_elsewhere(client: Any) -> None:
    answer = client.ask("/")
    assert answer.status == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "http://" not in answer.text.replace("http://www.w3.org", "")
    assert client.ask("/docs").headers["location"] == "/#docs"
