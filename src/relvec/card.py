"""The README that a saved model carries: what it is, what it was trained on, how it does, how to use it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from huggingface_hub import ModelCardData

if TYPE_CHECKING:
    from relvec.model import RelBERT


def model_card(model: "RelBERT") -> str:
    """Markdown with the hub's front matter, from the model itself and its training record.

    The record is the `training` entry of `relbert_config`, with the optional keys `base`, `data`, `recipe`
    (a mapping) and `metrics` (a mapping).
    """
    record = model.training_record
    metadata = ModelCardData(
        library_name="relvec",
        pipeline_tag="feature-extraction",
        language="en",
        tags=["relation-embeddings", "analogy", "relbert"],
    )
    return "\n".join(
        [
            "---",
            metadata.to_yaml(),
            "---",
            f"# {model.name}",
            "",
            "Turns a pair of words into a vector of *how the two are related*, after RelBERT (EMNLP 2021).",
            "",
            *_section("The model", _table(_description(model))),
            *_section("Training data", [str(record.get("data", _UNTRAINED))]),
            *_section("Recipe", _table(record.get("recipe", {})) or [_UNTRAINED]),
            *_section("Metrics", _table(record.get("metrics", {})) or ["None recorded."]),
            *_section("How to use it", _USAGE.splitlines()),
        ]
    )


_UNTRAINED = "Not recorded."

_USAGE = """\
```python
from relvec import RelBERT

model = RelBERT.from_pretrained("path/to/this/folder")
vectors = model.encode([("Paris", "France"), ("Tokyo", "Japan")])
```

`relbert_config` in `config.json` holds the prompt and the pooling."""


def _description(model: "RelBERT") -> dict[str, Any]:
    return {
        "base": model.training_record.get("base", model.encoder.config.model_type),
        "dimensions": model.dim,
        "template": f"`{model.template.text}`",
        "pooling": model.pooling,
    }


def _section(title: str, lines: list[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""]


def _table(rows: Mapping[str, Any]) -> list[str]:
    if not rows:
        return []
    return ["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows.items())]
