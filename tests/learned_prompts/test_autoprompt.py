import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertTokenizer

from relvec import RelvecError
from relvec.data.rated import RatedRelation
from relvec.learned_prompts.autoprompt import TokenSearch
from relvec.learned_prompts.candidates import (
    PromptEncoder,
    input_embeddings,
    usable_tokens,
)
from relvec.learned_prompts.grid import METHODS, learn
from relvec.learned_prompts.objective import PromptObjective
from relvec.learned_prompts.prompt_task import PromptTask, masked_model
from relvec.learned_prompts.settings import AutoPromptSettings
from relvec.model.torch_backend import TorchRelBERT
from relvec.prompts import Template
from relvec.prompts.learned import Lengths, PromptResult

LENGTHS = Lengths(2, 1, 1)
COST = ("encodings", "seconds")

Search = Callable[..., PromptResult]
Folder = Callable[[str], Path]


@pytest.fixture
def search(tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path) -> Search:
    def run(output: str = "auto", **settings: Any) -> PromptResult:
        chosen: dict[str, Any] = {"iterations": 5, "candidates": 10, "device": "cpu"} | settings
        return learn("autoprompt", tiny_folder, relations, LENGTHS, tmp_path / output, **chosen)

    return run


def prompt_loss(model: TorchRelBERT, triggers: list[int], objective: PromptObjective) -> float:
    """The loss of a prompt the plain way: as the template of a model."""
    names = model.tokenizer.convert_ids_to_tokens(triggers)
    tokens = ["<mask>" if name == model.tokenizer.mask_token else name for name in names]
    template = Template.from_tokens(LENGTHS.arranged(tokens))
    return objective.of_model(TorchRelBERT(model.encoder, model.tokenizer, template, model.pooling))


@pytest.mark.parametrize("architecture", ["roberta", "bert", "mpnet", "albert"])
def test_a_candidate_s_score_is_the_first_order_change_of_the_loss(
    tiny_folders: Folder, relations: list[RatedRelation], architecture: str
) -> None:
    """The loss when the trigger's embedding moves a small step along e_w, by finite differences."""
    model = masked_model(tiny_folders(architecture), LENGTHS, device="cpu")
    model.encoder.double()
    objective = PromptObjective(relations[:4], "train")
    encoder = PromptEncoder(model, objective.pairs)
    token_ids = model.token_ids(objective.pairs)
    triggers = [model.tokenizer.mask_token_id] * 4
    position, step = 2, 1e-6
    table = model.encoder.get_input_embeddings()

    def loss(shift: torch.Tensor) -> torch.Tensor:
        """The loss with the embedding of the trigger moved; each row has it at a place of its own."""
        vectors = []
        for row in token_ids:
            place = [i for i, token in enumerate(row) if token == model.tokenizer.mask_token_id][position]

            def moved(_: Any, __: Any, output: torch.Tensor, place: int = place) -> torch.Tensor:
                output = output.clone()
                output[0, place] += shift
                return output

            hook = table.register_forward_hook(moved)
            vectors.append(model.vectors_of_tokens([row]))
            hook.remove()
        return objective.loss(torch.cat(vectors))

    embeddings = input_embeddings(model.encoder).double()
    start = torch.cat([model.vectors_of_tokens([row]) for row in token_ids]).requires_grad_()
    (gradients,) = torch.autograd.grad(objective.loss(start), start)
    gradient = encoder.trigger_gradients(triggers, gradients)[position].double()
    for number in (7, 50, 90):
        numeric = (loss(step * embeddings[number]) - loss(-step * embeddings[number])) / (2 * step)
        assert float(embeddings[number] @ gradient) == pytest.approx(float(numeric), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("architecture", ["roberta", "bert", "mpnet"])
def test_every_loss_of_a_candidate_is_that_of_a_plain_model_with_its_template(
    tiny_folders: Folder, relations: list[RatedRelation], tmp_path: Path, architecture: str
) -> None:
    folder = tiny_folders(architecture)
    settings: dict[str, Any] = {"iterations": 3, "candidates": 5, "exhaustive": True, "device": "cpu"}
    result = learn("autoprompt", folder, relations, LENGTHS, tmp_path / "auto", **settings)
    objective = PromptObjective(relations, "train")
    model = TorchRelBERT.from_pretrained(folder, device="cpu")
    vocabulary = model.tokenizer.get_vocab()
    triggers = [model.tokenizer.mask_token_id] * 4
    entries = [json.loads(line) for line in (tmp_path / "auto" / "history.jsonl").read_text().splitlines()[2:]]
    assert any("candidate" in entry for entry in entries)
    for entry in entries:
        tried = triggers.copy()
        if "candidate" in entry:
            tried[entry["position"]] = vocabulary[entry["candidate"]]
        elif entry["changed"]:
            triggers[entry["position"]] = tried[entry["position"]] = vocabulary[entry["token"]]
        loss = entry["losses"][0] if "candidate" in entry else entry["loss"]
        assert loss == pytest.approx(prompt_loss(model, tried, objective), rel=1e-4)
    assert result.train_loss == entries[-1]["loss"]


def test_the_loss_never_rises_and_falls_at_last(search: Search) -> None:
    losses = [entry["loss"] for entry in search(iterations=8).history]
    assert len(losses) == 9
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


def test_the_loss_never_rises_however_wrong_the_early_rounds_are(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relvec.learned_prompts.candidates.STANDARD_ERRORS", 0.0)  # only a round's leader goes on
    for seed in range(2):
        losses = [entry["loss"] for entry in search(f"seed {seed}", iterations=12, seed=seed).history]
        assert losses == sorted(losses, reverse=True)


def test_the_best_candidate_of_an_iteration_takes_the_place(search: Search, tmp_path: Path) -> None:
    search(exhaustive=True)
    entries = [json.loads(line) for line in (tmp_path / "auto" / "history.jsonl").read_text().splitlines()[2:]]
    ends = [entry for entry in entries if "candidate" not in entry]
    assert any(end["changed"] for end in ends)
    for end in ends:
        tried = [entry for entry in entries if "candidate" in entry and entry["iteration"] == end["iteration"]]
        lowest = min((entry["losses"][0] for entry in tried), default=end["loss"])
        assert len(tried) in (0, 10)
        assert end["loss"] == lowest if end["changed"] else end["loss"] <= lowest


def test_frozen_weights_stay_bit_identical(tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path) -> None:
    task = PromptTask(tiny_folder, relations, LENGTHS, tmp_path, AutoPromptSettings(iterations=3, candidates=4))
    model = task.model
    before = {name: weight.clone() for name, weight in model.encoder.state_dict().items()}
    TokenSearch(task).run(show_progress=False)
    for name, weight in model.encoder.state_dict().items():
        assert torch.equal(weight, before[name])
    assert all(weight.grad is None for weight in model.encoder.parameters())


def test_dropping_candidates_early_sometimes_ends_with_the_exhaustive_prompt_and_keeps_most_of_the_gain(
    search: Search,
) -> None:
    equal, kept, lost = 0, 0.0, 0.0
    for seed in range(5):
        quick = search(f"quick{seed}", seed=seed)
        full = search(f"full{seed}", seed=seed, exhaustive=True)
        assert quick.encodings < full.encodings
        if quick.tokens == full.tokens:
            equal += 1
            assert quick.train_loss == full.train_loss
        start = full.history[0]["loss"]
        kept += start - quick.train_loss
        lost += start - full.train_loss
    assert equal >= 1
    assert kept > 0.6 * lost


def test_a_prompt_without_its_history_is_not_replaced(search: Search, tmp_path: Path) -> None:
    search(iterations=1)
    (tmp_path / "auto" / "history.jsonl").unlink()
    before = {path: path.read_bytes() for path in (tmp_path / "auto").iterdir()}
    with pytest.raises(RelvecError, match=r"has a prompt\.json without the history\.jsonl"):
        search(iterations=1)
    assert {path: path.read_bytes() for path in (tmp_path / "auto").iterdir()} == before


def test_a_search_that_is_killed_ends_as_if_it_had_not_been(
    search: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = search("whole")
    encode, calls = PromptEncoder.vectors, iter(range(10_000))

    def breaks(self: PromptEncoder, *arguments: Any) -> list[torch.Tensor]:
        if next(calls) % 7 == 6:
            raise KeyboardInterrupt
        return encode(self, *arguments)

    monkeypatch.setattr(PromptEncoder, "vectors", breaks)
    interruptions = 0
    while True:
        try:
            resumed = search("killed")
            break
        except KeyboardInterrupt:
            interruptions += 1
    assert interruptions > 3
    assert (resumed.tokens, resumed.train_loss) == (whole.tokens, whole.train_loss)
    histories = [
        [{key: value for key, value in entry.items() if key not in COST} for entry in result.history]
        for result in (whole, resumed)
    ]
    assert histories[0] == histories[1]


def test_more_iterations_continue_a_finished_search(search: Search) -> None:
    search("short", iterations=2)
    longer, at_once = search("short", iterations=4), search("long", iterations=4)
    assert (longer.tokens, longer.train_loss) == (at_once.tokens, at_once.train_loss)


def test_another_search_is_not_continued(search: Search) -> None:
    search(iterations=1)
    with pytest.raises(RelvecError, match="belongs to a run with another base, other settings"):
        search(iterations=1, seed=3)


def test_encodings_are_counted_and_far_fewer_than_those_of_all_triples(
    search: Search, relations: list[RatedRelation]
) -> None:
    result = search(iterations=1, candidates=5, exhaustive=True)
    objective = PromptObjective(relations, "train")
    assert result.encodings == len(objective.pairs) * (1 + 1 + 5)  # the start, the gradient, the candidates
    assert result.triple_encodings == objective.triple_encodings * (1 + 1 + 5)
    assert result.encodings * 10 < result.triple_encodings


def test_a_position_that_was_tried_in_vain_costs_nothing_again(search: Search) -> None:
    history = search(iterations=40, candidates=1).history
    tried: set[int] = set()
    idle = 0
    for before, entry in pairwise(history):
        is_idle = entry["encodings"] == before["encodings"]
        assert is_idle == (entry["position"] in tried)
        idle += is_idle
        tried = set() if entry["changed"] else tried | {entry["position"]}
    assert idle


def test_a_search_in_bfloat16_is_a_search_of_its_own_judged_in_float32(
    search: Search, tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    found = search(dtype="bfloat16")
    losses = [entry["loss"] for entry in found.history]
    assert losses[0] == pytest.approx(search("exact").history[0]["loss"], rel=0.01)
    assert all(after <= before for before, after in pairwise(losses))
    assert losses[-1] < losses[0]
    assert found.settings["dtype"] == "bfloat16"
    learned = TorchRelBERT.from_pretrained(tiny_folder, template="[h] [t]", pooling="average", device="cpu")
    model = TorchRelBERT(learned.encoder, learned.tokenizer, Template.from_tokens(found.tokens), "average")
    assert found.validation_loss == pytest.approx(PromptObjective(relations, "valid").of_model(model), rel=1e-6)
    with pytest.raises(RelvecError, match="another"):
        search(dtype="float32")


def test_fewer_iterations_than_were_done_are_refused(search: Search) -> None:
    search(iterations=3)
    with pytest.raises(RelvecError, match="has already done 3 iterations; ask for as many or more"):
        search(iterations=2)


def test_candidates_are_readable_tokens_only(any_folder: Path) -> None:
    model = TorchRelBERT.from_pretrained(any_folder, device="cpu")
    tokenizer = model.tokenizer
    usable = usable_tokens(tokenizer, len(input_embeddings(model.encoder)))
    assert not usable[tokenizer.all_special_ids].any()
    assert usable.sum() > 50
    for number in usable.nonzero().flatten().tolist():
        text = str(tokenizer.decode([number])).strip()
        assert text
        assert text.isprintable()
        assert "\ufffd" not in text


def test_unused_and_added_tokens_and_slots_are_no_candidates(tiny_folders: Folder) -> None:
    known = TorchRelBERT.from_pretrained(tiny_folders("bert"), device="cpu").tokenizer.get_vocab()
    barred = ["[unused7]", "madeupword0001", "<mask>", "[h]", "<obj>"]
    words = ["unused", "heads"]
    extended = known | {token: len(known) + number for number, token in enumerate([*barred, *words])}
    tokenizer = BertTokenizer(vocab=extended)
    tokenizer.add_tokens(["added"])
    usable = usable_tokens(tokenizer, len(tokenizer))
    assert not usable[tokenizer.convert_tokens_to_ids([*barred, "added"])].any()
    assert usable[tokenizer.convert_tokens_to_ids(words)].all()


def test_a_loss_that_is_not_finite_ends_the_search(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path
) -> None:
    base = TorchRelBERT.from_pretrained(tiny_folder, device="cpu")
    next(base.encoder.parameters()).data.fill_(3e38)  # sums of it overflow
    base.save_pretrained(tmp_path / "base")
    with pytest.raises(RelvecError, match=r"loss of the base is not finite; compute in float32 \(--dtype float32\)"):
        learn("autoprompt", tmp_path / "base", relations, LENGTHS, tmp_path / "other", iterations=1, candidates=2)


def test_a_journal_that_makes_no_sense_is_named(search: Search, tmp_path: Path) -> None:
    search(iterations=1)
    with (tmp_path / "auto" / "history.jsonl").open("a") as file:
        file.write('{"iteration": 1, "loss": null, "encodings": 1, "seconds": 1}\n')
    with pytest.raises(RelvecError, match=r"history\.jsonl is damaged"):
        search(iterations=2)


def test_the_folder_holds_the_prompt_its_history_and_a_picture(search: Search, tmp_path: Path) -> None:
    result = search()
    folder = tmp_path / "auto"
    assert {path.name for path in folder.iterdir()} == {"prompt.json", "history.jsonl", "loss.svg"}
    loaded = PromptResult.load(folder)
    assert loaded.as_dict() == result.as_dict()
    assert loaded.template.tokens == tuple(result.tokens)
    assert result.text.count("[h]") == result.text.count("[t]") == 1
    saved = json.loads((folder / "prompt.json").read_text())
    assert saved["lengths"] == "2,1,1"
    assert saved["method"] == "autoprompt"


def test_the_model_of_a_prompt_shows_its_readable_text_and_loads_its_tokens(
    tiny: TorchRelBERT, search: Search, tmp_path: Path
) -> None:
    result = search().changed({"tokens": ["Ġthe", "[h]", "is", "[t]"], "text": "the [h] is [t]"})
    TorchRelBERT(tiny.encoder, tiny.tokenizer, result.template).save_pretrained(tmp_path / "model")
    saved = json.loads((tmp_path / "model" / "config.json").read_text())["relbert_config"]
    assert saved["template"] == "the <subj> is <obj>"
    loaded = TorchRelBERT.from_pretrained(tmp_path / "model")
    assert loaded.template == result.template
    learned = TorchRelBERT(tiny.encoder, tiny.tokenizer, Template.from_tokens(result.tokens))
    assert loaded.token_ids([("Paris", "France")]) == learned.token_ids([("Paris", "France")])


def test_the_prompt_says_how_and_on_what_it_was_learned(search: Search, tmp_path: Path) -> None:
    search(source={"data": ["my.csv"], "exclude_benchmark_pairs": True})
    assert json.loads((tmp_path / "auto" / "prompt.json").read_text())["settings"] == {
        "iterations": 5,
        "candidates": 10,
        "exhaustive": False,
        "dtype": "float32",
        "data": ["my.csv"],
        "exclude_benchmark_pairs": True,
    }


def test_a_prompt_that_was_saved_without_its_settings_still_loads(search: Search, tmp_path: Path) -> None:
    result = search(iterations=1)
    path = tmp_path / "auto" / "prompt.json"
    saved = json.loads(path.read_text())
    del saved["settings"], saved["checksum"]
    path.write_text(json.dumps(saved))
    assert PromptResult.load(tmp_path / "auto") == result.changed({"settings": {}, "history": []})


@pytest.mark.parametrize("method", METHODS)
def test_a_prompt_finds_its_base_from_any_working_directory(
    tiny_folder: Path,
    relations: list[RatedRelation],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
) -> None:
    monkeypatch.chdir(tiny_folder.parent)
    settings: dict[str, Any] = {"iterations": 1, "candidates": 2} if method == "autoprompt" else {"steps": 1}
    learn(method, tiny_folder.name, relations, LENGTHS, tmp_path / "prompt", **settings)
    monkeypatch.chdir(tmp_path)
    assert PromptResult.load("prompt").base == str(tiny_folder)


@pytest.mark.parametrize("method", METHODS)
def test_a_prompt_never_replaces_its_base(
    tiny_folder: Path, relations: list[RatedRelation], tmp_path: Path, method: str
) -> None:
    base = Path(shutil.copytree(tiny_folder, tmp_path / "base"))
    before = {path.name: path.read_bytes() for path in base.iterdir()}
    with pytest.raises(RelvecError, match="holds the base that the prompt needs; choose another output"):
        learn(method, base, relations, LENGTHS, base)
    assert {path.name: path.read_bytes() for path in base.iterdir()} == before


@pytest.mark.parametrize("method", METHODS)
def test_lengths_that_leave_the_words_no_room_are_refused_before_anything_is_written(
    tiny_folder: Path,
    relations: list[RatedRelation],
    tmp_path: Path,
    method: str,
) -> None:
    with pytest.raises(RelvecError, match=r"The lengths 55,1,1 are too many for .*; give fewer --lengths"):
        learn(method, tiny_folder, relations, Lengths(55, 1, 1), tmp_path / "prompt")
    assert not (tmp_path / "prompt").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pooling": "mask"}, "choose average or average_no_mask"),
        ({"dtype": "float8"}, "Unknown dtype 'float8'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(search: Search, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RelvecError, match=message):
        search(**settings)


def test_a_base_without_a_mask_token_is_refused(
    tiny_folders: Folder, relations: list[RatedRelation], tmp_path: Path
) -> None:
    model = TorchRelBERT.from_pretrained(tiny_folders("bert"), template="[h] [t]", device="cpu")
    model.tokenizer.mask_token = None
    model.save_pretrained(tmp_path / "maskless")
    with pytest.raises(RelvecError, match="has a <mask>, but the tokenizer has none"):
        learn("autoprompt", tmp_path / "maskless", relations, LENGTHS, tmp_path / "auto")


def test_relations_with_too_few_pairs_are_refused(tiny_folder: Path, tmp_path: Path) -> None:
    lonely = [RatedRelation("r", "", (("a", "b"), ("c", "d")), ()), RatedRelation("s", "", (("e", "f"),), ())]
    with pytest.raises(RelvecError, match="has 2 positives, 3 are needed"):
        learn("autoprompt", tiny_folder, lonely, LENGTHS, tmp_path / "auto")


@pytest.mark.parametrize("damage", [{"lengths": 8}, {"tokens": ["no", "slots"]}])
def test_a_damaged_prompt_is_one_sentence_with_its_file(search: Search, tmp_path: Path, damage: dict[str, Any]) -> None:
    with pytest.raises(RelvecError, match="There is no learned prompt in"):
        PromptResult.load(tmp_path / "auto")
    saved = search(iterations=1).as_dict()
    path = tmp_path / "auto" / "prompt.json"
    path.write_text(json.dumps(saved | damage))
    with pytest.raises(RelvecError, match=r"prompt\.json cannot be read .*; remove it and learn the prompt again\.$"):
        PromptResult.load(path.parent)
