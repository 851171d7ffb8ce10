"""Results that stay: one JSON file for each system, task and dataset, and its predictions beside it.

A record holds numbers, no words of a benchmark and no path of a machine, so that it can be published; the predictions,
a file of their own, may hold the benchmark's pairs, and no table needs them.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from relvec import __version__
from relvec.errors import RelvecError
from relvec.evaluation.portable import portable, portable_facts
from relvec.evaluation.record_check import read_fields
from relvec.io.files import written_whole

LONGEST_NAME_BYTES = 150


@dataclass(frozen=True)
class Record:
    """What a system scored on one part of one dataset.

    `system` is the name of the row in a table; records that differ only in `fingerprint` are seeds of one system.
    `settings` are what was chosen (scoring, out-of-vocabulary policy, seed), `facts` what describes the system
    (base model, template, training data), `metrics` the numbers, and `configuration` among them what was chosen on
    validation data. `data` is a checksum of the dataset where the record stands for work that need not be done again.
    """

    task: str
    system: str
    dataset: str
    part: str
    fingerprint: str
    settings: dict[str, Any]
    metrics: dict[str, Any]
    facts: dict[str, Any] = field(default_factory=dict)
    command: str = ""
    data: str = ""
    version: str = __version__

    @property
    def path(self) -> Path:
        """Where the record lies below the runs folder."""
        scalars = {name: value for name, value in self.settings.items() if isinstance(value, str | int | float)}
        variant = "-".join(value if isinstance(value, str) else f"{name}{value}" for name, value in scalars.items())
        dataset = file_name(self.dataset)
        if dataset != self.dataset:  # a path: a/b.jsonl and a_b.jsonl shall stay apart
            dataset += f"-{_checksum(self.dataset)}"
        name = f"{self.task}-{dataset}-{self.part}-{variant}-{self.fingerprint[:8]}"
        return Path(file_name(self.system)) / f"{file_name(name)}.json"


def file_name(text: str) -> str:
    """The text as a file name; a checksum stands for what does not fit into one.

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


def save_record(record: Record, runs: str | Path, predictions: Iterable[dict[str, Any]] = ()) -> Path:
    """Write a record below the runs folder, and its predictions as JSON Lines beside it; return the record's file."""
    path = Path(runs) / record.path
    public = replace(record, facts=portable_facts(record.facts), command=portable(record.command))
    lines = [json.dumps(prediction, ensure_ascii=False) + "\n" for prediction in predictions]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if lines:
            with written_whole(path.with_suffix(".predictions.jsonl")) as partial:
                partial.write_text("".join(lines), encoding="utf-8")
        with written_whole(path) as partial:
            partial.write_text(json.dumps(asdict(public), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise RelvecError(f"Cannot write {path}: {error.strerror}; choose another runs folder.") from error
    return path


def find_record(record: Record, runs: str | Path) -> Record | None:
    """The saved record of the same system, dataset and settings, if there is one."""
    path = Path(runs) / record.path
    if not path.is_file():
        return None
    saved = _read(path)
    decisive = ("task", "system", "dataset", "part", "fingerprint", "settings", "data")
    return saved if all(getattr(saved, name) == getattr(record, name) for name in decisive) else None


def load_records(runs: str | Path) -> list[Record]:
    """Every record below a folder, in the order of their paths."""
    folder = Path(runs)
    if not folder.is_dir():
        raise RelvecError(f"There is no folder {folder}; run `relvec evaluate` with --runs {folder} first.")
    # A name with a dot in front is a record that is just being written, or one that a kill left half written.
    return [_read(path) for path in sorted(folder.glob("*/*.json")) if not path.name.startswith(".")]


def load_predictions(record: Record, runs: str | Path) -> list[dict[str, Any]]:
    """The predictions that were saved with a record."""
    path = (Path(runs) / record.path).with_suffix(".predictions.jsonl")
    if not path.is_file():
        return []
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    except ValueError as error:
        raise RelvecError(f"{path} holds no predictions of relvec ({error}); remove it.") from error


def _read(path: Path) -> Record:
    return Record(**read_fields(path))


def of_task(records: Sequence[Record], task: str) -> list[Record]:
    """The records of one task."""
    return [record for record in records if record.task == task]
