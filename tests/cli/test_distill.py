import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relvec import RelBERT

Relvec = Callable[..., Any]
Refused = Callable[..., str]

QUICK = ["--steps", "3", "--batch-size", "8", "--evaluate-every", "1"]


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def models(tiny_folders: Callable[[str], Path]) -> list[str | Path]:
    return ["--teacher", tiny_folders("roberta"), "--student", tiny_folders("bert")]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text("head,tail\n" + "\n".join(f"cat{n},dog{n}" for n in range(20)))
    return path


def test_distill_makes_a_student_that_loads(
    relvec: Relvec, models: list[str | Path], pairs: Path, tmp_path: Path
) -> None:
    result = relvec("distill", *models, "--pairs", pairs, "-o", "student", *QUICK)
    assert result.code == 0, result.err
    assert "correlation with the teacher's cosines" in result.err
    student = RelBERT.from_pretrained(tmp_path / "student")
    assert student.training_record["recipe"]["teacher"] == "tiny-roberta"
    assert student.training_record["recipe"]["given_pairs"] == 20
    assert "pairs.csv" in student.training_record["data"]
    found = json.loads(relvec("distill", *models, "--pairs", pairs, "-o", "student", *QUICK, "--json").out)
    assert (found["output"], found["correlation"] >= found["correlation_before"]) == ("student", True)


def test_a_dry_run_prints_the_size_and_writes_nothing(
    relvec: Relvec, models: list[str | Path], pairs: Path, tmp_path: Path
) -> None:
    sources = ["--pairs", pairs, "--data", "bundled", "--limit", "200"]
    result = relvec("distill", *models, *sources, "-o", "student", "--dry-run")
    rows = dict(line.split("\t") for line in result.out.splitlines())
    assert (rows["given pairs"], rows["re-paired words"]) == ("200", "40")
    assert (rows["teacher dim"], rows["student dim"]) == ("16", "16")
    plan = json.loads(relvec("distill", *models, *sources, "-o", "student", "--dry-run", "--json").out)
    assert (plan["given_pairs"], plan["re-paired_words"], plan["student_dim"]) == (200, 40, 16)
    assert not (tmp_path / "student").exists()


def test_distillation_and_learned_prompts_do_without_the_train_extra() -> None:
    blocked = "import sys; sys.modules |= dict.fromkeys(('accelerate', 'peft', 'tensorboard'))"
    used = "import relvec.distillation.distiller, relvec.learned_prompts.grid"
    subprocess.run([sys.executable, "-c", f"{blocked}; {used}"], check=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pairs", "nowhere.csv"], "Cannot read nowhere.csv"),
        (["--pairs", "few.csv"], "too little to learn from: 1 pair where"),
        (["--pairs", "PAIRS", "--wordnet", "."], "holds no file of WordNet"),
        (["--pairs", "PAIRS", "--exclude-benchmark-pairs"], "give their folder with --data-dir"),
        (["--pairs", "PAIRS", "--exclude-benchmark-pairs", "--data-dir", "."], "There is no benchmark below"),
        (["--pairs", "PAIRS", "--learning-rate", "0"], "learning_rate is 0.0; use a number above 0"),
        (["--pairs", "PAIRS", "--batch-size", "1"], "batch_size is 1"),
        (["--pairs", "PAIRS", "--epochs", "0"], "epochs is 0.0; use a number above 0"),
        (["--pairs", "PAIRS", "--pooling", "middle"], "Unknown pooling 'middle'"),
        (["--pairs", "PAIRS", "--template", "[h] and"], "has no slot [t]"),
        (["--pairs", "PAIRS", "-o", "few.csv"], "few.csv is a file"),
    ],
)
def test_what_cannot_be_distilled_is_one_line_and_exit_code_2(
    refused: Refused, models: list[str | Path], pairs: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "few.csv").write_text("head,tail\ncat,dog")
    words = [str(pairs) if word == "PAIRS" else word for word in arguments]
    output = [] if "-o" in arguments else ["-o", "student"]
    assert message in refused("distill", *models, *words, *output, "--dry-run")
    assert not (tmp_path / "student").exists()
