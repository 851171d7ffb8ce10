"""Saved results: a line of `records.jsonl` for each system, task and dataset, and predictions beside it.

A record contains numbers, no word of a benchmark and no path of a machine, so it can be published. Predictions, in
`predictions/`, may contain a benchmark's words; no table needs them.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from relvec import __version__
from relvec.errors import RelvecError
from relvec.io.files import atomic_write, expanded, read_lines
from relvec.settings import Settings, verified, with_checksum
from relvec.storage.lock import output_lock

RECORDS_NAME = "records.jsonl"
PREDICTIONS_NAME = "predictions"
LONGEST_NAME_BYTES = 150

_FOLDERS = re.compile(r"(?:[A-Za-z]:[\\/]|[/~]|\.\.?[\\/])(?:.*[\\/])?(?=[^\\/])")
_HERE = re.compile(r"^(?:\.[\\/]+)+")
_OPTION = re.compile(r"(?:[\w-]+=)+|-[A-Za-z](?=[/~.])")  # what may stand before a path in one word
_USER = re.compile(r"(?<=://)[^/@]*@")

TaskName = Literal["analogy", "classification", "mapping", "loss"]


class Record(Settings):
    """What a system scored on one part of one dataset.

    `system` is the name of the row in a table; records that differ only in `fingerprint` are seeds of one system.
    `settings` are what was chosen (scoring, out-of-vocabulary policy, seed), `facts` what describes the system (base
    model, template, training data), `metrics` the numbers, and `configuration` among them what was chosen on validation
    data. `data` is a checksum of the dataset where the record stands for work that need not be done again.
    """

    task: TaskName
    system: str
    dataset: str
    part: str
    fingerprint: str
    settings: dict[str, Any]
    metrics: dict[str, Any]
    facts: dict[str, Any] = Field(default_factory=dict)
    command: str = ""
    data: str = ""
    version: str = __version__

    @property
    def key(self) -> str:
        """A file name for the record: its system, and a checksum of all that tells it from other records."""
        identity = [self.task, self.system, self.dataset, self.part, self.fingerprint, self.settings]
        return f"{file_name(self.system)}-{_checksum(json.dumps(identity, sort_keys=True, default=str))}"


def file_name(text: str) -> str:
    """The text as a file name; a long or empty one ends in a checksum.

    >>> file_name("GloVe 50d: diff+dot"), file_name("..")
    ('GloVe_50d_diff+dot', '5ec1f7e7')
    """
    name = re.sub(r"[^\w.+-]+", "_", text).strip("._")
    if name and len(name.encode()) <= LONGEST_NAME_BYTES:
        return name
    start = name.encode()[:LONGEST_NAME_BYTES].decode(errors="ignore")
    return f"{start}-{_checksum(text)}".lstrip("-")


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def save_record(record: Record, runs: str | Path, predictions: Iterable[dict[str, Any]] = ()) -> None:
    """Save a record and its predictions; a record with the same key is replaced.

    >>> record = Record(task="analogy", system="tiny", dataset="sat", part="test", fingerprint="a1", settings={},
    ...                 metrics={"accuracy": 50.0})
    >>> save_record(record, "runs")
    >>> load_records("runs") == [record]
    True
    """
    public = record.changed({"facts": portable_facts(record.facts), "command": portable(record.command)})
    path = expanded(runs) / RECORDS_NAME
    with output_lock(path, wait=True):
        kept = {each.key: each for each in _read(path)} | {record.key: public}
        if lines := [json.dumps(prediction, ensure_ascii=False) + "\n" for prediction in predictions]:
            target = _predictions_file(record, runs)
            target.parent.mkdir(exist_ok=True)
            with atomic_write(target) as partial:
                partial.write_text("".join(lines), encoding="utf-8")
        with atomic_write(path) as partial:
            rows = (json.dumps(with_checksum(each.as_dict()), ensure_ascii=False) for each in kept.values())
            partial.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def find_record(record: Record, runs: str | Path) -> Record | None:
    """The saved record of the same system, dataset and settings, if there is one."""
    saved = (each for each in _read(expanded(runs) / RECORDS_NAME) if each.key == record.key)
    return next((each for each in saved if each.data == record.data), None)


def load_records(runs: str | Path) -> list[Record]:
    """Every record of a folder."""
    path = expanded(runs) / RECORDS_NAME
    if not path.is_file():
        raise RelvecError(f"There is no {path}; run `relvec evaluate` with --runs {runs} first.")
    return list(_read(path))


def load_predictions(record: Record, runs: str | Path) -> list[dict[str, Any]]:
    """The predictions that were saved with a record."""
    path = _predictions_file(record, runs)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line] if path.is_file() else []


def _predictions_file(record: Record, runs: str | Path) -> Path:
    return expanded(runs) / PREDICTIONS_NAME / f"{record.key}.jsonl"


def _read(path: Path) -> Iterator[Record]:
    if not path.is_file():
        return
    for number, line in enumerate(read_lines(path)[1], start=1):
        if line:
            try:
                fields = verified(dict(json.loads(line)))
            except (ValueError, TypeError) as error:
                raise RelvecError(f"{path}, line {number}: not a record ({error}); fix or remove the line.") from error
            yield Record.checked(fields, where=f"{path}, line {number}: ")


def of_task(records: Sequence[Record], task: str) -> list[Record]:
    """The records of one task."""
    return [record for record in records if record.task == task]


def portable(command: str) -> str:
    """The command with the data folder as DATA, and the last part of every other path that leads out of here.

    >>> portable("relvec evaluate analogy --data-dir /home/me/data --set vectors=~/big/glove.npz --model runs/tuned")
    'relvec evaluate analogy --data-dir DATA --set vectors=glove.npz --model runs/tuned'
    """
    words = shlex.split(command)
    joined = [part for word in words for part in (word.split("=", 1) if word.startswith("--data-dir=") else [word])]
    folders = [after.rstrip("/\\") for word, after in pairwise(joined) if word == "--data-dir"]
    return shlex.join(_portable(word, folders) for word in joined)


def portable_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts with the last part of every path, also in lists; a template is no path.

    >>> portable_facts({"base": "/home/me/mpnet", "data": ["semeval2012", "../mine.jsonl"], "seed": 0})
    {'base': 'mpnet', 'data': ['semeval2012', 'mine.jsonl'], 'seed': 0}
    """

    def cut(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [cut(each) for each in value]
        return last_part(value) if isinstance(value, str) else value

    return {name: value if name == "template" else cut(value) for name, value in facts.items()}


def portable_path(path: str) -> str:
    """A path that leads out of here by its last part, after a checksum of its folder: files of one name stay apart.

    >>> portable_path("/home/me/mine.jsonl"), portable_path("./mine/questions/"), portable_path("sat")
    ('9c1db2/mine.jsonl', 'mine/questions', 'sat')
    """
    path = _HERE.sub("", path.rstrip("/\\")) or path
    name = last_part(path)
    folder = path.removesuffix(name)
    return f"{hashlib.sha256(folder.encode()).hexdigest()[:6]}/{name}" if folder else name


def last_part(path: str) -> str:
    """The last part of a path that leads out of the working folder; anything else stays.

    >>> last_part("/home/me/models/mpnet"), last_part("microsoft/mpnet-base"), last_part("[h] and/or [t]")
    ('mpnet', 'microsoft/mpnet-base', '[h] and/or [t]')
    """
    return _FOLDERS.sub("", path.rstrip("/\\"), count=1) if _FOLDERS.match(path) else path


def _portable(word: str, data_folders: list[str]) -> str:
    option = _OPTION.match(word)
    name, value = (option[0], word[option.end() :]) if option else ("", word)
    for folder in data_folders:
        if value.rstrip("/\\") == folder:
            return f"{name}DATA"
        if value.startswith(f"{folder}/"):
            return f"{name}DATA{value.removeprefix(folder)}"
    return name + last_part(_USER.sub("", value))
