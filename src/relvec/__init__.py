"""relvec: any pair of words becomes a vector that says how the two are related.

>>> from relvec import RelBERT
>>> model = RelBERT.from_pretrained(tiny_model)
>>> model.encode([("Paris", "France"), ("Tokyo", "Japan")]).shape
(2, 16)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relvec.errors import RelvecError
    from relvec.index.pair_index import PairIndex
    from relvec.model.relation_model import RelBERT
    from relvec.model.relation_namer import RelationNamer
    from relvec.pairs import Prototype
    from relvec.prompts import Template
    from relvec.sklearn import RelationEmbedder

__version__ = "0.2.0"

_HOMES = {
    "PairIndex": "relvec.index.pair_index",
    "RelBERT": "relvec.model.relation_model",
    "RelationEmbedder": "relvec.sklearn",
    "RelationNamer": "relvec.model.relation_namer",
    "Prototype": "relvec.pairs",
    "Template": "relvec.prompts",
    "RelvecError": "relvec.errors",
}

__all__ = [
    "PairIndex",
    "Prototype",
    "RelBERT",
    "RelationEmbedder",
    "RelationNamer",
    "RelvecError",
    "Template",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Import on first use, so that `relvec --help` waits for neither numpy nor torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'relvec' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
