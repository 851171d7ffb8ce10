"""Nearest neighbours among many pairs (section 6.3 of the paper), and open analogies.

>>> from relvec import RelBERT
>>> from relvec.index import PairIndex, complete
>>> model = RelBERT.from_pretrained(tiny_model)
>>> index = PairIndex.of(model, [("Tokyo", "Japan"), ("cup", "tea"), ("cats", "dogs")])
>>> [pair for pair, _ in index.most_similar(model, ("Paris", "France"), topn=1)]
[('cup', 'tea')]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relvec.index.building import build_index, extend_index
    from relvec.index.completion import complete
    from relvec.index.import_export import export_index, export_pairs, import_index
    from relvec.index.pair_index import Neighbour, PairIndex

_HOMES = {
    "PairIndex": "pair_index",
    "Neighbour": "pair_index",
    "complete": "completion",
    "build_index": "building",
    "extend_index": "building",
    "import_index": "import_export",
    "export_index": "import_export",
    "export_pairs": "import_export",
}

__all__ = [
    "Neighbour",
    "PairIndex",
    "build_index",
    "complete",
    "export_index",
    "export_pairs",
    "extend_index",
    "import_index",
]


def __getattr__(name: str) -> Any:
    """Import on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'relvec.index' has no attribute {name!r}")
    return getattr(import_module(f"relvec.index.{_HOMES[name]}"), name)
