"""Every benchmark with a name: one entry each, with its files, sizes, categories and classes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from relvec.hub.datasets import benchmark_file

Task = Literal["analogy", "classification", "mapping"]


@dataclass(frozen=True)
class Benchmark:
    """A dataset to evaluate on.

    Its files are at `path` below the data folder, or at `hub_path` of the hub's dataset `hub_id`; `{part}` stands for
    train, valid or test.
    """

    name: str
    title: str
    task: Task
    path: str
    hub_id: str
    hub_path: str
    counts: dict[str, int]
    """Questions, pairs or problems in each part."""
    revision: str | None = None
    """The commit of the hub's dataset; without one, the newest."""
    hub_parts: dict[str, str] = field(default_factory=dict)
    """How the hub calls a part, if otherwise."""
    is_whole: bool = False
    """Whether the validation and the test part together are tested on."""
    folder: str = ""
    """The name by which its files go: the full SAT set is both parts of SAT."""
    categories: dict[str, str] = field(default_factory=dict)
    """The paper's high-level category by the beginning of a kind of question."""
    relation_names: tuple[tuple[str, str], ...] = ()
    """Patterns and replacements that make of a kind of question what the paper calls the relation."""
    classes: dict[str, str] = field(default_factory=dict)
    """The paper's class for each label."""

    def file(self, part: str, data_dir: str | Path | None = None) -> Path:
        hub_path = self.hub_path.format(part=self.hub_parts.get(part, part))
        return benchmark_file(self.path.format(part=part), self.hub_id, hub_path, data_dir, self.revision)

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


def _analogy(
    name: str,
    title: str,
    valid: int,
    test: int,
    *,
    folder: str = "",
    categories: dict[str, str] | None = None,
    relation_names: Sequence[tuple[str, str]] = (),
) -> Benchmark:
    return Benchmark(
        name,
        title,
        "analogy",
        path=f"analogy/{folder or name}/{{part}}.jsonl",
        hub_id="relbert/analogy_questions",
        hub_path=f"dataset/{folder or name}/{{part}}.jsonl",
        counts={"valid": valid, "test": test},
        is_whole=bool(folder),
        folder=folder or name,
        categories=categories or {},
        relation_names=tuple(relation_names),
    )


def _classification(name: str, title: str, counts: dict[str, int], classes: dict[str, str]) -> Benchmark:
    return Benchmark(
        name,
        title,
        "classification",
        path=f"lexrel/{name}/{{part}}.jsonl",
        hub_id="relbert/lexical_relation_classification",
        hub_path=f"dataset/{title}/{{part}}.jsonl",
        counts=counts,
        folder=name,
        hub_parts={"valid": "val"},
        classes=classes,
    )


_NO_RELATION = ((".+", ""),)  # a kind of SAT question says where it comes from, some in the question's own words

_BATS_NAMES = (
    (r"^.*\[|\]$", ""),
    ("_(ir)?reg$", ""),
    (" - ", ":"),
    ("_", " "),
    ("Ving", "v+ing"),
    ("Ved", "v+ed"),
)

BENCHMARKS: dict[str, Benchmark] = {
    benchmark.name: benchmark
    for benchmark in (
        _analogy("sat_full", "SAT full", 37, 337, folder="sat", relation_names=_NO_RELATION),
        _analogy("sat", "SAT", 37, 337, relation_names=_NO_RELATION),
        _analogy("u2", "U2", 24, 228),
        _analogy("u4", "U4", 48, 432),
        _analogy("google", "Google", 50, 500, categories={"gram": "Morphological", "": "Semantic"}),
        _analogy(
            "bats",
            "BATS",
            199,
            1799,
            categories={"I": "Morphological", "D": "Morphological", "E": "Semantic", "L": "Lexical"},
            relation_names=_BATS_NAMES,
        ),
        _classification(
            "bless",
            "BLESS",
            {"train": 18582, "valid": 1327, "test": 6637},
            {
                "random": "random",
                "mero": "meronym",
                "event": "event",
                "hyper": "hypernym",
                "coord": "co-hyponym",
                "attri": "attribute",
            },
        ),
        _classification(
            "cogalexv",
            "CogALexV",
            {"train": 3054, "test": 4260},
            {"RANDOM": "random", "PART_OF": "meronym", "HYPER": "hypernym", "ANT": "antonym", "SYN": "synonym"},
        ),
        _classification(
            "evalution",
            "EVALution",
            {"train": 5160, "valid": 372, "test": 1846},
            {
                "MadeOf": "meronym",
                "PartOf": "part of",
                "IsA": "hypernym",
                "HasProperty": "attribute",
                "HasA": "possession",
                "Antonym": "antonym",
                "Synonym": "synonym",
            },
        ),
        _classification(
            "khn",
            "K&H+N",
            {"train": 40256, "valid": 2876, "test": 14377},
            {"false": "random", "mero": "meronym", "hypo": "hypernym", "sibl": "co-hyponym"},
        ),
        _classification(
            "root09",
            "ROOT09",
            {"train": 8933, "valid": 638, "test": 3191},
            {"RANDOM": "random", "HYPER": "hypernym", "COORD": "co-hyponym"},
        ),
        Benchmark(
            "relation_mapping",
            "relation mapping",
            "mapping",
            path="mapping/relation_mapping.jsonl",
            hub_id="relbert/relation_mapping",
            hub_path="data.jsonl",
            counts={"test": 20},
            categories={"a": "science", "m": "metaphor"},  # Turney numbers his problems A1 to A10 and M1 to M10
        ),
    )
}


def benchmarks_of(task: Task) -> dict[str, Benchmark]:
    return {name: benchmark for name, benchmark in BENCHMARKS.items() if benchmark.task == task}
