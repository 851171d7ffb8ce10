"""The folder that keeps fetched base models."""

import os
from pathlib import Path

from relvec.io.paths import expanded


def cache_folder() -> Path:
    """`RELVEC_CACHE`, else `relvec` in the user's cache folder."""
    if chosen := os.environ.get("RELVEC_CACHE"):
        return expanded(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relvec"
