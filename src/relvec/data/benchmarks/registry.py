"""Every benchmark with a name: one entry each, with its files, sizes, categories and classes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Literal

from relvec.errors import RelvecError, did_you_mean
from relvec.hub.datasets import benchmark_file
from relvec.io.files import data_folder, expanded
from relvec.io.tables import TABLES, Part, kind_of, part_of

BenchmarkTask = Literal["analogy", "classification", "mapping"]


@dataclass(frozen=True)
class Collection:
    """Benchmarks of one task: where their files are below the data folder, and in a dataset of the hub.

    In the paths, `{name}`, `{title}` and `{part}` stand for those of a benchmark; `hub_parts` are parts that the hub
    names otherwise. Without a dataset of the hub, the path is that of a file in this package.
    """

    task: BenchmarkTask
    path: str
    hub_id: str = ""
    hub_path: str = ""
    hub_parts: dict[str, str] = field(default_factory=dict)


ANALOGY = Collection(
    "analogy", "analogy/{name}/{part}.jsonl", "relbert/analogy_questions", "dataset/{name}/{part}.jsonl"
)
OWN_ANALOGY = Collection("analogy", "questions/{part}.jsonl")
CLASSIFICATION = Collection(
    "classification",
    "lexrel/{name}/{part}.jsonl",
    "relbert/lexical_relation_classification",
    "dataset/{title}/{part}.jsonl",
    hub_parts={"valid": "val"},
)
MAPPING = Collection("mapping", "mapping/{name}.jsonl", "relbert/relation_mapping", "data.jsonl")


@dataclass(frozen=True)
class Benchmark:
    """A dataset to evaluate on; `counts` are the questions, pairs or problems in each part."""

    name: str
    title: str
    collection: Collection
    counts: dict[str, int]
    both_parts_of: str = ""
    """The benchmark whose validation and test part together are this one, all of it for testing."""
    categories: dict[str, str] = field(default_factory=dict)
    """The paper's high-level category by the beginning of a kind of question."""
    relation_names: tuple[tuple[str, str], ...] = ()
    """Patterns and replacements that turn a kind of question into the paper's name of the relation."""
    classes: dict[str, str] = field(default_factory=dict)
    """The paper's class for each label."""

    @property
    def is_whole(self) -> bool:
        return bool(self.both_parts_of)

    @property
    def folder(self) -> str:
        return self.both_parts_of or self.name

    def file(self, part: str, data_dir: str | Path | None = None) -> Path:
        place = self.collection
        path = place.path.format(name=self.folder, part=part)
        if not place.hub_id:
            return Path(str(resources.files("relvec.data"))) / path
        hub_path = place.hub_path.format(name=self.folder, title=self.title, part=place.hub_parts.get(part, part))
        return benchmark_file(path, place.hub_id, hub_path, data_dir)

    def category_of(self, kind: str) -> str:
        """The high-level category of a kind of question; empty if there is none.

        >>> BENCHMARKS["google"].category_of("gram3-comparative")
        'Morphological'
        """
        return next((category for start, category in self.categories.items() if kind.startswith(start)), "")

    def relation_of(self, kind: str) -> str:
        """The relation that a kind of question asks for, as the paper's tables call it.

        >>> BENCHMARKS["bats"].relation_of("I09 [verb_Ving - Ved]")
        'verb v+ing:v+ed'
        """
        for pattern, replacement in self.relation_names:
            kind = re.sub(pattern, replacement, kind, flags=re.DOTALL)
        return kind


_NO_RELATION = ((".+", ""),)  # a kind of SAT question says where it comes from, some in the question's own words
_BATS_NAMES = (
    (r"^.*\[|\]$", ""),
    ("_(ir)?reg$", ""),
    (" - ", ":"),
    ("_", " "),
    ("Ving", "v+ing"),
    ("Ved", "v+ed"),
)

_ALL = (
    Benchmark(
        "sat_full", "SAT full", ANALOGY, {"valid": 37, "test": 337}, both_parts_of="sat", relation_names=_NO_RELATION
    ),
    Benchmark("sat", "SAT", ANALOGY, {"valid": 37, "test": 337}, relation_names=_NO_RELATION),
    Benchmark("u2", "U2", ANALOGY, {"valid": 24, "test": 228}),
    Benchmark("u4", "U4", ANALOGY, {"valid": 48, "test": 432}),
    Benchmark(
        "google", "Google", ANALOGY, {"valid": 50, "test": 500}, categories={"gram": "Morphological", "": "Semantic"}
    ),
    Benchmark(
        "bats",
        "BATS",
        ANALOGY,
        {"valid": 199, "test": 1799},
        categories={"I": "Morphological", "D": "Morphological", "E": "Semantic", "L": "Lexical"},
        relation_names=_BATS_NAMES,
    ),
    Benchmark("bundled", "own questions", OWN_ANALOGY, {"valid": 696, "test": 1368}),
    Benchmark(
        "bless",
        "BLESS",
        CLASSIFICATION,
        {"train": 18582, "valid": 1327, "test": 6637},
        classes={
            "random": "random",
            "mero": "meronym",
            "event": "event",
            "hyper": "hypernym",
            "coord": "co-hyponym",
            "attri": "attribute",
        },
    ),
    Benchmark(
        "cogalexv",
        "CogALexV",
        CLASSIFICATION,
        {"train": 3054, "test": 4260},
        classes={"RANDOM": "random", "PART_OF": "meronym", "HYPER": "hypernym", "ANT": "antonym", "SYN": "synonym"},
    ),
    Benchmark(
        "evalution",
        "EVALution",
        CLASSIFICATION,
        {"train": 5160, "valid": 372, "test": 1846},
        classes={
            "MadeOf": "meronym",
            "PartOf": "part of",
            "IsA": "hypernym",
            "HasProperty": "attribute",
            "HasA": "possession",
            "Antonym": "antonym",
            "Synonym": "synonym",
        },
    ),
    Benchmark(
        "khn",
        "K&H+N",
        CLASSIFICATION,
        {"train": 40256, "valid": 2876, "test": 14377},
        classes={"false": "random", "mero": "meronym", "hypo": "hypernym", "sibl": "co-hyponym"},
    ),
    Benchmark(
        "root09",
        "ROOT09",
        CLASSIFICATION,
        {"train": 8933, "valid": 638, "test": 3191},
        classes={"RANDOM": "random", "HYPER": "hypernym", "COORD": "co-hyponym"},
    ),
    Benchmark(
        "relation_mapping",
        "relation mapping",
        MAPPING,
        {"test": 20},
        categories={"a": "science", "m": "metaphor"},  # Turney numbers his problems A1 to A10 and M1 to M10
    ),
)
BENCHMARKS: dict[str, Benchmark] = {benchmark.name: benchmark for benchmark in _ALL}


def benchmarks_of(task: BenchmarkTask) -> dict[str, Benchmark]:
    return {name: benchmark for name, benchmark in BENCHMARKS.items() if benchmark.collection.task == task}


def benchmark_name(task: BenchmarkTask, given: str) -> str:
    """The name of a benchmark, which may be given by its title and in any case; a path as it is.

    >>> [benchmark_name("classification", given) for given in ("K&H+N", "Bless", "my/folder")]
    ['khn', 'bless', 'my/folder']
    """
    known = {each.title.casefold(): name for name, each in benchmarks_of(task).items()}
    known |= {name: name for name in benchmarks_of(task)}
    return given if expanded(given).exists() else known.get(given.casefold(), given)


def find_files(
    task: BenchmarkTask, name: str, parts: Sequence[Part], data_dir: str | Path | None = None
) -> dict[Part, Path]:
    """The files of those parts that there are: of a benchmark by name, or of the user's own.

    The user gives a file (not for classification), a folder with files such as train.jsonl and test.csv, or the name
    of a table below the data folder, such as `scan` for `mapping/scan.jsonl`.
    """
    known = benchmarks_of(task)
    if name in known:
        return {part: known[name].file(part, data_dir) for part in parts if part in known[name].counts}
    own = {file.name.partition(".")[0]: file for file in _tables((data_folder(data_dir) or Path()) / task)}
    place = expanded(name) if expanded(name).exists() else own.get(name)
    is_split = task == "classification"
    form = "a folder with a train and a test file" if is_split else "a file or a folder"
    if place is None:
        otherwise = f"known are {', '.join(known)}, or give {form}"
        advice = did_you_mean(name, [*known, *own], otherwise=otherwise)
        raise RelvecError(f"There is no {task} benchmark {name}; {advice}.")
    if place.is_file() and is_split:
        raise RelvecError(f"{place} is a file; give {form}, such as train.jsonl and test.csv.")
    tables = _tables(place)
    found = {part: [file for file in tables if part_of(file) == part] for part in parts}
    if place.is_file():
        found = {part: [place] if part == parts[-1] else [] for part in parts}
    for part, files in found.items():
        is_needed = part != "valid" or len(parts) == 1
        if len(files) > 1 or (is_needed and not files):
            held = " and ".join(file.name for file in files) or f"no {part} file"
            raise RelvecError(f"{place} holds {held}; have one such as {part}.jsonl or {part}.csv in a folder.")
    return {part: files[0] for part, files in found.items() if files}


def _tables(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*") if file.is_file() and kind_of(file) in TABLES)
