"""Relation models: what turns pairs into vectors, one file or package for each backend."""

from typing import Any

__all__ = ["embed_to_file"]


def __getattr__(name: str) -> Any:
    """Import on first use: most of what asks for this package needs no numpy yet."""
    if name not in __all__:
        raise AttributeError(f"module 'relvec.model' has no attribute {name!r}")
    from relvec.model.cached_vectors import embed_to_file

    return embed_to_file
