"""The README that a saved model carries: what it is and is for, what it was trained on, how it does, how to use it."""

from collections.abc import Mapping
from string import Template
from typing import TYPE_CHECKING, Any

from huggingface_hub import ModelCardData

from relvec.hub.catalogue import BASE_MODELS, BUNDLED_MODELS, HUB_MODELS

if TYPE_CHECKING:
    from relvec.model.relation_model import RelBERT

_CARD = Template("""\
---
$metadata
---
# $name

Relation embeddings: a pair of words becomes a vector of *how the two words are related* (RelBERT, EMNLP 2021).

Use it to compare relations: rank pairs, solve analogies, find pairs with a similar relation, or classify relations.
It is for English words and short terms such as *ice cream*, not for sentences or other languages.
Direction matters: (Paris, France) and (France, Paris) have different vectors.

## The model

$model

## Training data

$data

## Recipe

$recipe

## Metrics

$metrics

## How to use it

```python
from relvec import RelBERT

model = RelBERT.from_pretrained("$source")
vectors = model.encode([("Paris", "France"), ("Tokyo", "Japan")])
```

The prompt and the pooling are in `relbert_config` of `config.json`.

## Citation

Please cite the paper that introduced the method:

```bibtex
@inproceedings{ushio-etal-2021-distilling,
  title = {Distilling Relation Embeddings from Pre-trained Language Models},
  author = {Ushio, Asahi and Camacho-Collados, Jose and Schockaert, Steven},
  booktitle = {Proceedings of the 2021 Conference on Empirical Methods in Natural Language Processing},
  year = {2021}
}
```
""")


def model_card(model: "RelBERT") -> str:
    """Markdown with the hub's front matter, from the model itself and its training record.

    The record may have the keys `base`, `language_model` (where the base was itself trained), `data`, `recipe`,
    `metrics` and `license` (as the hub spells it; only the model's owner knows it).
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
    base = record.get("base", model.kind)
    below = {"language model": model.language_model} if model.language_model not in ("", base) else {}
    prompt = {"template": f"`{model.template.text}`", "pooling": model.pooling}
    return _CARD.substitute(
        metadata=metadata.to_yaml(),
        name=model.name,
        model=_table({"base": base, **below, "dimensions": model.dim, **prompt}),
        data=record.get("data", "Not recorded."),
        recipe=_table(record.get("recipe", {})) or "Not recorded.",
        metrics=_table(record.get("metrics", {})) or "None recorded.",
        source=model.name if model.name in BUNDLED_MODELS else "path/to/this/folder",
    )


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


def _table(rows: Mapping[str, Any]) -> str:
    lines = [f"| {name} | {value} |" for name, value in rows.items()]
    return "\n".join(["| | |", "| --- | --- |", *lines]) if lines else ""
