import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from relvec import RelvecError
from relvec.errors import UnknownWordsWarning
from relvec.model.numpy_backend.model import NumpyRelBERT
from relvec.model.relation_model import batches_by_length
from relvec.model.torch_backend import TorchRelBERT
from relvec.pooling import POOLINGS
from relvec.prompts import MANUAL_TEMPLATES, Template
from relvec.similarity import cosine

PAIRS = [
    ("Paris", "France"),
    ("ice cream", "a long name that nobody has read about"),
    ("Tokyo", "Japan"),
    ("o'clock", "東京"),
    ("Paris", "France"),
]


def one_by_one(model: TorchRelBERT, pairs: Any) -> np.ndarray:
    """The slow, plain way: fill the sentence, tokenize it whole, no padding, average."""
    rows = []
    for pair in pairs:
        sentence = model.template.fill(pair).replace("<mask>", model.tokenizer.mask_token)
        inputs = model.tokenizer(sentence, return_tensors="pt")
        with torch.no_grad():
            output = model.encoder(input_ids=inputs["input_ids"]).last_hidden_state[0]
        is_mask = inputs["input_ids"][0] == model.tokenizer.mask_token_id
        is_last = torch.arange(len(is_mask)) == len(is_mask) - 1
        poolings = {"average": is_mask | True, "average_no_mask": ~is_mask, "mask": is_mask, "last": is_last}
        counted = poolings[model.pooling]
        rows.append(output[counted].mean(dim=0).numpy())
    return np.stack(rows)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_batch_gives_what_each_pair_gives_alone(any_folder: Path, pooling: str) -> None:
    model = TorchRelBERT.from_pretrained(any_folder, pooling=pooling)
    np.testing.assert_allclose(model.encode(PAIRS, batch_size=3), one_by_one(model, PAIRS), atol=2e-5)


@pytest.mark.parametrize("template", MANUAL_TEMPLATES)
def test_every_manual_template_encodes(any_folder: Path, template: int) -> None:
    model = TorchRelBERT.from_pretrained(any_folder, template=template)
    pairs = PAIRS[2:]
    np.testing.assert_allclose(model.encode(pairs), one_by_one(model, pairs), atol=2e-5)


def test_vectors_are_float32_rows_in_the_callers_order_and_a_lone_pair_gives_one_vector(tiny: TorchRelBERT) -> None:
    vectors = tiny.encode(PAIRS)
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors[0], vectors[4])
    np.testing.assert_allclose(vectors[::-1], tiny.encode(PAIRS[::-1]), atol=1e-6)
    for pairs, shape in ((PAIRS, (5, 16)), ([], (0, 16)), (PAIRS[:1], (1, 16)), (PAIRS[0], (16,)), (["a", "b"], (16,))):
        assert tiny.encode(pairs).shape == shape


def test_reversed_pair_gets_another_embedding(tiny: TorchRelBERT) -> None:
    assert tiny.similarity(("Paris", "France"), ("France", "Paris")) < 0.999


def test_distinct_pairs_are_encoded_once_without_extra_padding(
    tiny: TorchRelBERT, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[list[list[int]]] = []
    original = tiny.vectors_of_tokens

    def recorded(ids: list[list[int]]) -> torch.Tensor:
        batches.append(ids)
        return original(ids)

    monkeypatch.setattr(tiny, "vectors_of_tokens", recorded)
    tiny.encode(PAIRS * 3, batch_size=1)
    assert len(batches) == 4
    lengths = [len(batch[0]) for batch in batches]
    assert lengths == sorted(lengths, reverse=True)
    ids, is_token = tiny._padded([[5, 6], [7]])
    assert ids.shape == (2, 2)
    assert is_token.tolist() == [[True, True], [True, False]]


@pytest.mark.parametrize("size", [1, 4, 100])
def test_batches_hold_every_row_once_and_little_padding(size: int) -> None:
    lengths = [5, 9, 5, 7, 9, 5, 5, 5, 9, 7]
    batches = list(batches_by_length(lengths, size))
    assert sorted(row for batch in batches for row in batch) == list(range(10))
    assert max(map(len, batches)) <= size
    padding = sum(max(lengths[row] for row in batch) - lengths[row] for batch in batches for row in batch)
    assert padding <= {1: 0, 4: 4, 100: 28}[size]


def test_vectors_by_length_come_in_the_given_order(tiny: TorchRelBERT, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relvec.model.torch_backend.BATCH_SIZE", 2)
    with torch.inference_mode():
        vectors = tiny.vectors_by_length(tiny.token_ids(PAIRS))
    np.testing.assert_allclose(vectors.numpy(), tiny.encode(PAIRS), atol=1e-5)


def test_normalized_vectors_have_length_one(tiny: TorchRelBERT) -> None:
    np.testing.assert_allclose(np.linalg.norm(tiny.encode(PAIRS, normalize=True), axis=1), 1, atol=1e-6)


def test_half_precision_encodes_nearly_the_same(tiny_folder: Path, tiny: TorchRelBERT) -> None:
    half = TorchRelBERT.from_pretrained(tiny_folder, dtype="bfloat16")
    assert half.dtype == torch.bfloat16
    vectors = half.encode(PAIRS)
    assert vectors.dtype == np.float32
    assert np.diag(cosine(vectors, tiny.encode(PAIRS))).min() > 0.99


def test_encoding_leaves_a_model_in_training_mode_there(tiny: TorchRelBERT) -> None:
    tiny.encoder.train()
    first = tiny.encode(PAIRS)
    assert tiny.encoder.training
    np.testing.assert_array_equal(first, tiny.encode(PAIRS))  # dropout was off


def test_gradients_flow_through_a_batch(tiny: TorchRelBERT) -> None:
    tiny.vectors_of_tokens([[0, 10, 11, 2]]).sum().backward()
    assert any(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in tiny.encoder.parameters())


def test_an_overlong_pair_is_refused_unless_truncation_is_asked_for(any_folder: Path) -> None:
    model = TorchRelBERT.from_pretrained(any_folder)
    long = ("Paris " * 100, "France")
    with pytest.raises(RelvecError, match=r"tokens where the model takes 6[0-9].*truncate"):
        model.encode([long])
    assert np.isfinite(model.encode([long], truncate=True)).all()


def test_truncation_keeps_the_prompt_and_fills_the_model(tiny: TorchRelBERT) -> None:
    (ids,) = tiny.token_ids([("Paris " * 100, "France " * 100)], truncate=True)
    assert tiny.tokenizer.mask_token_id in ids
    assert ids[-1] == tiny.tokenizer.sep_token_id
    assert tiny.max_tokens - 8 <= len(ids) <= tiny.max_tokens


def test_a_pair_that_just_fits_has_a_position_for_every_token(any_folder: Path) -> None:
    model = TorchRelBERT.from_pretrained(any_folder)
    word = "Paris"
    while len(model._prompt([(f"{word} a", "b")])[0]) <= model.max_tokens:
        word += " a"
    assert np.isfinite(model.encode((word, "b"))).all()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"device": "cuda:9"}, "cannot be used here"),
        ({"device": "toaster"}, "cannot be used here"),
        ({"dtype": "int3"}, "Unknown dtype"),
        ({"pooling": "max"}, "Unknown pooling"),
        ({"template": "[h] and [t]", "pooling": "mask"}, "needs a <mask>"),
        ({"template": "no slots"}, "no slot"),
    ],
)
def test_impossible_settings_are_refused(tiny_folder: Path, option: dict[str, Any], message: str) -> None:
    with pytest.raises(RelvecError, match=message):
        TorchRelBERT.from_pretrained(tiny_folder, **option)


class TestUnknownWords:
    @pytest.fixture(params=["torch", "numpy"])
    def model(self, request: pytest.FixtureRequest, tiny_folders: Callable[[str], Path]) -> TorchRelBERT | NumpyRelBERT:
        folder = tiny_folders("bert")
        return (
            TorchRelBERT.from_pretrained(folder) if request.param == "torch" else NumpyRelBERT.from_pretrained(folder)
        )

    @pytest.mark.parametrize("word", ["🐕", "ภาษา", "ice 🐕", "a" * 9_000])
    def test_a_call_warns_once_and_encodes_all(self, model: TorchRelBERT | NumpyRelBERT, word: str) -> None:
        pairs = [("cup", "tea"), ("cup", word), (word, "tea"), ("cup", word)]
        with pytest.warns(UnknownWordsWarning) as found:
            assert model.encode(pairs).shape == (4, 16)
        assert len(found) == 1
        assert found[0].filename == __file__
        sentence = str(found[0].message)
        assert sentence.startswith(f"The model has no tokens for a word in 2 of 3 pairs, such as '{word[:40]}")
        assert len(sentence) < 200

    def test_known_words_give_no_warning(self, model: TorchRelBERT | NumpyRelBERT) -> None:
        with warnings.catch_warnings(action="error"):
            model.encode([("cup", "tea"), ("ice cream", "Paris")])

    def test_bytes_are_never_unknown(self, tiny: TorchRelBERT) -> None:
        with warnings.catch_warnings(action="error"):
            tiny.encode([("🐕", "ภาษา")])

    def test_what_the_template_itself_has_unknown_says_nothing_of_the_pair(
        self, tiny_folders: Callable[[str], Path]
    ) -> None:
        model = TorchRelBERT.from_pretrained(tiny_folders("bert"), template="🐕 [h] <mask> [t] 🐈")
        with warnings.catch_warnings(action="error"):
            model.encode(("cup", "tea"))
        with pytest.warns(UnknownWordsWarning, match="1 of 1 pair, such as '🦁'"):
            model.encode(("cup", "🦁"))


class TestSimilarity:
    def test_its_shape_follows_its_arguments(self, tiny: TorchRelBERT) -> None:
        one, many = ("Paris", "France"), PAIRS[:3]
        assert isinstance(tiny.similarity(one, one), float)
        assert tiny.similarity(one, many).shape == (3,)
        assert tiny.similarity(many, one).shape == (3,)
        assert tiny.similarity(many, many[:2]).shape == (3, 2)

    def test_it_is_the_cosine(self, tiny: TorchRelBERT) -> None:
        left, right = tiny.encode(PAIRS[0]), tiny.encode(PAIRS[2])
        expected = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
        assert tiny.similarity(PAIRS[0], PAIRS[2]) == pytest.approx(expected, abs=1e-5)


class TestSolve:
    STEM = ("Paris", "France")
    CHOICES = (("cup", "tea"), ("Tokyo", "Japan"), ("cats", "dogs"))

    def expected(self, model: TorchRelBERT, swap: bool) -> np.ndarray:
        pairs = [self.STEM, *self.CHOICES]
        vectors = model.encode([pair[::-1] for pair in pairs] if swap else pairs)
        return cosine(vectors[:1], vectors[1:])[0]

    @pytest.mark.parametrize("scoring", ["forward", "reverse", "bidirectional"])
    def test_each_scoring_compares_its_directions(self, tiny: TorchRelBERT, scoring: Any) -> None:
        forward, reverse = self.expected(tiny, swap=False), self.expected(tiny, swap=True)
        expected = {"forward": forward, "reverse": reverse, "bidirectional": (forward + reverse) / 2}[scoring]
        solution = tiny.solve(self.STEM, self.CHOICES, scoring=scoring)
        np.testing.assert_allclose(solution.scores, expected, atol=1e-5)
        assert solution.answer == int(np.argmax(expected))
        assert solution.choice == self.CHOICES[solution.answer]

    def test_an_unknown_scoring_and_a_question_without_choices_are_refused(self, tiny: TorchRelBERT) -> None:
        with pytest.raises(RelvecError, match="forward, reverse, bidirectional"):
            tiny.solve(self.STEM, self.CHOICES, scoring="sideways")  # type: ignore[arg-type]
        with pytest.raises(RelvecError, match="at least one"):
            tiny.solve(self.STEM, [])


@pytest.mark.parametrize("number", [0, -1])
def test_fewer_than_one_result_or_pair_at_once_cannot_be_asked_for(tiny: TorchRelBERT, number: int) -> None:
    with pytest.raises(RelvecError, match=f"top is {number}; use 1 or more"):
        tiny.rank(("Paris", "France"), [("cup", "tea")], top=number)
    for query in (PAIRS[0], PAIRS[:2]):
        with pytest.raises(RelvecError, match=f"top is {number}; use 1 or more"):
            tiny.explain(query, top=number)
    with pytest.raises(RelvecError, match=f"A batch of {number} pairs is impossible; use 1 or more"):
        tiny.encode(PAIRS, batch_size=number)


def test_completion_ranks_words_by_the_relation(tiny: TorchRelBERT) -> None:
    found = tiny.complete("Paris", "France", "Tokyo", ["tea", "Japan", "tea"])
    expected = tiny.rank(("Paris", "France"), [("Tokyo", "tea"), ("Tokyo", "Japan")])
    assert [(("Tokyo", word), score) for word, score in found] == expected


class TestPrototype:
    EXAMPLES = (("Paris", "France"), ("Tokyo", "Japan"))

    def test_its_vector_is_the_mean(self, tiny: TorchRelBERT) -> None:
        prototype = tiny.prototype(self.EXAMPLES)
        np.testing.assert_allclose(tiny.encode(prototype), tiny.encode(self.EXAMPLES).mean(axis=0), atol=1e-6)

    def test_it_stands_wherever_a_pair_stands(self, tiny: TorchRelBERT) -> None:
        prototype = tiny.prototype(self.EXAMPLES)
        assert tiny.encode([("cup", "tea"), prototype]).shape == (2, tiny.dim)
        assert isinstance(tiny.similarity(prototype, ("cup", "tea")), float)
        assert len(tiny.rank(prototype, [("cup", "tea"), prototype])) == 2
        choices = [("cup", "tea"), ("cats", "dogs")]
        expected = int(np.argmax(tiny.similarity(prototype, choices)))
        assert tiny.solve(prototype, choices).answer == expected


def change_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


class TestCheckpoint:
    def test_a_saved_model_loads_with_the_same_vectors(self, any_folder: Path, tmp_path: Path) -> None:
        model = TorchRelBERT.from_pretrained(any_folder, template=3, pooling="average_no_mask")
        model.save_pretrained(tmp_path / "saved")
        again = TorchRelBERT.from_pretrained(tmp_path / "saved")
        assert (again.template, again.pooling) == (model.template, model.pooling)
        np.testing.assert_allclose(again.encode(PAIRS[2:]), model.encode(PAIRS[2:]), atol=1e-6)
        assert again.fingerprint == model.fingerprint

    def test_the_fingerprint_sees_how_words_are_cut_and_what_the_weights_do_not_show(
        self, tiny_folders: Callable[[str], Path], tmp_path: Path
    ) -> None:
        folder = shutil.copytree(tiny_folders("bert"), tmp_path / "model")
        before = TorchRelBERT.from_pretrained(folder).fingerprint
        change_json(folder / "tokenizer_config.json", do_lower_case=False)
        other_case = TorchRelBERT.from_pretrained(folder).fingerprint
        change_json(folder / "config.json", hidden_act="relu")
        assert len({before, other_case, TorchRelBERT.from_pretrained(folder).fingerprint}) == 3

    def test_the_folder_has_the_published_format(self, tiny: TorchRelBERT, tmp_path: Path) -> None:
        from transformers import AutoConfig, AutoModel

        tiny.save_pretrained(tmp_path / "saved")
        config = AutoConfig.from_pretrained(tmp_path / "saved")
        assert config.relbert_config == {"aggregation_mode": "average", "template": "<subj> is the <mask> of <obj>"}
        assert type(AutoModel.from_pretrained(tmp_path / "saved")) is type(tiny.encoder)
        assert (tmp_path / "saved" / "model.safetensors").is_file()

    def test_a_learned_prompt_of_new_vocabulary_rows_survives(self, any_folder: Path, tmp_path: Path) -> None:
        base = TorchRelBERT.from_pretrained(any_folder)
        base.tokenizer.add_tokens(["<v0>", "<v1>"], special_tokens=True)
        base.encoder.resize_token_embeddings(len(base.tokenizer))
        template = Template.from_tokens(["<v0>", "[h]", "<v1>", "[t]"])
        model = TorchRelBERT(base.encoder, base.tokenizer, template)
        model.save_pretrained(tmp_path / "saved")
        again = TorchRelBERT.from_pretrained(tmp_path / "saved")
        assert again.template == template
        np.testing.assert_allclose(again.encode(PAIRS[2:]), model.encode(PAIRS[2:]), atol=1e-6)

    def test_an_encoder_never_tuned_gets_the_papers_prompt(self, tiny: TorchRelBERT, tmp_path: Path) -> None:
        del tiny.encoder.config.relbert_config
        tiny.encoder.save_pretrained(tmp_path)
        tiny.tokenizer.save_pretrained(tmp_path)
        model = TorchRelBERT.from_pretrained(tmp_path)
        assert model.template == Template.of(4)
        assert model.pooling == "average"

    def test_an_old_bin_file_loads_without_running_code(self, tiny: TorchRelBERT, tmp_path: Path) -> None:
        tiny.save_pretrained(tmp_path)
        (tmp_path / "model.safetensors").unlink()
        torch.save(tiny.encoder.state_dict(), tmp_path / "pytorch_model.bin")
        np.testing.assert_allclose(TorchRelBERT.from_pretrained(tmp_path).encode(PAIRS), tiny.encode(PAIRS), atol=1e-6)

        torch.save({"weight": _Payload(tmp_path / "owned")}, tmp_path / "pytorch_model.bin")
        with pytest.raises(RelvecError, match="cannot be loaded"):
            TorchRelBERT.from_pretrained(tmp_path)
        assert not (tmp_path / "owned").exists()

    def test_the_card_names_data_recipe_and_metrics(self, tiny: TorchRelBERT, tmp_path: Path) -> None:
        tiny.training_record = {"data": "my pairs", "recipe": {"loss": "triplet"}, "metrics": {"validation loss": 0.5}}
        tiny.save_pretrained(tmp_path / "saved")
        card = (tmp_path / "saved" / "README.md").read_text()
        assert card.startswith("---\n")
        for part in ("my pairs", "| loss | triplet |", "| validation loss | 0.5 |", "RelBERT.from_pretrained"):
            assert part in card
        assert TorchRelBERT.from_pretrained(tmp_path / "saved").training_record == tiny.training_record

    def test_a_push_uploads_the_saved_form(self, tiny: TorchRelBERT, monkeypatch: pytest.MonkeyPatch) -> None:
        uploaded: dict[str, Any] = {}

        class Hub:
            def __init__(self, token: str | None) -> None:
                uploaded["token"] = token

            def create_repo(self, repository: str, private: bool, exist_ok: bool) -> None:
                uploaded["repository"] = (repository, private)

            def upload_folder(self, repo_id: str, folder_path: str, commit_message: str) -> str:
                uploaded["fingerprint"] = TorchRelBERT.from_pretrained(folder_path).fingerprint
                return f"address of {repo_id}"

        monkeypatch.setattr("huggingface_hub.HfApi", Hub)
        assert tiny.push_to_hub("me/mine", private=True, token="secret") == "address of me/mine"
        assert uploaded == {"token": "secret", "repository": ("me/mine", True), "fingerprint": tiny.fingerprint}

    def test_a_save_leaves_what_is_no_models_and_removes_what_was_an_older_ones(
        self, tiny: TorchRelBERT, tmp_path: Path
    ) -> None:
        mine = {"tsconfig.json", "tokenizer_notes.md", "vocab_of_my_thesis.txt", "vectors.safetensors"}
        stale = {"pytorch_model.bin", "model-00001-of-00002.safetensors", "adapter_config.json", "merges.txt"}
        tiny.save_pretrained(tmp_path)
        for name in mine | stale:
            (tmp_path / name).write_text("old")
        (tmp_path / "vocab.json").mkdir()
        tiny.save_pretrained(tmp_path)
        found = {path.name for path in tmp_path.iterdir()}
        assert mine | {"vocab.json"} <= found
        assert not stale & found

    def test_a_failed_save_leaves_nothing(
        self, tiny: TorchRelBERT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tiny.tokenizer, "save_pretrained", _fail)
        with pytest.raises(RelvecError, match="disk full"):
            tiny.save_pretrained(tmp_path / "saved")
        assert list(tmp_path.iterdir()) == []


class _Payload:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def _fail(*_: Any) -> None:
    raise OSError("disk full")


@pytest.mark.parametrize(("name", "message"), [("", r"no config\.json"), ("model.bin", "give the folder")])
def test_what_is_no_folder_of_a_model_is_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "model.bin").touch()
    with pytest.raises(RelvecError, match=message):
        TorchRelBERT.from_pretrained(tmp_path / name)
