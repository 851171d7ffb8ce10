"""The command as users run it: exit codes, what is printed where, and nothing but one line for bad input."""

import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from relvec.cli.app import make_app
from relvec.hub.catalogue import BASE_MODELS, BUNDLED_MODELS, HUB_MODELS, Measured
from relvec.hub.models import base_folder

Relvec = Callable[..., Any]
Refused = Callable[..., str]


def test_similarity_ranks_the_pairs_for_people_and_machines(relvec: Relvec, tiny_folder: Path) -> None:
    words = ["similarity", "Paris:France", "cup:tea", "Paris:France", "-m", tiny_folder]
    result = relvec(*words)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[:2] == ["pair\tsimilarity", "Paris:France\t1.000"]
    answer = json.loads(relvec(*words, "--json").out)
    assert answer["query"] == "Paris:France"
    assert [row["pair"] for row in answer["ranking"]] == ["Paris:France", "cup:tea"]


def test_solve_marks_the_answer(relvec: Relvec, tiny_folder: Path) -> None:
    question = ("Paris:France", "cup:tea", "Paris:France")
    assert "->\tParis:France\t1.000" in relvec("solve", *question, "-m", tiny_folder).out
    answer = json.loads(relvec("solve", *question, "-m", tiny_folder, "--json", "--scoring", "bidirectional").out)
    assert (answer["answer"], answer["index"], len(answer["choices"])) == ("Paris:France", 1, 2)


def test_embed_writes_vectors_and_reports_on_stderr(relvec: Relvec, tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("Paris\tFrance\nTokyo\tJapan\n")
    result = relvec("embed", tmp_path / "pairs.tsv", "-o", tmp_path / "v.npz", "-m", tiny_folder, "--normalize")
    assert (result.code, result.out) == (0, "")
    assert "2 pairs, 16 dimensions" in result.err
    with np.load(tmp_path / "v.npz") as file:
        np.testing.assert_allclose(np.linalg.norm(file["vectors"], axis=1), 1, atol=1e-5)


def test_embed_does_not_write_over_its_pairs(refused: Refused, tiny_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"head": "Paris", "tail": "France", "note": "mine"}\n')
    assert "is the file of pairs itself; choose another output" in refused("embed", path, "-o", path, "-m", tiny_folder)
    assert "mine" in path.read_text()


def test_embed_computes_in_bfloat16_and_writes_float32(
    relvec: Relvec, tiny_folders: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "pairs.tsv").write_text("Paris\tFrance\nTokyo\tJapan\n")
    found = []
    for dtype in ("float32", "bfloat16"):
        output = tmp_path / f"{dtype}.npy"
        # A BERT, of which a few pairs would be encoded without torch.
        command = ["embed", tmp_path / "pairs.tsv", "-o", output, "-m", tiny_folders("bert"), "--dtype", dtype]
        assert relvec(*command).code == 0
        found.append(np.load(output))
    exact, rounded = found
    assert rounded.dtype == np.float32
    assert not np.array_equal(exact, rounded)
    np.testing.assert_allclose(exact, rounded, atol=0.1)


def test_embed_reads_stdin(relvec: Relvec, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Paris:France\n")))
    assert relvec("embed", "-", "-o", tmp_path / "v.npy", "-m", tiny_folder).code == 0
    assert np.load(tmp_path / "v.npy").shape == (1, 16)


def test_models_lists_every_name_of_the_catalogue(relvec: Relvec) -> None:
    rows = json.loads(relvec("models", "--json").out)
    assert [row["name"] for row in rows] == [*BUNDLED_MODELS, *BASE_MODELS, *HUB_MODELS]
    names = [line.split("\t")[0] for line in relvec("models").out.splitlines()]
    assert names[1:-2] == [row["name"] for row in rows]


def test_models_show_what_was_measured(relvec: Relvec, monkeypatch: pytest.MonkeyPatch) -> None:
    name = next(iter(BUNDLED_MODELS))
    measured = Measured(speed=1, analogy_accuracy=76.54)
    monkeypatch.setitem(BUNDLED_MODELS, name, replace(BUNDLED_MODELS[name], measured=measured))
    head, *lines = (line.split("\t") for line in relvec("models").out.splitlines())
    shown = {row["name"]: row for row in (dict(zip(head, line, strict=True)) for line in lines)}
    assert (shown[name]["speed"], shown[name]["analogies (%)"]) == ("1x", "76.5")
    assert (shown["minilm"]["speed"], shown["minilm"]["analogies (%)"]) == ("-", "-")
    rows = {row["name"]: row for row in json.loads(relvec("models", "--json").out)}
    assert [rows[name][key] for key in ("speed", "analogy_accuracy")] == [1, 76.54]
    assert [rows["minilm"][key] for key in ("speed", "analogy_accuracy")] == [None, None]


def test_fetch_prints_the_folder(relvec: Relvec, tiny_folder: Path) -> None:
    assert relvec("fetch", tiny_folder).out.strip() == str(tiny_folder)


def test_fetch_of_a_bundled_model_prints_its_own_folder(
    relvec: Relvec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELVEC_CACHE", str(tmp_path))
    for name, bundled in BUNDLED_MODELS.items():
        if bundled.base:
            base_folder(BASE_MODELS[bundled.base]).mkdir(exist_ok=True)
        assert relvec("fetch", name).out.strip() == str(bundled.folder)


@pytest.mark.parametrize("options", [[], ["--json"], ["--device", "cpu"]])
def test_words_without_tokens_are_one_line_on_stderr(
    relvec: Relvec, tiny_folders: Callable[[str], Path], options: list[str]
) -> None:
    result = relvec("similarity", "🐕:🐈", "🦁:🐅", "cup:tea", "-m", tiny_folders("bert"), *options)
    assert result.code == 0
    assert result.err.startswith("relvec: warning: The model has no tokens for a word in 2 of 3 pairs, such as '🐕'; ")
    assert len(result.err.splitlines()) == 1
    assert "--json" not in options or len(json.loads(result.out)["ranking"]) == 2


@pytest.mark.parametrize("text", ["a" * 10_000, "a b " * 5_000], ids=["word", "words"])
def test_what_a_user_typed_is_shortened_in_a_message(refused: Refused, text: str) -> None:
    said = refused("complete", text, "::", "c:?")
    assert " ... " in said
    assert len(said) < 500


@pytest.mark.parametrize("words", [["train", "--base"], ["merge"], ["merge", "--lora", "4"], ["export", "--int8"]])
def test_a_static_model_is_refused_where_an_encoder_is_needed(
    refused: Refused, tmp_path: Path, words: list[str]
) -> None:
    said = refused(*words, "relvec-nano", "-o", tmp_path / "out")
    assert "relvec-nano is a static model, with no encoder to train, merge or export" in said
    assert not (tmp_path / "out").exists()


def test_relations_that_are_left_out_are_one_line_on_stderr(relvec: Relvec, tmp_path: Path) -> None:
    for part, relations in (("train", "ab"), ("valid", "abc")):
        rows = [f"{relation},{part}{number},x" for relation in relations for number in range(3)]
        (tmp_path / f"{part}.csv").write_text("\n".join(["relation,head,tail", *rows]))
    result = relvec("data", "check", tmp_path, "--json")
    assert [line for line in result.err.splitlines() if "warning" in line] == [
        "relvec: warning: Validation files have relations without training pairs (1, such as 'c'); "
        "they are left out unless a training file has them."
    ]
    assert json.loads(result.out)["relations"] == 2


def test_words_without_tokens_are_one_line_however_many_steps_encode_them(
    relvec: Relvec, tiny_folders: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relvec.model.cached_vectors.PAIRS_PER_STEP", 1)
    (tmp_path / "pairs.tsv").write_text("🐕\t🐈\ncup\ttea\ncup\t🦁\n")
    result = relvec("embed", tmp_path / "pairs.tsv", "-o", tmp_path / "v.npz", "-m", tiny_folders("bert"))
    lines = [line for line in result.err.splitlines() if "warning" in line]
    assert [line.partition(";")[0] for line in lines] == [
        "relvec: warning: The model has no tokens for a word in 2 pairs, such as '🐕'"
    ]


def test_a_group_without_a_command_prints_its_help(relvec: Relvec) -> None:
    result = relvec("prompt")
    assert "autoprompt" in result.out
    assert result.err == ""


def test_version(relvec: Relvec) -> None:
    assert relvec("--version").out.startswith("relvec 0.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["similarity", "Paris:France"], "add at least one"),
        (["similarity", "Paris", "a:b"], "'Paris' has no colon; write head:tail"),
        (["similarity", "a:", "a:b"], "is empty"),
        (["similarity", "a:b", "c:d", "-m", "no-such-model"], "Unknown model 'no-such-model'"),
        (["similarity", "a:b", "c:d", "-m", "/no/such/folder"], "There is no model folder"),
        (["solve", "a:b"], "has no choices"),
        (["solve", "a:b", "c:d", "--scoring", "up", "-m", "TINY"], "Unknown scoring 'up'"),
        (["embed", "nowhere.tsv", "-o", "v.npz"], "Cannot read nowhere.tsv"),
        (["embed", "PAIRS", "-o", "v.doc", "-m", "TINY"], "end its name in .npz"),
        (["embed", "PAIRS", "-o", "", "-m", "TINY"], "it is empty, as an unset variable"),
        (["index", "build", "PAIRS", "-o", "", "-m", "TINY"], "it is empty, as an unset variable"),
        (["train", "-o", ""], "'--output' / '-o': it is empty, as an unset variable"),
        (["embed", "PAIRS", "-o", "v.npz", "-m", "TINY", "--device", "toaster"], "use cpu, cuda or mps"),
        (["embed", "PAIRS", "-o", "v.npz", "-m", "TINY", "--dtype", "double"], "Unknown dtype 'double'; choose one of"),
        (["fetch", "mpnet"], "network is switched off"),
        (["fetch", "relvec-mpnet"], "The base model 'mpnet' is not in"),
        (["similarity"], "Missing argument 'pairs'; see relvec similarity --help."),
        (["simlarity"], "No such command 'simlarity', did you mean 'similarity'; see relvec --help."),
        (["index", "bild"], "see relvec index --help."),
        (["similarity", "a:b", "c:d", "--scorin", "up"], "see relvec similarity --help."),
        (["neighbours", "a:b", "-k", "abc"], "valid integer; see relvec neighbours --help."),
        (["neighbours", "a:b", "--rerank", "-3"], "see relvec neighbours --help."),
        (["neighbours", "a:b", "-k"], "Option '-k' requires an argument"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    refused: Refused,
    tiny_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.setenv("RELVEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.txt").write_text("Paris:France\n")
    stand_ins = {"TINY": str(tiny_folder), "PAIRS": "pairs.txt"}
    assert message in refused(*(stand_ins.get(argument, argument) for argument in arguments))
    assert not list(tmp_path.glob("v.*"))


def test_help_does_not_import_torch() -> None:
    import subprocess

    code = "import sys; sys.argv = ['relvec', '--help']\nfrom relvec.cli.app import main\n"
    code += "try:\n    main()\nexcept SystemExit:\n    pass\nassert 'torch' not in sys.modules\n"
    code += "assert 'transformers' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_ctrl_c_is_one_line(relvec: Relvec, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("relvec.model.relation_model.RelBERT.rank", stopped)
    result = relvec("similarity", "a:b", "c:d", "-m", tiny_folder)
    assert (result.code, result.err) == (130, "relvec: stopped.\n")


def test_ctrl_c_while_modules_are_imported_is_one_line(tmp_path: Path) -> None:
    import os
    import signal
    import subprocess

    def heed() -> None:  # the tests may run in the background, where Ctrl-C is ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    (tmp_path / "typer.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "relvec", "--version"]
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env, preexec_fn=heed)
    assert (done.returncode, done.stderr) == (130, "relvec: stopped.\n")


def help_texts(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Each command and what its help has to say, by the words that call it."""
    yield path, [text for text in (command.help, *(getattr(p, "help", None) for p in command.params)) if text]
    for name, inner in getattr(command, "commands", {}).items():
        yield from help_texts(inner, (*path, name))


@pytest.mark.parametrize("command", ["embed", "index build", "evaluate analogy", "serve", "distill", "similarity"])
def test_commands_that_encode_take_a_backend(command: str) -> None:
    found: Any = typer.main.get_command(make_app())
    for name in command.split():
        found = found.commands[name]
    assert "--backend" in {option for parameter in found.params for option in parameter.opts}


@pytest.mark.parametrize("group", [(), ("index",), ("prompt",), ("evaluate",), ("analyse",), ("data",), ("cache",)])
def test_the_list_of_commands_cuts_no_sentence_short(group: tuple[str, ...], relvec: Relvec) -> None:
    shown = relvec(*group, "--help").out
    assert "..." not in shown.partition("Commands:")[2]


def test_a_bracket_in_a_help_text_is_not_taken_for_markup(relvec: Relvec) -> None:
    """Help texts are markup to rich, which swallows a plain `[h]`."""
    said = dict(help_texts(typer.main.get_command(make_app())))
    assert {("train",), ("prompt", "autoprompt")} < set(said)
    for path, texts in said.items():
        shown = relvec(*path, "--help").out
        assert [word for word in re.findall(r"\[[^]]+]", " ".join(texts)) if word not in shown] == []
