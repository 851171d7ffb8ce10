"""Write the tables of README and docs from the code's own registries: `make tables`."""

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer.main

from relvec.baselines.registry import BASELINES
from relvec.cli.app import make_app
from relvec.data.benchmarks.analogy import ANALOGY_DATASETS
from relvec.data.benchmarks.classification import CLASSIFICATION_DATASETS
from relvec.data.sources import SOURCES
from relvec.hub.models import model_rows
from relvec.index.kinds import KINDS
from relvec.model.backends import BACKENDS
from relvec.pooling import POOLINGS
from relvec.prompts import MANUAL_TEMPLATES
from relvec.training.losses import LOSSES
from relvec.training.recipe import Recipe

ROOT = Path(__file__).parents[1]
PAGES = (
    ROOT / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("index", "training", "evaluation", "neighbours", "speed")),
)
MEASURED = ROOT / "experiments" / "encode.json"

_BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def commands() -> list[list[str]]:
    group = typer.main.get_command(make_app())
    listed = group.commands.items()  # type: ignore[attr-defined]
    return [
        ["command", "what it does"],
        *([f"`relvec {name}`", command.get_short_help_str(200)] for name, command in listed),
    ]


def models() -> list[list[str]]:
    head = ["name", "kind", "parameters", "speed", "analogies", "source"]
    return [head, *([f"`{row['name']}`", *_model(row)] for row in model_rows())]


def _model(row: dict[str, object]) -> list[str]:
    speed = "" if row["speed"] is None else f"{row['speed']:g}x"
    accuracy = "" if row["analogy_accuracy"] is None else f"{row['analogy_accuracy']:.1f} %"
    return [str(row["kind"]), f"{int(str(row['parameters'])) / 1e6:.0f} M", speed, accuracy, str(row["source"])]


def measured() -> list[dict[str, Any]]:
    """What `benchmarks/encode.py` measured."""
    rows: list[dict[str, Any]] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return rows


def ways() -> list[list[str]]:
    head = ["model", "backend", "pairs/s", "vs relbert", "peak MB", "lowest cosine", "accuracy"]
    return [head, *(_way(row) for row in measured())]


def _way(row: dict[str, Any]) -> list[str]:
    speed = f"{row['pairs_per_second']:,.0f}"
    ratio = f"{row['to_peer']:.1f}x" if row["to_peer"] else "-"
    cosine = f"{row['smallest_cosine']:.4f}" if row["smallest_cosine"] else "-"
    accuracy = f"{row['accuracy']:.1f}" if row["accuracy"] else "-"
    way = row["way"].replace("relbert", "relbert 2.0.2")
    return [f"`{row['model']}`", way, speed, ratio, f"{row['peak_megabytes']:.0f}", cosine, accuracy]


def losses() -> list[list[str]]:
    rows = [
        [f"`{name}`", loss.help, ", ".join(f"`{each}` ({default})" for each, default in loss.settings.items()) or "-"]
        for name, loss in LOSSES.items()
    ]
    return [["loss", "what it does", "settings"], *rows]


def sources() -> list[list[str]]:
    rows = [[f"`{source.name}`", source.description, source.licence] for source in SOURCES.values()]
    return [["data", "what it is", "licence"], *rows]


def templates() -> list[list[str]]:
    return [["number", "template"], *([str(number), f"`{text}`"] for number, text in MANUAL_TEMPLATES.items())]


def settings() -> list[list[str]]:
    fields = Recipe.model_fields
    rows = [[f"`{name}`", f"`{default!r}`", str(fields[name].description)] for name, default in Recipe()]
    return [["setting", "default", "what it does"], *rows]


def analogies() -> list[list[str]]:
    rows = []
    for dataset in ANALOGY_DATASETS.values():
        valid, test = dataset.counts["valid"], dataset.counts["test"]
        where = f"`analogy/{dataset.folder}/{{valid,test}}.jsonl`" if dataset.collection.hub_id else "in this package"
        counts = ["-", str(valid + test)] if dataset.is_whole else [str(valid), str(test)]
        rows.append([f"`{dataset.name}`", dataset.title, *counts, where])
    return [["dataset", "title", "valid", "test", "in the data folder"], *rows]


def classifications() -> list[list[str]]:
    rows = [
        [
            f"`{dataset.name}`",
            dataset.title,
            *(f"{dataset.counts[part]:,}" if part in dataset.counts else "-" for part in ("train", "valid", "test")),
            ", ".join(dataset.classes.values()),
        ]
        for dataset in CLASSIFICATION_DATASETS.values()
    ]
    return [["dataset", "title", "train", "valid", "test", "classes"], *rows]


def backends() -> list[list[str]]:
    return [["backend", "what it runs"], *([f"`{each.name}`", each.help] for each in BACKENDS.values())]


def poolings() -> list[list[str]]:
    return [["pooling", "averages"], *([f"`{name}`", pooling.help] for name, pooling in POOLINGS.items())]


def kinds() -> list[list[str]]:
    return [
        ["kind", "how vectors are stored and searched", "use"],
        *([f"`{kind.name}`", kind.help, kind.use] for kind in KINDS.values()),
    ]


def baselines() -> list[list[str]]:
    rows = [
        [
            f"`{baseline.name}`",
            baseline.description,
            ", ".join(baseline.tasks),
            "; ".join(f"`{name}`: {meaning}" for name, meaning in baseline.setting_texts().items()) or "-",
        ]
        for baseline in BASELINES.values()
    ]
    return [["baseline", "what it is", "for", "settings"], *rows]


Tables = Mapping[str, Callable[[], list[list[str]]]]

TABLES: Tables = {
    table.__name__: table
    for table in (
        commands,
        models,
        ways,
        losses,
        sources,
        backends,
        poolings,
        kinds,
        templates,
        settings,
        analogies,
        classifications,
        baselines,
    )
}


def filled(text: str, tables: Tables = TABLES) -> str:
    """The page with every marked table made anew; another tool's tables stay as they are."""

    def table(block: re.Match[str]) -> str:
        if block.group(2) not in tables:
            return block.group(0)
        head, *rows = tables[block.group(2)]()
        lines = [head, ["---"] * len(head), *rows]
        return block.group(1) + "".join(f"| {' | '.join(line)} |\n" for line in lines) + block.group(3)

    return _BLOCK.sub(table, text)


def main() -> None:
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
        sys.stderr.write(f"{page.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
