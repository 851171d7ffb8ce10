"""Two processes that share a step must do what one process does alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

WORKER = """
import sys
from pathlib import Path

from relvec import RelBERT
from relvec.data.rated import split
from relvec.data.readers import read_rated
from relvec.training.recipe import Recipe
from relvec.training.trainer import Trainer

folder, data, output = sys.argv[1:]
recipe = Recipe().changed({
    "base": folder, "template": "[h] is the <mask> of [t]", "pooling": "average", "lora_rank": 0, "steps": 3,
    "relations_per_batch": 4, "positives_per_relation": 3, "learning_rate": 1e-2, "warmup_steps": 0,
    "evaluate_every": 3, "pairs_per_forward": 3, "loss": "triplet+classification",
    "triples_per_batch": 4,
})
relations = read_rated(data)
model = RelBERT.from_pretrained(folder, device="cpu")
trainer = Trainer(model, split(relations, "train"), split(relations, "valid"), recipe, output)
progress = trainer.fit()
if trainer.accelerator.is_main_process:
    print("processes", trainer.accelerator.num_processes)
    print("losses", *(f"{loss:.5f}" for loss in progress.train_loss.values()))
"""

DATA = """
category = "{category}"
[[relation]]
name = "{name}"
definition = ""
positives = ["hot:cold", "big:small", "up:down", "old:young", "wet:dry", "{name}:x"]
negatives = ["cold:ice", "{name}:y"]
"""


def run(script: Path, processes: int, *arguments: Path) -> str:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command = [sys.executable, *(launcher if processes > 1 else []), str(script), *map(str, arguments)]
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_processes_give_the_losses_of_one(tiny_folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(4):
        text = DATA.format(category=f"c{number % 2}", name=f"r{number}")
        for word in ("hot:cold", "big:small", "up:down", "old:young", "wet:dry"):
            text = text.replace(word, f"{word}{number}")
        (data / f"r{number}.toml").write_text(text)
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    alone = run(script, 1, tiny_folder, data, tmp_path / "alone")
    shared = run(script, 2, tiny_folder, data, tmp_path / "shared")
    assert "processes 1" in alone
    assert "processes 2" in shared
    losses = [[float(loss) for loss in printed.split("losses")[1].split()] for printed in (alone, shared)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)  # later losses depend on the weights of earlier steps
    assert len(set(losses[0])) == 3
