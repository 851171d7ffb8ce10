import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer

from relvec import RelvecError
from relvec.data.rated import RatedRelation, split
from relvec.learned_prompts.grid import learn
from relvec.learned_prompts.objective import PromptObjective, manual_losses
from relvec.learned_prompts.prompt_task import masked_model
from relvec.learned_prompts.ptuning import PromptTuner, PromptTuning, embedding_table
from relvec.model.torch_backend import TorchRelBERT
from relvec.prompts.learned import Lengths, PromptResult
from relvec.similarity import cosine
from relvec.training.loop import CHECKPOINT_NAME
from relvec.training.samplers import TripleBatches

LENGTHS = Lengths(3, 1, 1)
ptune = partial(learn, "ptuning")
PAIRS = [("Paris", "France"), ("ice cream", "tea"), ("dogs'", "o'clock")]
QUICK: dict[str, Any] = {"steps": 6, "evaluate_every": 2, "triples_per_batch": 4, "learning_rate": 1e-2}


def tuned(folder: Path, relations: list[RatedRelation], steps: int = 5, **settings: Any) -> PromptTuner:
    """A tuner that has taken some steps."""
    tuner = PromptTuner(masked_model(folder, LENGTHS), LENGTHS, **settings)
    take_steps(tuner, relations, steps)
    return tuner


def take_steps(tuner: PromptTuner, relations: list[RatedRelation], steps: int) -> None:
    batches = TripleBatches(split(relations, "train"), 4, seed=0)
    optimizer = torch.optim.Adam(tuner.triggers.parameters(), lr=1e-2)
    for step in range(steps):
        optimizer.zero_grad()
        tuner.loss(batches(step)).backward()
        optimizer.step()


def test_the_reloaded_model_gives_the_vectors_of_the_trained_one(
    any_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    tuner = tuned(any_folder, relations)
    untrained = tuner.model.encode(PAIRS)
    trained = tuner.vectors(PAIRS).detach().numpy()
    tuner.keep(tuner.embeddings())
    tuner.model.save_pretrained(tmp_path / "soft")
    reloaded = TorchRelBERT.from_pretrained(tmp_path / "soft").encode(PAIRS)
    np.testing.assert_allclose(reloaded, trained, atol=1e-5)
    np.testing.assert_allclose(np.diag(cosine(reloaded, trained)), 1, atol=1e-6)
    assert np.abs(untrained - trained).max() > 1e-3


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_language_model_stays_bit_identical(
    any_folder: Path, relations: list[RatedRelation], tmp_path: Path, dtype: str
) -> None:
    before = TorchRelBERT.from_pretrained(any_folder)
    ptune(any_folder, relations, LENGTHS, tmp_path / "soft", **QUICK, dtype=dtype)
    after = load_file(tmp_path / "soft" / "model.safetensors")
    weights = before.encoder.state_dict()
    assert after.keys() == weights.keys()
    grown = [name for name, weight in weights.items() if weight.shape != after[name].shape]
    assert len(grown) == 1
    for name, weight in weights.items():
        assert torch.equal(after[name][: len(weight)], weight), name
    rows = embedding_table(before.encoder).num_embeddings
    assert after[grown[0]].shape == (rows + LENGTHS.total, embedding_table(before.encoder).embedding_dim)


def test_the_checkpoint_is_a_plain_encoder(any_folder: Path, relations: list[RatedRelation], tmp_path: Path) -> None:
    result = ptune(any_folder, relations, LENGTHS, tmp_path / "soft", **QUICK)
    encoder = AutoModel.from_pretrained(tmp_path / "soft")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "soft")
    plain = AutoTokenizer.from_pretrained(any_folder)
    assert encoder.config.vocab_size == len(tokenizer) == len(plain) + LENGTHS.total
    words = [word for relation in relations for pair in (*relation.positives, *relation.negatives) for word in pair]
    assert tokenizer(words)["input_ids"] == plain(words)["input_ids"]
    assert [token for token in result.tokens if token in plain.get_vocab()] == []
    sentence = result.template.fill(PAIRS[0])
    output = encoder(**tokenizer(sentence, return_tensors="pt")).last_hidden_state
    expected = TorchRelBERT.from_pretrained(tmp_path / "soft").encode(PAIRS[0])
    np.testing.assert_allclose(output.mean(dim=1)[0].detach().numpy(), expected, atol=1e-5)


def test_only_the_trigger_encoder_is_trained(tiny_folder: Path, relations: list[RatedRelation]) -> None:
    start = tuned(tiny_folder, relations, steps=0)
    tuner = tuned(tiny_folder, relations, steps=2)
    assert not tuner.model.encoder.training
    assert not any(weight.requires_grad for weight in tuner.model.encoder.parameters())
    assert all(weight.grad is None for weight in tuner.model.encoder.parameters())
    for name, weight in tuner.triggers.named_parameters():
        assert not torch.equal(weight, start.triggers.get_parameter(name)), name


def test_the_loss_falls_on_relations_that_can_be_told_apart(tiny_folder: Path) -> None:
    heads, tails = ["Paris", "Tokyo", "France", "Japan", "bread"], ["coffee", "tea", "wine", "cup", "cats"]
    there = tuple(zip(heads, tails, strict=True))
    back = tuple((tail, head) for head, tail in there)
    relations = [RatedRelation("there", "", there, back), RatedRelation("back", "", back, there)]
    training = PromptObjective(relations, "train")
    tuner = tuned(tiny_folder, relations, steps=0)
    before = training.of_model(tuner.model)
    take_steps(tuner, relations, 40)
    tuner.keep(tuner.embeddings())
    assert training.of_model(tuner.model) < before / 2


def test_bfloat16_learns_what_float32_learns(tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path) -> None:
    exact, coarse = (
        ptune(tiny_folder, relations, LENGTHS, tmp_path / dtype, **QUICK, dtype=dtype)
        for dtype in ("float32", "bfloat16")
    )
    losses = [[entry["loss"] for entry in result.history] for result in (exact, coarse)]
    assert losses[1] != losses[0]
    assert losses[1] == pytest.approx(losses[0], rel=0.03)
    assert coarse.validation_loss == pytest.approx(exact.validation_loss, rel=0.03)
    saved = load_file(tmp_path / "bfloat16" / "model.safetensors")
    assert {weight.dtype for weight in saved.values()} == {torch.float32}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_losses_reported_are_those_of_the_saved_model(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path, dtype: str
) -> None:
    result = ptune(tiny_folder, relations, LENGTHS, tmp_path / "soft", **QUICK, dtype=dtype)
    saved = TorchRelBERT.from_pretrained(tmp_path / "soft")
    assert PromptObjective(relations, "train").of_model(saved) == pytest.approx(result.train_loss, abs=1e-5)
    assert PromptObjective(relations, "valid").of_model(saved) == pytest.approx(result.validation_loss, abs=1e-5)
    evaluated = {entry["step"]: entry["validation_loss"] for entry in result.history if "validation_loss" in entry}
    assert list(evaluated) == [0, 2, 4, 6]
    assert min(evaluated.values()) == pytest.approx(result.validation_loss, abs=1e-6 if dtype == "float32" else 0.02)


def test_the_folder_holds_prompt_history_and_model(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    result = ptune(tiny_folder, relations, LENGTHS, tmp_path / "soft", **QUICK)
    assert PromptResult.load(tmp_path / "soft").as_dict() == result.as_dict()
    assert TorchRelBERT.from_pretrained(tmp_path / "soft").template == result.template
    _job, *entries = map(json.loads, (tmp_path / "soft" / "history.jsonl").read_text().splitlines())
    assert [{name: entry[name] for name in entry if name != "checksum"} for entry in entries] == result.history
    assert [entry["step"] for entry in entries] == list(range(7))
    assert "P-tuning" in (tmp_path / "soft" / "README.md").read_text()
    assert not (tmp_path / "soft" / CHECKPOINT_NAME).exists()


def kill_after(calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    original, taken = PromptTuning.step, iter(range(calls))

    def step(run: PromptTuning, number: int) -> float:
        if next(taken, None) is None:
            raise KeyboardInterrupt
        return original(run, number)

    monkeypatch.setattr(PromptTuning, "step", step)


@pytest.mark.parametrize("calls", [1, 4])
def test_a_killed_run_resumes_to_the_same_weights(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    whole = ptune(tiny_folder, relations, LENGTHS, tmp_path / "whole", **QUICK)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):  # noqa: PT012
        kill_after(calls, patch)
        ptune(tiny_folder, relations, LENGTHS, tmp_path / "killed", **QUICK)
    with monkeypatch.context() as patch:
        kill_after(6 - calls // 2 * 2, patch)  # more than what is left would be a step done twice
        resumed = ptune(tiny_folder, relations, LENGTHS, tmp_path / "killed", **QUICK)
    assert resumed.history == whole.history
    assert {**resumed.as_dict(), "seconds": 0} == {**whole.as_dict(), "seconds": 0}
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("whole", "killed")]
    assert all(torch.equal(weight, weights[1][name]) for name, weight in weights[0].items())


def test_a_finished_run_is_not_repeated(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ptune(tiny_folder, relations, LENGTHS, tmp_path / "soft", **QUICK)
    kill_after(0, monkeypatch)
    assert ptune(tiny_folder, relations, LENGTHS, tmp_path / "soft", **QUICK) == first


def test_a_model_that_is_no_prompt_is_not_replaced(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    model = Path(shutil.copytree(tiny_folder, tmp_path / "my-model"))
    before = sorted(path.name for path in model.iterdir())
    with pytest.raises(RelvecError, match="my-model belongs to a run with another base"):
        ptune(tiny_folder, relations, LENGTHS, model, **QUICK)
    assert sorted(path.name for path in model.iterdir()) == before


def test_a_prompt_without_its_history_is_not_replaced(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    ptune(tiny_folder, relations, LENGTHS, tmp_path / "soft", **QUICK)
    (tmp_path / "soft" / "history.jsonl").unlink()
    before = {path: path.read_bytes() for path in (tmp_path / "soft").iterdir()}
    with pytest.raises(RelvecError, match=r"has a prompt\.json without the history\.jsonl"):
        ptune(tiny_folder, relations, LENGTHS, tmp_path / "soft", **QUICK)
    assert {path: path.read_bytes() for path in (tmp_path / "soft").iterdir()} == before


@pytest.mark.parametrize("moved", [0, 2])
def test_a_run_killed_while_it_saves_the_model_resumes(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    whole = ptune(tiny_folder, relations, LENGTHS, tmp_path / "whole", **QUICK)
    move, moves = Path.replace, iter(range(moved))

    def replace_some(path: Path, target: Path) -> Path:
        if target.suffix in (".json", ".safetensors", ".md") and next(moves, None) is None:
            raise KeyboardInterrupt
        return move(path, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):  # noqa: PT012
        patch.setattr(Path, "replace", replace_some)
        ptune(tiny_folder, relations, LENGTHS, tmp_path / "killed", **QUICK)
    resumed = ptune(tiny_folder, relations, LENGTHS, tmp_path / "killed", **QUICK)
    assert resumed == whole.model_copy(update={"seconds": resumed.seconds, "encodings": resumed.encodings})
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("whole", "killed")]
    assert all(torch.equal(weight, weights[1][name]) for name, weight in weights[0].items())


def test_a_finished_run_says_where_its_relations_came_from_this_time(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    ptune(tiny_folder, relations, LENGTHS, tmp_path, **QUICK, source={"exclude_benchmark_pairs": False})
    again = ptune(tiny_folder, relations, LENGTHS, tmp_path, **QUICK, source={"exclude_benchmark_pairs": True})
    assert again.settings["exclude_benchmark_pairs"] is True
    assert PromptResult.load(tmp_path).as_dict() == again.as_dict()


def test_a_base_without_a_finite_loss_is_named(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    base = TorchRelBERT.from_pretrained(tiny_folder, device="cpu")
    next(base.encoder.parameters()).data.fill_(3e38)  # sums of it overflow
    base.save_pretrained(tmp_path / "base")
    with pytest.raises(RelvecError, match="not finite"):
        ptune(tmp_path / "base", relations, LENGTHS, tmp_path / "soft", **QUICK)
    with pytest.raises(RelvecError, match="not finite"):
        manual_losses(tmp_path / "base", relations)


def test_a_finished_run_whose_model_is_gone_makes_it_again(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    first = ptune(tiny_folder, relations, LENGTHS, tmp_path / "soft", **QUICK)
    before = load_file(tmp_path / "soft" / "model.safetensors")
    (tmp_path / "soft" / "model.safetensors").unlink()
    again = ptune(tiny_folder, relations, LENGTHS, tmp_path / "soft", **QUICK)
    assert again == first.model_copy(update={"seconds": again.seconds})
    after = load_file(tmp_path / "soft" / "model.safetensors")
    assert all(torch.equal(weight, after[name]) for name, weight in before.items())


def test_prompt_and_card_say_how_and_on_what_it_was_learned(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    source = {"data": ["semeval2012", "my.csv"], "exclude_benchmark_pairs": True}
    ptune(tiny_folder, relations, LENGTHS, tmp_path / "soft", **QUICK, source=source)
    assert PromptResult.load(tmp_path / "soft").settings == {**QUICK, "dtype": "float32", **source}
    card = (tmp_path / "soft" / "README.md").read_text()
    data = card.partition("## Training data")[2].partition("##")[0]
    assert "SemEval" in data
    assert "my.csv" in data
    assert "| exclude_benchmark_pairs | True |" in card


def test_encodings_and_those_of_all_triples_count_the_same_passes(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    result = ptune(tiny_folder, relations, LENGTHS, tmp_path / "soft", **QUICK)
    batches = [TripleBatches(split(relations, "train"), 4, seed=0)(step) for step in range(6)]
    training, validation = PromptObjective(relations, "train"), PromptObjective(relations, "valid")
    # At the start and at the end; at steps 0, 2, 4 and 6, and at the end.
    evaluations = [training] * 2 + [validation] * 5
    pairs = sum(len(batch.pairs) for batch in batches)
    assert result.encodings == pairs + sum(len(each.pairs) for each in evaluations)
    of_triples = sum(3 * len(batch.triples) for batch in batches)
    assert result.triple_encodings == of_triples + sum(each.triple_encodings for each in evaluations)


def test_a_run_with_other_settings_is_not_mixed_in(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    ptune(tiny_folder, relations, LENGTHS, tmp_path / "soft", **QUICK)
    with pytest.raises(RelvecError, match="other settings or other data"):
        ptune(tiny_folder, relations, LENGTHS, tmp_path / "soft", **QUICK, seed=1)


def test_the_seed_decides_the_prompt(tiny_folder: Path, relations: list[RatedRelation]) -> None:
    first, again, other = (tuned(tiny_folder, relations, seed=seed).embeddings() for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_epochs_are_the_papers(tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path) -> None:
    few = relations[:2]
    result = ptune(tiny_folder, few, Lengths(1, 0, 0), tmp_path / "soft", epochs=0.02, evaluate_every=100)
    assert result.history[-1]["step"] == 9  # a fiftieth of 450 triples of each of two relations, two a step


def test_a_learned_prompt_can_be_tuned_again(tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path) -> None:
    ptune(tiny_folder, relations, Lengths(1, 1, 0), tmp_path / "first", **QUICK)
    again = ptune(tmp_path / "first", relations, Lengths(1, 0, 0), tmp_path / "second", **QUICK)
    assert again.tokens == ["<relvec-3>", "[h]", "[t]"]
    assert TorchRelBERT.from_pretrained(tmp_path / "second").language_model == str(tiny_folder)


def test_a_relation_without_a_bad_pair_to_train_on_is_named(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    bare = [*relations[:3], replace(relations[3], negatives=relations[3].negatives[:1])]
    advice = "'relation 3' has no negative pair .*; rate more of its pairs low, leave it out, or do without triples"
    with pytest.raises(RelvecError, match=advice):
        ptune(tiny_folder, bare, LENGTHS, tmp_path / "soft", **QUICK)
    assert learn("autoprompt", tiny_folder, bare, LENGTHS, tmp_path / "auto", iterations=1, candidates=1).tokens


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"pooling": "mask"}, "choose average"),
        ({"learning_rate": 1e30}, "lower the learning rate"),
        ({"steps": None, "epochs": 0}, "epochs is 0; use a number above 0"),
    ],
)
def test_what_cannot_work_is_refused(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(RelvecError, match=problem):
        ptune(tiny_folder, relations, LENGTHS, tmp_path / "soft", **{**QUICK, **changes})
