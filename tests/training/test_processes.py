"""Two processes that share a step must do what one process does alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

WORKER = """
import torch
from accelerate.state import PartialState
from relvec.cli.app import main

try:
    main()
finally:
    assert not torch.distributed.is_initialized()  # else the process may be aborted when it ends
    with open(f"{PartialState().process_index}-of-{PartialState().num_processes}", "x"):
        pass
"""

RECIPE = """
base = "{base}"
data = ["{data}"]
template = "[h] is the <mask> of [t]"
pooling = "average"
loss = "triplet+classification"
lora_rank = 0
steps = 3
triples_per_batch = 4
learning_rate = 1e-2
warmup_steps = 0
evaluate_every = 3
pairs_per_forward = 3
"""

DATA = """
category = "c{category}"
[[relation]]
name = "r{number}"
definition = ""
positives = [
  "hot:cold{number}", "big:small{number}", "up:down{number}", "old:young{number}", "wet:dry{number}", "r{number}:x",
]
negatives = ["cold:ice", "r{number}:y"]
"""


@pytest.fixture
def recipe(tiny_folder: Path, tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(4):
        (data / f"r{number}.toml").write_text(DATA.format(category=number % 2, number=number))
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.format(base=tiny_folder, data=data))
    return recipe


def run(processes: int, recipe: Path, folder: Path, *options: str) -> str:
    """What `relvec train` prints; the processes that took part leave files in the folder."""
    folder.mkdir()
    script = folder / "worker.py"
    script.write_text(WORKER)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    arguments = ["train", "--config", str(recipe), "-o", "model", "--json", *options]
    command = [sys.executable, *(launcher if processes > 1 else []), str(script), *arguments]
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=300, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in folder.glob("*-of-*")} == {f"{index}-of-{processes}" for index in range(processes)}
    return done.stdout


def train_losses(folder: Path) -> list[float]:
    events = EventAccumulator(str(folder / "model/logs"))
    events.Reload()
    return [event.value for event in events.Scalars("train/loss")]


def test_two_processes_train_what_one_does(recipe: Path, tmp_path: Path) -> None:
    alone = json.loads(run(1, recipe, tmp_path / "alone"))
    shared = json.loads(run(2, recipe, tmp_path / "shared"))
    assert shared["validation_loss"] == pytest.approx(alone["validation_loss"], rel=1e-3)
    losses = [train_losses(tmp_path / name) for name in ("alone", "shared")]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)  # later losses depend on the weights of earlier steps
    assert len(set(losses[0])) == 3


def test_one_of_two_processes_tells_the_size_of_the_run(recipe: Path, tmp_path: Path) -> None:
    assert json.loads(run(2, recipe, tmp_path / "plan", "--dry-run"))["steps"] == 3
