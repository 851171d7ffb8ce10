"""A plan from end to end on a tiny model, and the paper's own plan as far as it goes without a GPU."""

import csv
import json
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from relvec import RelvecError
from relvec.cli.app import main, make_app
from relvec.evaluation.records import Record
from relvec.reproduction import checks, scheduler
from relvec.reproduction.plan import Plan, Step, steps_of
from relvec.reproduction.verdicts import verdicts

PLAN = """
[values]
template = "[h] <mask> [t]"

[[lists.language_models]]
base = "no-such-model"
title = "RelBERT"

[[steps]]
name = "train {base}"
each = ["language_models"]
command = [
  "train", "--base", "{base}", "--data", "{relations}", "--lora", "2", "--steps", "2", "--set", "relations_per_batch=2",
  "--set", "evaluate_every=1", "--seed", "{seed}", "-o", "{out}/models/{short}-{seed}",
]
encodings = 100
trains = true

[[steps]]
name = "analogies of {base}"
each = ["language_models"]
needs = ["train {base}"]
command = [
  "evaluate", "analogy", "--model", "{out}/models/{short}-{seed}", "--dataset", "u2", "--runs", "{runs}",
  "--name", "RelBERT, manual prompt",
]
tables = ["table 2"]
data = ["u2"]

[[steps]]
name = "broken"
command = ["evaluate", "analogy", "--model", "{broken}", "--dataset", "u2", "--runs", "{runs}"]
tables = ["table 9"]

[[steps]]
name = "after broken"
needs = ["broken"]
command = ["evaluate", "analogy", "--baseline", "random", "--dataset", "u2", "--runs", "{runs}"]
tables = ["table 9"]

[[steps]]
name = "PMI"
inputs = ["corpus"]
command = ["evaluate", "analogy", "--baseline", "pmi", "--set", "corpus={corpus}", "--dataset", "u2", "--runs={runs}"]
tables = ["table 2"]

[inputs]
corpus = "a text"
relations = "rated pairs"
broken = "a model"
"""

Reproduce = Callable[..., tuple[int, str, str]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a plan, relations to train on, and questions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RELVEC_DATA", str(tmp_path / "data"))
    lines = ["relation,category,head,tail"]
    for category, word in (("1", "kind"), ("2", "part"), ("3", "maker")):
        lines += [f"{category}a,{category},{word} {number},{word} of {number}" for number in range(5)]
    (tmp_path / "relations.csv").write_text("\n".join(lines))
    (tmp_path / "data/analogy/u2").mkdir(parents=True)
    question = {"stem": ["Paris", "France"], "choice": [["Tokyo", "Japan"], ["tea", "cup"]], "answer": 0}
    for part in ("valid", "test"):
        (tmp_path / f"data/analogy/u2/{part}.jsonl").write_text(json.dumps(question) + "\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The commands that were run; they run in this process, which has torch already."""
    commands: list[Sequence[str]] = []

    def run(words: Sequence[str], log: Path) -> int:
        commands.append(words)
        with log.open("w") as file, redirect_stdout(file), redirect_stderr(file), monkeypatch.context() as patched:
            patched.setattr(sys, "argv", ["relvec", *words])
            with pytest.raises(SystemExit) as stop:
                main()
        return int(stop.value.code or 0)

    monkeypatch.setattr(scheduler, "run_in_process_of_its_own", run)
    return commands


@pytest.fixture
def reproduce(
    place: Path, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Reproduce:
    def run(*more: str) -> tuple[int, str, str]:
        words = ["reproduce", "--plan", "plan.toml", "--base", str(tiny_folder), "--input", "relations=relations.csv"]
        monkeypatch.setattr(sys, "argv", ["relvec", *words, *more])
        with pytest.raises(SystemExit) as stop:
            main()
        told = capsys.readouterr()
        return int(stop.value.code or 0), told.out, told.err

    return run


def test_a_plan_is_run_recorded_and_judged_and_what_is_finished_is_never_done_again(
    reproduce: Reproduce, ran: list[Sequence[str]], place: Path
) -> None:
    (place / "broken").mkdir()
    code, out, _ = reproduce("--input", "broken=broken", "--json")
    told = json.loads(out)
    assert code == 1
    assert list(told["steps"].values()) == ["done", "done", "failed", "skipped"]
    assert told["left_out"] == ["PMI"]
    (verdict,) = told["verdicts"]
    assert (verdict["system"], verdict["cell"], verdict["published"]) == ("RelBERT, manual prompt", "u2", 66.2)
    with (place / "paper/verdicts.csv").open() as file:
        assert [row["verdict"] for row in csv.DictReader(file)] == ["within" if verdict["is_within"] else "outside"]
    assert "RelBERT, manual prompt" in (place / "paper/results.md").read_text()
    entries = [json.loads(line) for line in (place / "paper/journal.jsonl").read_text().splitlines()][1:]
    assert [entry["code"] for entry in entries] == [0, 0, 2]
    assert all(entry["versions"]["relvec"] and entry["hardware"]["cores"] and "seed" in entry for entry in entries)
    assert "no config.json" in (place / "paper/logs/broken.log").read_text()

    ran.clear()
    code, _, err = reproduce("--input", "broken=broken")
    assert code == 1
    assert [words[:2] for words in ran] == [("evaluate", "analogy")]  # only the broken step is tried again
    assert "3 of 4: broken: failed" in err
    assert "no config.json" in err  # and why

    ran.clear()
    (place / "corpus.txt").write_text("Tokyo is in Japan\n")
    code, out, _ = reproduce("--only", "table 2", "--input", "corpus=corpus.txt", "--json")
    assert (code, list(json.loads(out)["steps"].values())) == (0, ["was done", "was done", "done"])
    assert len(ran) == 1


def test_another_seed_is_another_run_of_the_same_systems(reproduce: Reproduce, ran: list[Sequence[str]]) -> None:
    for seed in ("0", "1"):
        assert reproduce("--only", "table 2", "--seed", seed)[0] == 0
    assert [words[0] for words in ran] == ["train", "evaluate", "train", "evaluate"]
    assert Path("paper/results.md").read_text().count("| RelBERT, manual prompt | 2 |") >= 1


def test_another_data_folder_is_another_job(
    reproduce: Reproduce, ran: list[Sequence[str]], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(place))
    shutil.copytree(place / "data", place / "other")
    for given in ("--data-dir=~/data", "--data-dir=data", f"--data-dir={place}/other/../data"):
        assert reproduce("--only", "table 2", given)[0] == 0
    assert reproduce("--only", "table 2")[0] == 0  # RELVEC_DATA names it too
    assert [words[0] for words in ran] == ["train", "evaluate"]
    code, _, err = reproduce("--only", "table 2", "--data-dir", "other")
    assert (code, len(ran)) == (2, 2)
    assert "journal.jsonl belongs to a run with another base, other settings or other data" in err


def test_a_dry_run_runs_nothing_and_tells_steps_time_and_what_is_left_out(
    reproduce: Reproduce, ran: list[Sequence[str]], place: Path
) -> None:
    code, out, _ = reproduce("--only", "table 2", "--dry-run", "--json")
    told = json.loads(out)
    assert (code, ran) == (0, [])
    assert not (place / "paper").exists()
    assert [step["command"][1] for step in told["steps"]] == ["train", "evaluate"]
    assert told["left_out"] == {"PMI": ["corpus"]}
    table = reproduce("--only", "table 2", "--dry-run")[1]
    assert "hours" in table
    assert "--input corpus=PATH" in table


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "table 1"], "Unknown table of the plan 'table 1'; did you mean 'table 9'"),
        (["--base", "no-such-model"], "the network is switched off: no-such-model; go where the hub is"),
        (["--input", "corpus=no.txt"], "There is no no.txt for --input corpus"),
        (
            ["--input", "corpsu=no.txt"],
            "The plan has no input corpsu; write --input name=path for one of corpus: a text",
        ),
        (["--plan", "no.toml"], "Cannot read the plan no.toml"),
        (["--data-dir", "nowhere"], "There is no analogy/u2/test.jsonl below nowhere"),
    ],
)
def test_what_is_missing_is_said_before_the_first_step(
    reproduce: Reproduce, ran: list[Sequence[str]], words: list[str], message: str
) -> None:
    code, out, err = reproduce(*words)
    assert (code, out, ran) == (2, "", [])
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_a_dry_run_lists_all_that_is_missing_one_a_line(reproduce: Reproduce, place: Path) -> None:
    files = [f"{'long' * 60}-{name}.txt" for name in ("corpus", "broken")]
    words = ["--base", "no-such-model", "--base", "nor-this", "--data-dir", "nowhere", "--dry-run", "--json"]
    code, out, err = reproduce(*words, "--input", f"corpus={files[0]}", "--input", f"broken={files[1]}")
    missing = json.loads(out)["missing"]
    assert code == 2
    assert err.splitlines() == [f"relvec: {sentence}" for sentence in missing]
    for what, sentence in zip([*files, "no-such-model", "nor-this", "u2/test.jsonl"], missing, strict=True):
        assert what in sentence
        assert "; " in sentence  # and how to fix it
    assert json.loads(reproduce("--dry-run", "--json")[1])["missing"] == []


def test_the_papers_plan_needs_a_gpu_unless_it_is_for_a_laptop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "has_gpu", lambda: False)
    plan = Plan.load()
    told = {name: list(checks.problems([], plan.profile(name), {}, None)) for name in plan.profiles}
    assert told["laptop"] == []
    assert "needs a GPU and torch finds none; add --profile laptop" in told["full"][0]


MORE_ROWS = Path(__file__).parents[2] / "experiments" / "more_rows.toml"


def steps_of_the_paper(profile: str, path: Path | None = None, **options: Any) -> list[Step]:
    plan = Plan.load(path)
    values = {"out": "paper", "runs": "paper/runs", "seed": 0}
    return steps_of(plan, profile, values, given=plan.inputs, **options)[0]


@pytest.mark.parametrize(("profile", "path"), [("full", None), ("laptop", None), ("laptop", MORE_ROWS)])
def test_every_command_of_a_plan_is_one_that_relvec_understands(profile: str, path: Path | None) -> None:
    from typer.main import get_command

    group: Any = get_command(make_app())
    for step in steps_of_the_paper(profile, path):
        command, words = group, list(step.command)
        context = command.make_context("relvec", words)
        while hasattr(command, "commands"):
            name, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
            context = command.make_context(name, words)  # fails on an option that there is not


def test_the_paper_has_16_triples_in_a_batch_of_training_and_of_p_tuning() -> None:
    learning = [step for step in steps_of_the_paper("full") if {"train", "ptuning"} & set(step.command)]
    assert {"train", "prompt"} == {step.command[0] for step in learning}
    for step in learning:
        assert re.findall(r"triples.per.batch.(\d+)", " ".join(step.command)) == ["16"], step.name


def test_the_papers_plan_has_all_tables_and_each_step_comes_after_what_it_needs() -> None:
    steps = steps_of_the_paper("full")
    tables = {table for step in steps for table in step.tables}
    assert {f"table {number}" for number in range(2, 14)} | {"figure 3", "figure 4"} == tables
    seen: set[str] = set()
    for step in steps:
        assert seen.issuperset(step.needs)
        seen.add(step.name)
    assert len(seen) == len(steps)
    alone = [step.name for step in steps_of_the_paper("full", only=["table 4"], bases=["roberta-large"])]
    assert alone == [
        "train roberta-large with manual",
        "classification with roberta-large and manual",
        "train roberta-large without hypernymy",
        "classification with roberta-large without hypernymy",
    ]


def test_steps_that_need_each_other_are_refused() -> None:
    steps = [{"name": name, "needs": [other], "command": [], "tables": ["t"]} for name, other in ("ab", "ba")]
    with pytest.raises(RelvecError, match="need each other"):
        steps_of(Plan.checked({"steps": steps}), "full", {})


def record(system: str, accuracy: float, questions: int = 374, seed: int = 0) -> Record:
    return Record(
        task="analogy",
        system=system,
        dataset="sat_full",
        part="test",
        fingerprint=str(seed),
        settings={"scoring": "forward"},
        metrics={"accuracy": accuracy, "questions": questions},
    )


def test_a_number_is_within_noise_as_far_as_two_seeds_may_differ() -> None:
    for accuracy, is_within in ((69.5, True), (63.5, True), (62.5, False), (77.0, False)):
        (verdict,) = verdicts([record("RelBERT, manual prompt", accuracy)])
        assert verdict.is_within == is_within, accuracy
    one, three = (verdicts([record("PMI", 25.0, seed=seed) for seed in range(count)])[0] for count in (1, 3))
    assert one.noise > three.noise > one.noise / 2
    assert verdicts([record("a system of mine", 70.0)]) == []


def test_a_step_runs_in_a_process_of_its_own_and_its_words_go_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "step.log"
    assert scheduler.run_in_process_of_its_own(["--version"], log) == 0
    assert log.read_text().startswith("$ relvec --version\nrelvec ")
    assert scheduler.run_in_process_of_its_own(["similarity"], log) == 2
    assert log.read_text().count("relvec: ") == 1


def test_a_class_that_is_predicted_and_never_right_has_no_verdict() -> None:
    by_class = {"hypernym": {"f1": 80.0, "pairs": 50}, "random": {"f1": 0.0, "pairs": 0}}
    metrics = {"by_class": by_class, "macro_f1": 40.0, "micro_f1": 80.0}
    fields: dict[str, Any] = {
        "task": "classification",
        "dataset": "bless",
        "part": "test",
        "fingerprint": "a1",
        "settings": {},
    }
    found = verdicts([Record(system="RelBERT, manual prompt", metrics=metrics, **fields)])
    assert {each.cell for each in found} >= {"bless/micro"}
    assert not any(each.cell == "bless/random" for each in found)
