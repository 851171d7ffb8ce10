"""What a plain installation can do, where torch, transformers and the other extras are missing."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from relvec import PairIndex, RelBERT
from relvec.errors import EXTRAS

BLOCK = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sum(EXTRAS.values(), ())!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""

COMMAND = f"{BLOCK}\nfrom relvec.cli.app import main\nmain()"

PAIRS = [("Paris", "France"), ("Tokyo", "Japan"), ("cup", "tea"), ("cats", "dogs")]


@pytest.fixture
def folder(tiny_folders: Callable[[str], Path], tmp_path: Path) -> Path:
    """A tiny MPNet, with an index, a file of pairs and one of relations in the working directory."""
    folder = tiny_folders("mpnet")
    PairIndex.of(RelBERT.from_pretrained(folder), PAIRS).save(tmp_path / "my.index")
    (tmp_path / "pairs.txt").write_text("Paris:France\n" * 300)
    (tmp_path / "mine.csv").write_text("head,tail,relation\nRome,Italy,capital\nOslo,Norway,capital\n")
    return folder


def run(code: str, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=dict(os.environ))


@pytest.mark.parametrize(
    "arguments",
    [
        ["similarity", "Paris:France", "cup:tea"],
        ["solve", "Paris:France", "cup:tea", "cats:dogs"],
        ["neighbours", "barista:coffee", "--index", "my.index"],
        ["complete", "Paris:France", "Tokyo", "--index", "my.index"],
        ["explain", "Paris:France", "--catalogue", "mine.csv"],
        ["embed", "pairs.txt", "-o", "vectors.npz"],
        ["index", "build", "pairs.txt", "-o", "new.index"],
    ],
    ids=lambda arguments: str(arguments[0]),
)
def test_commands_about_pairs_need_no_extra(folder: Path, tmp_path: Path, arguments: list[str]) -> None:
    done = run(COMMAND, *arguments, "-m", folder, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments", [["train", "-o", "model"], ["merge", "minilm", "-o", "model"]], ids=" ".join)
def test_commands_that_need_torch_name_the_command_that_brings_it(tmp_path: Path, arguments: list[str]) -> None:
    done = run(COMMAND, *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "pip install 'relvec[" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_vectors_are_those_of_torch(folder: Path, tmp_path: Path) -> None:
    code = f"""{BLOCK}
import numpy as np
from relvec import RelBERT
model = RelBERT.from_pretrained(sys.argv[1])
assert model.backend == "numpy"
np.save("found.npy", model.encode({PAIRS!r}))
"""
    done = run(code, folder, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    import numpy as np

    expected = RelBERT.from_pretrained(folder, backend="torch").encode(PAIRS)
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), expected, atol=1e-5)


@pytest.mark.parametrize("backend", ["auto", "torch"])
def test_a_model_that_needs_torch_says_so(tiny_folder: Path, tmp_path: Path, backend: str) -> None:
    done = run(COMMAND, "similarity", "a:b", "c:d", "-m", tiny_folder, "--backend", backend, cwd=tmp_path)
    assert done.returncode == 2
    assert "pip install 'relvec[torch]'" in done.stderr
    assert done.stderr.count("\n") == 1
