"""Two processes that share a step must do what one process does alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from relvec.training import Recipe, train

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


def train_with_two_processes(recipe: Path, folder: Path) -> str:
    """What `relvec train` prints; the processes that took part leave files in the folder."""
    folder.mkdir()
    script = folder / "worker.py"
    script.write_text(WORKER)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    arguments = ["train", "--config", str(recipe), "-o", "model", "--json"]
    command = [sys.executable, *launcher, str(script), *arguments]
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=300, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in folder.glob("*-of-*")} == {"0-of-2", "1-of-2"}
    return done.stdout


def train_losses(folder: Path) -> list[float]:
    events = EventAccumulator(str(folder / "model/logs"))
    events.Reload()
    return [event.value for event in events.Scalars("train/loss")]


def test_two_processes_train_what_one_does(recipe: Path, tmp_path: Path) -> None:
    alone = train(Recipe.from_toml(recipe), tmp_path / "alone")
    shared = json.loads(train_with_two_processes(recipe, tmp_path / "shared"))
    assert shared["validation_loss"] == pytest.approx(alone.best["valid loss"], rel=1e-3)
    losses = list(alone.loss.values())
    assert train_losses(tmp_path / "shared") == pytest.approx(losses, rel=1e-3)  # later ones depend on earlier steps
    assert len(set(losses)) == 3
