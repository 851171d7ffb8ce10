"""The README that a saved model carries: what it is and is for, what it was trained on, how it does, how to use it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from huggingface_hub import ModelCardData

from relvec.hub.catalogue import BASE_MODELS, BUNDLED_MODELS, HUB_MODELS

if TYPE_CHECKING:
    from relvec.model.relation_model import RelBERT


def model_card(model: "RelBERT") -> str:
    """Markdown with the hub's front matter, from the model itself and its training record.

    The record is the `training` entry of `relbert_config`, with the optional keys `base`, `language_model` (where the
    base was itself trained), `data`, `recipe` (a mapping), `metrics` (a mapping) and `license` (as the hub spells it;
    only the model's owner knows it).
    """
    record = model.training_record
    metadata = ModelCardData(
        base_model=_hub_id(model.language_model),
        library_name="relvec",
        license=record.get("license"),
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
            _PURPOSE,
            "",
            *_section("The model", _table(_description(model))),
            *_section("Training data", [str(record.get("data", _UNTRAINED))]),
            *_section("Recipe", _table(record.get("recipe", {})) or [_UNTRAINED]),
            *_section("Metrics", _table(record.get("metrics", {})) or ["None recorded."]),
            *_section("How to use it", _USAGE.format(_source(model.name)).splitlines()),
            *_section("Citation", _CITATION.splitlines()),
        ]
    )


_UNTRAINED = "Not recorded."

_PURPOSE = """\
It is for comparing relations: to rank pairs, solve analogies, find pairs that are related alike, or classify relations.
It knows English, in single words and short terms such as *ice cream*; sentences and other languages are beyond it.
The direction of a pair matters: (Paris, France) and (France, Paris) have different vectors."""

_USAGE = """\
```python
from relvec import RelBERT

model = RelBERT.from_pretrained("{}")
vectors = model.encode([("Paris", "France"), ("Tokyo", "Japan")])
```

`relbert_config` in `config.json` holds the prompt and the pooling."""

_CITATION = """\
The method is that of the paper:

```bibtex
@inproceedings{ushio-etal-2021-distilling,
  title = {Distilling Relation Embeddings from Pre-trained Language Models},
  author = {Ushio, Asahi and Camacho-Collados, Jose and Schockaert, Steven},
  booktitle = {Proceedings of the 2021 Conference on Empirical Methods in Natural Language Processing},
  year = {2021}
}
```"""


def _source(name: str) -> str:
    """What loads a model: its name if relvec brings it, else wherever the reader has put it."""
    return name if name in BUNDLED_MODELS else "path/to/this/folder"


def _hub_id(base: str) -> str | None:
    """Where the hub has the encoder below a model; None for one that the catalogue does not know.

    >>> _hub_id("relvec-mpnet"), _hub_id("my/folder")
    ('sentence-transformers/all-mpnet-base-v2', None)
    """
    if base in BUNDLED_MODELS:
        base = BUNDLED_MODELS[base].base
    if base in BASE_MODELS:
        return BASE_MODELS[base].hub_id
    return base if base in HUB_MODELS else None


def _description(model: "RelBERT") -> dict[str, Any]:
    base = model.training_record.get("base", model.kind)
    below = {"language model": model.language_model} if model.language_model not in ("", base) else {}
    return {
        "base": base,
        **below,
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
