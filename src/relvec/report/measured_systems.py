"""Records by system: which are seeds of one another, whether their numbers compare, how a table calls them."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from typing import Any

from relvec.data.benchmarks.registry import BENCHMARKS
from relvec.evaluation.records import Record, portable_facts, portable_path
from relvec.report.table import NOT_COMPARABLE, OTHER_SIZE, USED_DATASET

# What is not worth telling of a row: the paper's way, and the defaults of fine-tuning.
USUAL = {
    "scoring": "forward",
    "out_of_vocabulary": "wrong",
    "classifier": "mlp",
    "epochs": 3,
    "learning_rate": 3e-5,
    "batch_size": 32,
    "lora_rank": 0,
}
# How settings are called where their own names are no help.
_CALLED = {"scoring": "", "classifier": "", "out_of_vocabulary": "unknown words:", "fallback": "answers of"}
_SAME_OF_SEEDS = ("kind", "base", "template", "pooling", "dtype", "data", "loss")
_DEFAULT_FACTS = {"dtype": "float32"}  # of records without them


@dataclass(frozen=True)
class MeasuredSystem:
    """A system with its unusual settings (except the seed), and its records: one for each dataset and seed."""

    name: str
    settings: dict[str, Any]
    records: list[Record]

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.records[0].facts


def measured_systems(records: Sequence[Record]) -> list[MeasuredSystem]:
    """The records of one task and part by system and settings, in the order of the names."""

    def key(record: Record) -> str:
        return json.dumps([record.system, _unusual(record.settings)], default=str)

    groups = [list(group) for _, group in groupby(sorted(records, key=key), key)]
    return [MeasuredSystem(group[0].system, _unusual(group[0].settings), group) for group in groups]


def _unusual(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in sorted(settings.items())
        if name != "seed" and value not in (None, [], USUAL.get(name))
    }


def shared_settings(alike: Sequence[MeasuredSystem]) -> dict[str, Any]:
    """The settings that all of some systems have."""
    first = alike[0].settings
    return {name: first[name] for name in first if all(each.settings.get(name) == first[name] for each in alike)}


def settings_text(settings: Mapping[str, Any], without: Collection[str] = ()) -> str:
    """
    >>> settings_text({"out_of_vocabulary": "chance", "scoring": "reverse", "shots": 5}, without=["shots"])
    'unknown words: chance, reverse'
    """
    texts = []
    for name, value in settings.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if name not in without:
            texts.append(f"{_CALLED.get(name, name.replace('_', ' '))} {text}".strip())
    return ", ".join(texts)


def system_titles(found: Sequence[MeasuredSystem]) -> list[str]:
    """A heading for each system, with the settings by which it differs from others of its name.

    >>> system_titles([MeasuredSystem("a", {}, []), MeasuredSystem("a", {"scoring": "reverse"}, [])])
    ['a', 'a (reverse)']
    """
    titles = []
    for system in found:
        same = shared_settings([other for other in found if other.name == system.name])
        settings = settings_text(system.settings, same)
        titles.append(f"{system.name} ({settings})" if settings else system.name)
    return titles


def dataset_title(dataset: str) -> str:
    """
    >>> dataset_title("khn"), dataset_title("mine.jsonl")
    ('K&H+N', 'mine.jsonl')
    """
    return BENCHMARKS[dataset].title if dataset in BENCHMARKS else dataset


def dataset_titles(records: Sequence[Record], known: Collection[str], *, only_measured: bool = False) -> dict[str, str]:
    """The titles of known datasets in their order, then those of other datasets that were measured."""
    found = {record.dataset for record in records}
    first = [name for name in known if not only_measured or name in found]
    return {name: dataset_title(name) for name in [*first, *sorted(found.difference(first))]}


def with_short_datasets(records: Sequence[Record]) -> list[Record]:
    """The records with the datasets of users by the names of their files, where these tell them apart."""
    paths = {*BENCHMARKS, *(record.dataset for record in records)}
    counts = Counter(PurePath(path).name for path in paths)
    short = {path: name if counts[name := PurePath(path).name] == 1 else portable_path(path) for path in paths}
    return [
        record if record.dataset in BENCHMARKS else record.changed({"dataset": short[record.dataset]})
        for record in records
    ]


def mark(record: Record) -> str:
    """What follows the numbers of a record that do not compare with others."""
    return OTHER_SIZE if has_other_size(record) else USED_DATASET if used_dataset(record) else ""


def gravest_mark(marks: Iterable[str]) -> str:
    """
    >>> gravest_mark(["", "*", "!"])
    '!'
    """
    found = set(marks)
    return next((each for each in NOT_COMPARABLE if each in found), "")


def warnings(systems: Sequence[MeasuredSystem]) -> tuple[str, ...]:
    """A sentence for each reason why numbers of the systems do not compare with others."""
    records = [record for system in systems for record in system.records]
    seeds = [problem for system in systems for problem in _seed_problems(system)]
    return (*_size_problems(records), *_tuning_problems(records), *seeds)


def paper_sizes(task: str, dataset: str, part: str) -> dict[str, int]:
    """The sizes in the paper; none for a dataset of the user's.

    >>> paper_sizes("analogy", "sat_full", "test")
    {'questions': 374}
    """
    known = BENCHMARKS.get(dataset)
    if known is None or known.collection.task != task or task == "mapping":
        return {}
    parts = known.counts if known.is_whole else [part]
    return {"questions": sum(known.counts[each] for each in parts)} if task == "analogy" else known.counts


def has_other_size(record: Record) -> bool:
    """Whether the record says that its dataset was larger or smaller than the paper's."""
    found, expected = _sizes(record)
    return any(found[part] != expected[part] for part in found)


def _size_problems(records: Iterable[Record]) -> list[str]:
    names: dict[str, dict[str, None]] = {}
    for record in filter(has_other_size, records):
        found, expected = map(_size_text, _sizes(record))
        problem = f"{dataset_title(record.dataset)} was measured with {found}, the paper has {expected}: not comparable"
        names.setdefault(problem, {})[record.system] = None
    return [f"{problem} ({', '.join(systems)})." for problem, systems in names.items()]


def _sizes(record: Record) -> tuple[dict[str, int], dict[str, int]]:
    """The sizes that the record tells, and the paper's."""
    metrics: Any = record.metrics
    expected = paper_sizes(record.task, record.dataset, record.part)
    sizes = metrics if record.task == "analogy" else metrics.get("pairs", {})
    return {part: sizes[part] for part in expected if part in sizes}, expected


def _size_text(sizes: dict[str, int]) -> str:
    unit = "" if "questions" in sizes else " pairs"
    return ", ".join(f"{size:,} {part}" for part, size in sizes.items()) + unit


def used_dataset(record: Record) -> bool:
    """Whether the record's configuration shows that its system was tuned on questions of the dataset, or shown some."""
    configuration = record.metrics.get("configuration")
    if record.task != "analogy" or not isinstance(configuration, dict):
        return False
    return "valid_accuracy" in configuration or bool(configuration.get("shots"))


def _tuning_problems(records: Iterable[Record]) -> list[str]:
    found = dict.fromkeys(record.system for record in filter(used_dataset, records))
    problem = f"Tuned on, or shown, questions of the same datasets, hence the {USED_DATASET}"
    return [f"{problem}: {', '.join(found)}."] if found else []


def _seed_problems(system: MeasuredSystem) -> list[str]:
    """Why the records are not seeds of one another, though they share a name."""
    problems = []
    for fact in _SAME_OF_SEEDS:
        values = (
            portable_facts(dict(record.facts)).get(fact, _DEFAULT_FACTS.get(fact, "none")) for record in system.records
        )
        found = sorted({" + ".join(map(str, value)) if isinstance(value, list) else str(value) for value in values})
        if len(found) > 1:
            problem = f"{system.name} averages different systems ({fact}: {', '.join(found)})"
            problems.append(f"{problem}; evaluate them under different names.")
    if not problems and (prints := _of_one_seed(system.records)):
        problem = f"{system.name} averages results that are not seeds of one another ({', '.join(prints)})"
        problems.append(f"{problem}; remove the outdated ones, or evaluate them under different names.")
    return problems


def _of_one_seed(records: Sequence[Record]) -> list[str]:
    """The fingerprints of several records of one dataset that have the same seed, or are of a baseline without any."""
    prints: dict[tuple[Any, ...], set[str]] = {}
    for record in records:
        seed = record.facts.get("seed")
        # A model may come without a record of its training, and then nobody knows its seed.
        if seed is not None or record.facts.get("kind") == "baseline":
            prints.setdefault((record.dataset, seed, record.settings.get("seed")), set()).add(record.fingerprint[:8])
    return sorted({each for of_seed in prints.values() if len(of_seed) > 1 for each in of_seed})
