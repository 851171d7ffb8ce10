import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

from relvec.data.benchmarks.analogy import datasets_with
from relvec.evaluation import mlp_grid
from relvec.evaluation.records import load_predictions, load_records

Relvec = Callable[..., Any]
Refused = Callable[..., str]

QUESTIONS = [
    {"stem": ["Paris", "France"], "choice": [["cup", "tea"], ["Paris", "France"]], "answer": 1, "prefix": "gram1"},
    {"stem": ["hot", "cold"], "choice": [["hot", "cold"], ["big", "bigger"], ["a", "b"]], "answer": 0, "prefix": "x"},
]
PREDICTIONS = ["--baseline", "predictions", "--set", "file=saved.jsonl", "--set", "column=mine"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A data folder with all analogy datasets, a classification dataset and a mapping problem, each tiny."""
    root = tmp_path / "data"
    for dataset in {dataset.folder for dataset in datasets_with("test").values()}:
        folder = root / "analogy" / dataset
        folder.mkdir(parents=True)
        for part in ("valid", "test"):
            (folder / f"{part}.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)))
    rows = [("cat", "animal", "HYPER"), ("rose", "flower", "HYPER"), ("hot", "cold", "RANDOM"), ("up", "tea", "RANDOM")]
    (root / "lexrel" / "root09").mkdir(parents=True)
    for part in ("train", "valid", "test"):
        lines = [json.dumps({"head": head, "tail": tail, "relation": label}) for head, tail, label in rows]
        (root / "lexrel" / "root09" / f"{part}.jsonl").write_text("\n".join(lines))
    (root / "mapping").mkdir()
    problem = {"source": ["sun", "planet", "gravity"], "target": ["nucleus", "electron", "charge"]}
    (root / "mapping" / "relation_mapping.jsonl").write_text(json.dumps(problem))
    return root


def test_a_benchmark_may_be_given_by_its_title_in_any_case(relvec: Relvec, tiny_folder: Path, data_dir: Path) -> None:
    where = ("--model", tiny_folder, "--data-dir", data_dir)
    analogy = ["--dataset", "SAT", "--dataset", "sat full", "--dataset", "u2", "--dataset", "U2"]
    assert relvec("evaluate", "analogy", *where, *analogy).code == 0
    assert relvec("evaluate", "classification", *where, "--dataset", "Root09", "--no-grid").code == 0
    assert relvec("evaluate", "mapping", *where, "--dataset", "Relation mapping").code == 0
    known = ["sat", "sat_full", "u2", "root09", "relation_mapping"]
    assert sorted(record.dataset for record in load_records("runs")) == sorted(known)
    Path("SAT").mkdir()
    Path("SAT/test.jsonl").write_text(json.dumps(QUESTIONS[0]))
    assert relvec("evaluate", "analogy", *where, "--dataset", "SAT").code == 0
    assert "SAT" in {record.dataset for record in load_records("runs")}


def test_analogies_are_answered_and_kept(relvec: Relvec, tiny_folder: Path, data_dir: Path) -> None:
    ways = ["--scoring", "forward", "--scoring", "bidirectional"]
    result = relvec("evaluate", "analogy", "--model", tiny_folder, "--data-dir", data_dir, *ways)
    assert result.code == 0, result.err
    assert len(result.out.splitlines()) == 1 + 2 * len(datasets_with("test"))
    records = load_records("runs")
    assert {record.metrics["accuracy"] for record in records} == {100.0}
    assert {record.dataset: record.metrics["questions"] for record in records}["sat_full"] == 2 * len(QUESTIONS)
    assert records[0].facts["kind"] == "relation model"
    assert records[0].command.startswith("relvec evaluate analogy")
    u2 = next(record for record in records if record.dataset == "u2")
    assert [row["predicted"] for row in load_predictions(u2, "runs")] == [1, 0]


def test_the_second_run_encodes_nothing(
    relvec: Relvec, tiny_folder: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["evaluate", "analogy", "--model", tiny_folder, "--data-dir", data_dir, "--json"]
    first = relvec(*arguments)

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a pair was encoded twice")

    monkeypatch.setattr("relvec.model.torch_backend.RelBERT._encode_distinct", fail)
    assert relvec(*arguments).out == first.out


def test_an_untrained_encoder_with_another_prompt_is_another_system(
    relvec: Relvec, tiny_folder: Path, data_dir: Path
) -> None:
    for prompt in ([], ["--template", "3", "--pooling", "mask"]):
        options = ["--model", tiny_folder, "--data-dir", data_dir, "--dataset", "u2", *prompt]
        assert relvec("evaluate", "analogy", *options).code == 0
    plain, prompted = load_records("runs")
    assert plain.system == tiny_folder.name
    assert prompted.system == f"{tiny_folder.name} (template 3, mask)"
    assert plain.fingerprint != prompted.fingerprint


@pytest.mark.parametrize(
    ("settings", "accuracy"),
    [
        (["random"], 100 * (1 / 2 + 1 / 3) / 2),
        (["word-vectors", "--set", "vectors=words.txt", "--set", "features=diff"], 50.0),
        (["pair-vectors", "--set", "pairs=pairs.txt"], 50.0),
        (["word-vectors", "--set", "vectors=words.txt", "--set", "pairs=pairs.txt"], 50.0),
        (["pmi", "--set", "corpus=corpus.txt", "--set", "window=3"], 50.0),
        (["predictions", "--set", "file=saved.jsonl", "--set", "column=mine"], 50.0),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_baselines_answer_the_same_questions(
    relvec: Relvec, data_dir: Path, settings: list[str], accuracy: float
) -> None:
    # Only the first question's words are known; the second counts as wrong.
    Path("words.txt").write_text("Paris 1 0\nFrance 0 1\ncup 3 1\ntea 5 2\n")
    Path("pairs.txt").write_text("Paris__France 1 0\ncup__tea 0 1\n")
    Path("corpus.txt").write_text("Paris is in France, and Paris is France. A cup, a saucer, a pot and some tea.")
    rows = [{"dataset": "u2", "split": "test", "index": n, "answer": q["answer"]} for n, q in enumerate(QUESTIONS)]
    given = [{**row, "mine": answer} for row, answer in zip(rows, (1, None), strict=True)]
    Path("saved.jsonl").write_text("\n".join(map(json.dumps, given)))
    options = ["--data-dir", data_dir, "--dataset", "u2", "--json"]
    result = relvec("evaluate", "analogy", "--baseline", *settings, *options)
    assert result.code == 0, result.err
    assert json.loads(result.out)[0]["accuracy"] == pytest.approx(accuracy)


@pytest.mark.parametrize("settings", [["few-shot"], ["few-shot", "--set", "shots=1"], ["proportion"]])
def test_a_language_model_answers_the_same_questions(
    relvec: Relvec, tiny_folder: Path, data_dir: Path, settings: list[str]
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_folder)
    sizes: dict[str, Any] = {
        "n_positions": 64,
        "n_embd": 16,
        "n_layer": 1,
        "n_head": 2,
        "bos_token_id": 0,
        "eos_token_id": 2,
    }
    GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **sizes)).save_pretrained("gpt")
    tokenizer.save_pretrained("gpt")
    options = ["--set", "lm=gpt", "--data-dir", data_dir, "--dataset", "u2", "--json"]
    result = relvec("evaluate", "analogy", "--baseline", *settings, *options)
    assert result.code == 0, result.err
    (found,) = json.loads(result.out)
    assert found["system"].startswith("gpt")
    assert (found["questions"], found["out_of_vocabulary"]) == (2, 0)


def test_unknown_words_can_take_the_answers_of_another_system(relvec: Relvec, data_dir: Path) -> None:
    rows = [{"dataset": "u2", "split": "test", "index": n, "answer": q["answer"]} for n, q in enumerate(QUESTIONS)]
    given = [{**row, "mine": None, "pmi": row["answer"]} for row in rows]
    Path("saved.jsonl").write_text("\n".join(map(json.dumps, given)))
    options = ["--data-dir", data_dir, "--dataset", "u2", "--json"]
    arguments = ["evaluate", "analogy", *PREDICTIONS]
    assert json.loads(relvec(*arguments, *options).out)[0]["accuracy"] == 0
    fallback = ["--out-of-vocabulary", "fallback", "--fallback", str(Path("saved.jsonl").absolute()) + ":pmi"]
    assert json.loads(relvec(*arguments, *options, *fallback).out)[0]["accuracy"] == 100
    assert {record.settings.get("fallback") for record in load_records("runs")} == {None, "saved.jsonl:pmi"}
    assert str(data_dir.parent) not in Path("runs/records.jsonl").read_text()


def test_unknown_words_can_take_the_answers_of_a_system_that_was_evaluated(relvec: Relvec, data_dir: Path) -> None:
    Path("corpus.txt").write_text("Paris is in France. A cup, a saucer, a pot and tea.\nhot or cold; big, not bigger")
    Path("words.txt").write_text("Paris 1 0\nFrance 0 1\ncup 3 1\ntea 5 2\n")
    options = ["--data-dir", data_dir, "--json"]
    pmi = relvec("evaluate", "analogy", "--baseline", "pmi", "--set", "corpus=corpus.txt", *options)
    assert pmi.code == 0, pmi.err
    words = ["evaluate", "analogy", "--baseline", "word-vectors", "--set", "vectors=words.txt", *options]
    assert {found["accuracy"] for found in json.loads(relvec(*words).out)} == {50.0}
    result = relvec(*words, "--out-of-vocabulary", "fallback", "--fallback", "PMI")
    assert result.code == 0, result.err
    assert {found["accuracy"] for found in json.loads(result.out)} == {100.0}
    assert {found["settings"]["fallback"] for found in json.loads(result.out)} == {"PMI"}


def test_the_validation_parts_hold_no_question_of_a_test_part(relvec: Relvec, data_dir: Path) -> None:
    options = ["--baseline", "random", "--data-dir", data_dir, "--part", "valid", "--json"]
    found = {told["dataset"]: told["questions"] for told in json.loads(relvec("evaluate", "analogy", *options).out)}
    assert found == dict.fromkeys(("sat", "u2", "u4", "google", "bats"), len(QUESTIONS))


def test_settings_and_numbers_of_one_name_are_told_apart(relvec: Relvec, data_dir: Path) -> None:
    options = ["--baseline", "random", "--data-dir", data_dir, "--dataset", "u2", "--json"]
    (found,) = json.loads(relvec("evaluate", "analogy", *options).out)
    assert (found["settings"]["out_of_vocabulary"], found["out_of_vocabulary"]) == ("chance", 2)


@pytest.mark.parametrize("how", [[], ["--fine-tune"]])
def test_classification_is_scored_and_kept(relvec: Relvec, tiny_folder: Path, data_dir: Path, how: list[str]) -> None:
    options = ["--model", tiny_folder, "--data-dir", data_dir, "--dataset", "root09", "--jobs", "1", "--json", *how]
    result = relvec("evaluate", "classification", *options)
    assert result.code == 0, result.err
    (found,) = json.loads(result.out)
    assert found["settings"]["classifier"] == ("fine-tuned" if how else "mlp")
    assert found["pairs"] == {"train": 4, "valid": 4, "test": 4}
    again = relvec("evaluate", "classification", *options)
    assert again.out == result.out
    printed = relvec("evaluate", "classification", *(option for option in options if option != "--json"))
    assert printed.out.splitlines()[-1].split("\t")[-1] == "4", printed.err


def test_an_edited_dataset_is_classified_again(relvec: Relvec, tiny_folder: Path, data_dir: Path) -> None:
    options = ["--model", tiny_folder, "--dataset", "mine", "--jobs", "1", "--json"]
    shutil.copytree(data_dir / "lexrel" / "root09", "mine")
    (before,) = json.loads(relvec("evaluate", "classification", *options).out)
    Path("mine/test.jsonl").write_text(Path("mine/test.jsonl").read_text().splitlines()[0])
    (after,) = json.loads(relvec("evaluate", "classification", *options).out)
    assert (before["pairs"]["test"], after["pairs"]["test"]) == (4, 1)


@pytest.mark.parametrize(("where", "model"), [("tiny", "."), ("tiny/below", ".."), (".", "tiny/")])
def test_a_model_is_called_by_its_folder(
    relvec: Relvec, tiny_folder: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch, where: str, model: str
) -> None:
    shutil.copytree(tiny_folder, "tiny")
    Path("tiny/below").mkdir()
    monkeypatch.chdir(where)
    result = relvec("evaluate", "analogy", "--model", model, "--data-dir", data_dir, "--dataset", "u2")
    assert result.code == 0, result.err
    assert [record.system for record in load_records("runs")] == ["tiny"]


def test_mapping_and_loss_are_scored(relvec: Relvec, tiny_folder: Path, data_dir: Path) -> None:
    result = relvec("evaluate", "mapping", "--model", tiny_folder, "--data-dir", data_dir, "--json")
    assert result.code == 0, result.err
    assert 0 <= json.loads(result.out)[0]["accuracy"] <= 100
    result = relvec("evaluate", "loss", "--model", tiny_folder, "--data", "bundled", "--json")
    assert result.code == 0, result.err
    (told,) = json.loads(result.out)
    assert (told["settings"], told["loss"] > 0) == ({"loss": "triplet"}, True)
    assert {record.task for record in load_records("runs")} == {"mapping", "loss"}


def test_pairs_of_unknown_words_are_counted_in_a_mapping(relvec: Relvec, data_dir: Path) -> None:
    Path("words.txt").write_text("sun 1 0\nplanet 0 1\nnucleus 3 1\nelectron 5 2\ncharge 1 1\n")
    options = ["--baseline", "word-vectors", "--set", "vectors=words.txt", "--data-dir", data_dir]
    result = relvec("evaluate", "mapping", *options)
    assert result.code == 0, result.err
    head, row = (line.split("\t") for line in result.out.splitlines())
    assert dict(zip(head, row, strict=True)) | {"pairs": "12", "unknown": "4"} == dict(zip(head, row, strict=True))
    assert relvec("report", "-o", "report", "--no-figures").code == 0
    assert "unknown pairs |" in Path("report/results.md").read_text()


@pytest.mark.parametrize("features", ["cat", "cat+dot", "diff", "diff+dot", "dot"])
def test_word_vectors_are_classified_with_the_papers_features(
    relvec: Relvec, data_dir: Path, features: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlp_grid, "GRID", mlp_grid.GRID[:1])
    words = ["cat", "animal", "rose", "flower", "hot", "cold", "up", "tea"]
    Path("glove.txt").write_text("".join(f"{word} {n} {n % 3} 1\n" for n, word in enumerate(words)))
    chosen = ["--baseline", "word-vectors", "--set", "vectors=glove.txt", "--set", f"features={features}"]
    where = ["--data-dir", data_dir, "--dataset", "root09", "--jobs", "1", "--name", f"GloVe, {features}"]
    result = relvec("evaluate", "classification", *chosen, *where)
    assert result.code == 0, result.err
    (record,) = load_records("runs")
    assert record.system == f"GloVe, {features}"
    assert record.metrics["out_of_vocabulary"] == {"train": 0, "valid": 0, "test": 0}


def test_the_baselines_are_listed(relvec: Relvec) -> None:
    names = {line.split("\t")[0] for line in relvec("baselines").out.splitlines()}
    assert {"random", "pmi", "word-vectors", "pair-vectors", "proportion", "few-shot", "predictions"} <= names
    assert json.loads(relvec("baselines", "--json").out)[0]["name"] == "random"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["analogy", "--baseline", "word-vector"], "did you mean 'word-vectors'"),
        (["analogy", "--baseline", "word-vectors"], "needs vectors"),
        (["analogy", "--baseline", "word-vectors", "--set", "vectors"], "write --set name=value"),
        (["analogy", "--baseline", "pmi", "--set", "corpse=x"], "did you mean 'corpus'"),
        (["analogy", "--baseline", "pmi", "--set", "corpus=x.txt", "--set", "window=ten"], "give a whole number"),
        (["analogy", "--baseline", "random", "--model", "m"], "--baseline stands alone"),
        (["analogy", "--baseline", "random", "--dtype", "bfloat16"], "--baseline stands alone"),
        (["analogy", "--dtype", "int3"], "Unknown dtype 'int3'; did you mean 'int8'"),
        (["analogy", "--baseline", "predictions", "--set", "file=nowhere.jsonl", "--set", "column=a"], "nowhere.jsonl"),
        (["analogy", "--set", "a=b"], "--set is for baselines"),
        (["analogy", "--dataset", "satt"], "did you mean 'sat'"),
        (["analogy", "--part", "train"], "choose one of valid, test"),
        (["analogy", "--part", "valid", "--dataset", "sat_full"], "holds the test questions of sat; use sat."),
        (["classification", "--seed", "-1"], "'--seed'"),
        (["classification", "--seed", str(2**32)], "'--seed'"),
        (["classification", "--jobs", "0"], "'--jobs'"),
        (["analogy", "--scoring", "backward"], "choose one of forward, reverse, bidirectional"),
        (["analogy", "--out-of-vocabulary", "skip"], "choose one of wrong, chance, fallback"),
        (
            ["analogy", *PREDICTIONS, "--out-of-vocabulary", "fallback", "--fallback", "no.jsonl:a"],
            "no.jsonl",
        ),
        (["analogy", "--baseline", "random", "--out-of-vocabulary", "fallback"], "give both or neither"),
        (["analogy", "--baseline", "random", "--fallback", "saved.jsonl:a"], "give both or neither"),
        (
            ["analogy", *PREDICTIONS, "--out-of-vocabulary", "fallback", "--fallback", "PMI"],
            "records.jsonl; run `relvec evaluate`",
        ),
        (["analogy", "--baseline", "random", "--scoring", "reverse"], "compares no vectors"),
        (["analogy", "--baseline", "few-shot", "--set", "lm=x", "--set", "shots=²"], "give a whole number"),
        (
            ["analogy", "--baseline", "proportion", "--set", "lm=x", "--set", "template=to-us"],
            "did you mean 'to-as'",
        ),
        (["classification", "--baseline", "random"], "cannot be scored on classification"),
        (["classification", "--baseline", "word-vectors", "--fine-tune"], "no encoder to fine-tune"),
        (["classification", "--lora", "4"], "--lora is for --fine-tune"),
        (["classification", "--dataset", "bles"], "did you mean 'bless'"),
        (["classification", "--dataset", "bless"], "lexrel/bless/train.jsonl"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    refused: Refused, data_dir: Path, arguments: list[str], message: str
) -> None:
    assert message in refused("evaluate", *arguments, "--data-dir", data_dir)


def test_the_own_questions_need_no_other_data(relvec: Relvec) -> None:
    result = relvec("evaluate", "analogy", "--baseline", "random", "--dataset", "bundled", "--part", "valid")
    assert result.code == 0, result.err
    first, second = (result.out.splitlines()[place].split("\t") for place in (1, 3))
    assert first[0] == "bundled"
    assert second[0] == "other"
